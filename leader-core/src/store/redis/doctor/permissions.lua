-- Tries each command that the store's script runs, in a form that changes nothing: it reads, it is refused for its arguments
-- once it is known to be permitted, or it is about a key that nobody uses. Answers the name and the error of each.
local lease, record = KEYS[1], KEYS[2]
-- Not among the keys: whoever is permitted just those that the store uses may call this script.
local nobodys_key, nobodys_channel = ARGV[1], ARGV[2]
local tried = {}
local function try(name, ...)
  local reply = redis.pcall(name, ...)
  tried[#tried + 1] = {name, type(reply) == 'table' and reply.err or ''}
end
-- First, as nothing was written yet: it is refused like the SET of an acquire, if the server takes no writes.
try('set', lease, '', 'NX', 'XX')
try('get', lease)
try('pexpire', lease, 'never')
try('pttl', lease)
try('hmget', record, 'id')
try('hset', record, 'a', 'b', 'c')
-- A record has no time to live.
try('persist', record)
try('del', nobodys_key)
try('time')
try('info', 'server')
try('publish', nobodys_channel, '')
return tried
