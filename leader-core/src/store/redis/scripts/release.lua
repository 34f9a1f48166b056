-- Ends the lease of the acquisition that it names, and announces that.
local function release(command)
  local group, changes = read(command), {}
  if not is_named(command, group) then return {'not held'} end
  note_server(command, group, changes)
  if group.older > now then
    -- An older incarnation of this id may still believe in it: it stands until that belief ends.
    redis.call('PEXPIRE', command.lease, group.older - now)
    changes['until'] = text(group.older)
    write(command, changes)
  else
    redis.call('DEL', command.lease)
    changes['until'] = '0'
    write(command, changes)
    -- Where it is not permitted: the lease is free, and whoever waits for it finds out when it would have ended.
    redis.pcall('PUBLISH', command.lease, text(group.term))
  end
  return {'released'}
end
