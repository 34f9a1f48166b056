-- One call for many locks: each command has four keys and WIDTH arguments. What is computed once for all of them is here. No
-- line with an interpreter: Redis refuses such scripts whole when its memory is full.
--
-- A lock is a string that expires: token, nonce, ttl and instance id of its owner, with colons between. Other implementations
-- look only whether it is there, and so do we at theirs. Those who wait stand in two sorted sets, one by arrival and one by
-- the instant at which their place ends; the members are nonce and channel, on which its elector listens. Instants are
-- milliseconds of this server's clock.

local WIDTH = 10
-- Above it not every whole number can be told from the next one.
local MOST = 9007199254740991
-- Places that last longer were set before this server's clock was set back; an asker that keeps its own for longer knows
-- better.
local LONGEST_PLACE = 10000
-- So long last the places of an elector for which nobody listens, unless it asks again.
local UNHEARD = 1500
-- Of all who wait so many are told at once; the others ask by themselves within a second.
local MANY = 1000

local channels = ARGV[1]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_us = time[1] * 1000000 + time[2]

-- Numbers that leave Lua go through this: `..` and tostring() round large ones.
local function text(number) return string.format('%.0f', number) end

-- What is known of a lock; the value alone, if it is of another implementation.
local function read(command)
  local value = redis.call('GET', command.lock)
  if not value then return {} end
  local token, nonce, ttl, id = string.match(value, '^(%d+):(%x+):(%d+):(.+)$')
  return {value = value, token = token, nonce = nonce, ttl = tonumber(ttl), id = id}
end

local function is_named(command, lock)
  return lock.nonce == command.nonce and lock.token == command.token
end

-- Gives the lock the asker's ttl from now. What is never refused for want of memory comes first; after it, nothing is.
local function extend(command, lock)
  redis.call('PEXPIRE', command.lock, command.ttl)
  if lock.ttl ~= command.ttl then
    local value = table.concat({lock.token, lock.nonce, text(command.ttl), lock.id}, ':')
    redis.call('SET', command.lock, value, 'XX', 'PX', command.ttl)
  end
end

-- How long the lock lasts. One of ours that lasts longer than it was set to (this server's clock was set back) or for ever
-- (somebody has persisted it) is cut.
local function remaining(command, lock)
  local left = redis.call('PTTL', command.lock)
  if lock.ttl and (left < 0 or left > lock.ttl) then
    redis.call('PEXPIRE', command.lock, lock.ttl)
    return lock.ttl
  end
  if left < 0 then return command.ttl end
  return left
end

local function remove(command, member)
  redis.call('ZREM', command.queue, member)
  redis.call('ZREM', command.waiting, member)
end

-- Ends the places whose time is over, and returns how many are left.
local function tidy(command)
  local places, queued = redis.call('ZCARD', command.waiting), redis.call('ZCARD', command.queue)
  if places == 0 and queued == 0 then return 0 end
  for _, member in ipairs(redis.call('ZRANGE', command.waiting, '-inf', now, 'BYSCORE')) do
    remove(command, member)
  end
  local longest = text(now + math.max(LONGEST_PLACE, command.place))
  local too_long = redis.call('ZRANGE', command.waiting, '(' .. longest, '+inf', 'BYSCORE')
  for _, member in ipairs(too_long) do
    redis.call('PEXPIRE', command.waiting, longest - now)
    redis.call('PEXPIRE', command.queue, longest - now)
    redis.call('ZADD', command.waiting, 'XX', longest, member)
  end
  if places ~= queued then
    -- One of the two was evicted, or touched by hand: a place without an end would never end.
    for _, member in ipairs(redis.call('ZRANGE', command.queue, 0, -1)) do
      if not redis.call('ZSCORE', command.waiting, member) then redis.call('ZREM', command.queue, member) end
    end
    for _, member in ipairs(redis.call('ZRANGE', command.waiting, 0, -1)) do
      if not redis.call('ZSCORE', command.queue, member) then redis.call('ZREM', command.waiting, member) end
    end
  end
  return redis.call('ZCARD', command.queue)
end

-- Nobody listens to this channel: its elector has ended, or hears nothing for now. In the first case its places are not to keep
-- others waiting; in the second it asks by itself within a second, and keeps them.
local function end_soon(command, channel)
  local soon = text(now + UNHEARD)
  for _, member in ipairs(redis.call('ZRANGE', command.waiting, '(' .. soon, '+inf', 'BYSCORE')) do
    if string.sub(member, -#channel) == channel then redis.pcall('ZADD', command.waiting, 'XX', soon, member) end
  end
end

-- Tells the first who waits, or many, that it is worth asking again. Where that is not permitted they ask by themselves.
local function tell(command, most)
  for _, member in ipairs(redis.call('ZRANGE', command.queue, 0, most - 1)) do
    local nonce, channel = string.match(member, '^(%x+):(.+)$')
    if nonce and redis.pcall('PUBLISH', channel, nonce) == 0 then
      -- Once for all places of an elector: a queue may be long.
      local ends = tonumber(redis.call('ZSCORE', command.waiting, member))
      if ends and ends > now + UNHEARD then end_soon(command, channel) end
    end
  end
end

-- The asker's place ends. Who was first makes room for the next, also while the lock is held: whoever is first has to be there
-- at the instant at which it ends by itself.
local function leave(command)
  local rank = tidy(command) > 0 and redis.call('ZRANK', command.queue, command.member)
  if not rank then return end
  remove(command, command.member)
  if rank == 0 then tell(command, 1) end
end

-- The lock is free: it is told to the first who waits, or to many. It is free all the same if the queue cannot be read.
local function free(command, most)
  redis.call('DEL', command.lock)
  pcall(function()
    if tidy(command) > 0 then
      remove(command, command.member)
      tell(command, most)
    end
  end)
end
