-- Keeps the asker's place for so long, or puts it at the end. Both sets last as long as the last place in them.
local function keep_place(command, rank)
  local function last()
    for _, key in ipairs({command.queue, command.waiting}) do
      if redis.call('PTTL', key) < command.place then redis.call('PEXPIRE', key, command.place) end
    end
  end
  if rank then
    -- First: after it, nothing is refused for want of memory.
    last()
  else
    local newest = redis.call('ZRANGE', command.queue, -1, -1, 'WITHSCORES')[2]
    -- A number and not the time: this server's clock may be set back.
    redis.call('ZADD', command.queue, text((tonumber(newest) or 0) + 1), command.member)
  end
  redis.call('ZADD', command.waiting, text(now + command.place), command.member)
  if not rank then last() end
end

-- Takes the lock, if nobody holds it and nobody came before.
local function acquire(command)
  local lock = read(command)
  if command.once and redis.call('EXISTS', command.done) == 1 then
    leave(command)
    return {'done'}
  end
  local queued = tidy(command)
  local rank = queued > 0 and redis.call('ZRANK', command.queue, command.member)
  local ahead = rank or queued
  if lock.nonce == command.nonce then
    -- The answer to an earlier acquire was lost: it was held all the time.
    extend(command, lock)
    if rank then remove(command, command.member) end
    return {'won', lock.token}
  end
  if not lock.value and ahead == 0 then
    if command.floor >= MOST then error({err = 'ERR the token has reached the largest number that can be told'}) end
    local token = text(math.max(command.floor + 1, now_us))
    local value = table.concat({token, command.nonce, text(command.ttl), command.id}, ':')
    redis.call('SET', command.lock, value, 'NX', 'PX', command.ttl)
    if rank then remove(command, command.member) end
    return {'won', token}
  end
  local left
  if lock.value then
    left = remaining(command, lock)
  else
    local first = redis.call('ZRANGE', command.queue, 0, 0)[1]
    left = math.max((tonumber(redis.call('ZSCORE', command.waiting, first)) or 0) - now, 0)
  end
  if command.place > 0 then
    keep_place(command, rank)
  elseif rank then
    remove(command, command.member)
  end
  -- Once more: the first may have been told when it could not hear, or may have ended.
  -- And who was first makes room.
  if not lock.value or (rank == 0 and command.place <= 0) then tell(command, 1) end
  return {'busy', lock.id or '', lock.token or '', left, ahead}
end
