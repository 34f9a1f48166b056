-- The acquisition that a renew or a release names: by its instance id alone, a late one would act on the next acquisition.
local function is_named(command, group)
  return group.own and (not command.term or group.term == command.term)
end

-- Extends the lease of the acquisition that it names.
local function renew(command)
  local group, changes = read(command), {}
  if not is_named(command, group) then
    -- Also if that other incarnation's lease has ended: it lives, or lived, at the same time as the asker. Not if its term is
    -- older: then the record is.
    local duplicate = group.id == command.id and group.incarnation ~= command.incarnation and group.term >= command.term
    return {'lost', duplicate and 1 or 0}
  end
  note_server(command, group, changes)
  local lasts = math.max(command.ttl, group.older - now)
  changes['until'] = text(now + lasts)
  if lasts ~= group.ttl or changes.ttl then changes.ttl = text(lasts) end
  if command.jobs ~= '' then changes.jobs = command.jobs end
  grant(command, group, lasts, changes)
  return {'renewed'}
end
