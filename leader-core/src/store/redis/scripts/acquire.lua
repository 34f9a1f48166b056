-- Takes the lease if nobody holds it, or takes back the asker's own.
local function acquire(command)
  local group, changes = read(command), {}
  local longest = note_server(command, group, changes)
  if command.floor > group.highest then
    group.highest = command.floor
    changes.highest = text(group.highest)
  end
  if group.recorded then
    -- Also the lease is cut to what it can have been set to; unless it is of somebody who keeps no record, and whose ttl
    -- nobody knows.
    local left = remaining(command)
    if not left or left > longest - now then
      redis.call('PEXPIRE', command.lease, longest - now)
    end
  end

  local seated_elsewhere
  if not group.value or group.own then
    seated_elsewhere = false
  elseif group.other_incarnation then
    seated_elsewhere = not command.take
  elseif group.value == command.id then
    -- No record says which incarnation: the asker's, if it may still lead.
    seated_elsewhere = not command.take and not command.continues
  else
    seated_elsewhere = true
  end
  if seated_elsewhere then
    write(command, changes)
    return {'held', holder(command, group)}
  end

  local wait, reason = math.max(group.quarantine - now, 0), group.reason
  local in_quarantine = wait > 0
  -- A lease that is gone before its end is waited for, except by the incarnation that it was given to; also by a leader that
  -- continues, because its request may be a late one, sent before that lease was given to the other.
  local gone = 0
  if not group.value and not (group.id == command.id and group.incarnation == command.incarnation) then
    gone = math.max(group.ends - now, 0)
  end
  if (in_quarantine and not command.continues) or gone > 0 then
    write(command, changes)
    if gone > wait then wait, reason = gone, 'lease' end
    return {'quarantined', wait, reason or 'record'}
  end

  if group.value == command.id and not group.own and not (command.continues and not group.other_incarnation) then
    -- Another incarnation of this id may believe in its lease until that ends.
    group.older = math.max(group.older, now + math.min(remaining(command) or longest - now, longest - now))
  end
  local older = math.max(group.older - now, 0)
  local lasts = math.max(command.ttl, older)
  local term = text(math.max(group.highest + 1, now_us))
  changes.term, changes.highest, changes.id, changes.incarnation = term, term, command.id, command.incarnation
  changes.ttl, changes['until'], changes.older = text(lasts), text(now + lasts), text(group.older)
  changes.jobs = command.jobs
  grant(command, group, lasts, changes)
  return {'won', term, in_quarantine and 1 or 0, older}
end
