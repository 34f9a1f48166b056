-- What lies under the keys of some groups: {kind, value, milliseconds left} of the lease, {kind, id, what
-- its leader runs, ttl in milliseconds, term} of the record. A kind is
-- `none`, `ours` (the type that it should be), another type, or `error`, with the error after it. Changes nothing.
local function read(key, ...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return 'ours', reply end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then return 'error', reply.err end
  local found = redis.pcall('TYPE', key)
  return found.ok or 'unknown', ''
end
local answers = {}
for i = 1, #KEYS, 2 do
  local lease, record = KEYS[i], KEYS[i + 1]
  local kind, value = read(lease, 'GET', lease)
  if not value then kind, value = 'none', '' end
  local left = redis.pcall('PTTL', lease)
  local record_kind, fields = read(record, 'HMGET', record, 'id', 'jobs', 'ttl', 'term')
  local told = {fields, '', '', ''}
  if record_kind == 'ours' then
    for n = 1, 4 do told[n] = fields[n] or '' end
  end
  answers[#answers + 1] = {kind, value, type(left) == 'number' and left or -2, record_kind, unpack(told)}
end
return answers
