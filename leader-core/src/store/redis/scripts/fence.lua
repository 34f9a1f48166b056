-- Before this stands a function, `body`, which writes and sees nothing of what is here. No line with an interpreter: Redis
-- refuses such scripts whole when its memory is full.
--
-- The keys: of whoever writes, a lease and its record, or a lock; then each key that is written, with its mark behind it. A
-- mark says which token wrote last, and in which memory; it expires, and that does no harm.

local HOLDER_KEYS = {lease = 2, lock = 1}
local HOLDER_ARGUMENTS = 6

local kind, token, keep, owner, incarnation, held = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6] == '1'
local first = HOLDER_KEYS[kind] + 1

-- Whether this server, as it is now, has given the lease or the lock to exactly this acquisition, and to nobody after it; as
-- far as it knows: after a roll-back it may name one that has ended, and the writer knows of that.
local function holds()
  if not held then return false end
  local value = redis.call('GET', KEYS[1])
  if kind == 'lock' then
    local named, nonce = string.match(value or '', '^(%d+):(%x+):')
    return named == token and nonce == owner
  end
  local record = redis.call('HMGET', KEYS[2], 'term', 'id', 'incarnation')
  return value == owner and record[1] == token and record[2] == owner and record[3] == incarnation
end

-- Sets a mark. Nothing if that was done; or if it does no harm that it was not.
local function set_mark(mark, memory)
  local answer = redis.pcall('SET', mark, token .. ':' .. (memory or '-'), 'PX', keep)
  -- With a full memory: then nothing was written either, or this would not be refused.
  if not answer.err or string.find(answer.err, 'OOM ', 1, true) then return end
  -- An older mark would let somebody in who is older than this write. Without one the holder is asked for.
  local gone = redis.pcall('DEL', mark)
  if type(gone) == 'table' and gone.err then return answer.err end
end

local memory = identity()
local unproven = first > #KEYS and 0 or nil
for i = first, #KEYS, 2 do
  local mark = redis.call('GET', KEYS[i + 1])
  local newest, of
  if mark then
    newest, of = string.match(mark, '^(%d+):(.+)$')
    if not newest then error({err = 'ERR the mark of this key was written by somebody else'}) end
    if tonumber(newest) > tonumber(token) then return {'fenced', (i - first) / 2 + 1, newest} end
  end
  -- A mark of another memory may be an old one: newer ones may have been lost with what they were in.
  if not mark or not memory or of ~= memory then unproven = unproven or (i - first) / 2 + 1 end
end
if unproven and not holds() then return {'fenced', unproven, ''} end

local keys, arguments = {}, {}
for i = first, #KEYS, 2 do keys[#keys + 1] = KEYS[i] end
for i = HOLDER_ARGUMENTS + 1, #ARGV do arguments[#arguments + 1] = ARGV[i] end
local done, value = pcall(body, keys, arguments)
local failure = not done and value or type(value) == 'table' and value.err and value
-- After the write, and also after a part of it.
for i = first, #KEYS, 2 do
  local unmarked = set_mark(KEYS[i + 1], memory)
  failure = failure or unmarked
end
if failure then return {'failed', type(failure) == 'table' and failure.err or tostring(failure)} end
if value == nil then value = false end
return {'done', value}
