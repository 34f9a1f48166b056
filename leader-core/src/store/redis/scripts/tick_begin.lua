-- One call for many jobs: each command has five keys and WIDTH arguments. What is computed once for all of them is here. No
-- line with an interpreter: Redis refuses such scripts whole when its memory is full.
--
-- A job is a hash without an end, each of its fields a text, in which an empty one is nothing:
--   since, last     seconds: when the record began, and the last tick that was claimed
--   schedule        by which that was
--   server          the server's identity when that was
--   open            the last run, unless it has ended: tick:nonce:attempt:began:term:incarnation:instance
--   slot            how long its slot was set to last, and until when: microseconds:microseconds
--   others          earlier runs that have not ended: tick:nonce:attempt, with commas between
--   returned        ticks that were given back, by time: tick:attempts, with commas between
--   done            the nonce of the run that ended last
--   paused          second and note
-- Beside it stands a list with the last lines of its history.

local WIDTH = 18
-- So many runs that have not ended are kept beside the last one, and so many ticks that were given back.
local KEPT = 64
local HISTORY = 120
local LAST_SECOND = 253402300799
-- Above it not every whole number can be told from the next one.
local MOST = 9007199254740991
local FORGOTTEN = 'the store has lost its memory, and may have forgotten that they were run'

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now_s = math.min(tonumber(time[1]), LAST_SECOND)

-- Numbers that leave Lua go through this: `..` and tostring() round large ones.
local function text(number) return string.format('%.0f', number) end

local function whole(digits, most)
  if not digits or #digits > 16 or not string.match(digits, '^%d+$') then return nil end
  local number = tonumber(digits)
  if number <= most then return number end
end

local function hex(digits) return #digits == 32 and string.match(digits, '^[0-9a-f]+$') and digits end

local FIELDS = {'since', 'last', 'schedule', 'server', 'open', 'slot', 'others', 'returned', 'done', 'paused'}

local function fields(command)
  local values = redis.call('HMGET', command.job, unpack(FIELDS))
  for i = 1, #FIELDS do values[i] = values[i] or '' end
  return values
end

-- The parts of a list; nothing, if one of them is none of ours.
local function list(joined, part)
  local all = {}
  if joined ~= '' then
    for one in string.gmatch(joined .. ',', '([^,]*),') do
      local read = part(one)
      if not read then return nil end
      all[#all + 1] = read
    end
  end
  return all
end

local function unended(one)
  local tick, nonce, attempt = string.match(one, '^(%d+):([0-9a-f]+):(%d+)$')
  if not tick or not hex(nonce) then return nil end
  local run = {tick = whole(tick, LAST_SECOND), nonce = nonce, attempt = whole(attempt, 4294967295)}
  return run.tick and run.attempt and run
end

local function back(one)
  local tick, attempts = string.match(one, '^(%d+):(%d+)$')
  local read = tick and {tick = whole(tick, LAST_SECOND), attempts = whole(attempts, 4294967295)}
  return read and read.tick and read.attempts and read
end

local function running(open)
  local tick, nonce, attempt, began, term, incarnation, id =
    string.match(open, '^(%d+):([0-9a-f]+):(%d+):(%d+):(%d+):([0-9a-f]+):([!-~]+)$')
  if not tick or not hex(nonce) or not hex(incarnation) or #id > 256 then return nil end
  local run = {tick = whole(tick, LAST_SECOND), nonce = nonce, attempt = whole(attempt, 4294967295), id = id}
  return run.tick and run.attempt and whole(began, MOST) and whole(term, MOST) and run
end

-- A job's record; nothing, if there is none; or the name of a field that somebody else has written.
local function read(command)
  local f = fields(command)
  if f[1] == '' and f[2] == '' then return nil end
  local job = {schedule = f[3], server = f[4], done = f[9]}
  if f[10] ~= '' then
    local till, note = string.match(f[10], '^(%d+) (.*)$')
    job.paused, job.note = whole(till, LAST_SECOND), note
    if not job.paused then return nil, 'paused' end
  end
  if f[5] ~= '' then
    job.open = running(f[5])
    if not job.open then return nil, 'open' end
    local lasts, ends = string.match(f[6], '^(%d+):(%d+)$')
    job.open.slot, job.open.slot_end = whole(lasts, MOST), whole(ends, MOST)
    if not job.open.slot or not job.open.slot_end then return nil, 'slot' end
  elseif f[6] ~= '' then
    return nil, 'slot'
  end
  job.since, job.last = whole(f[1], LAST_SECOND), whole(f[2], LAST_SECOND)
  if not job.since then return nil, 'since' end
  if not job.last then return nil, 'last' end
  job.others, job.returned = list(f[7], unended), list(f[8], back)
  if not job.others then return nil, 'others' end
  if not job.returned then return nil, 'returned' end
  if f[9] ~= '' and not hex(f[9]) then return nil, 'done' end
  return job
end

local function joined(all)
  local texts = {}
  for i, one in ipairs(all) do
    texts[i] = one.nonce and table.concat({text(one.tick), one.nonce, text(one.attempt)}, ':')
      or text(one.tick) .. ':' .. text(one.attempts)
  end
  return table.concat(texts, ',')
end

-- Writes into a hash. A PERSIST changes nothing and is never refused for want of memory; after it, nothing is.
local function write(key, changes)
  local pairs_of = {}
  for name, value in pairs(changes) do
    pairs_of[#pairs_of + 1] = name
    pairs_of[#pairs_of + 1] = value
  end
  redis.call('PERSIST', key)
  redis.call('HSET', key, unpack(pairs_of))
end

-- Adds to the history. If that cannot be written, what it tells of has happened all the same.
local function note(command, kind, rest)
  local trimmed = redis.pcall('LTRIM', command.runs, 1 - HISTORY, -1)
  if type(trimmed) == 'table' and trimmed.err then return trimmed end
  return redis.pcall('RPUSH', command.runs, table.concat({kind, text(now_us), rest}, ' '))
end

-- What this server is called, and since which second that is known: what was claimed before may have been forgotten. Nothing
-- for the second, if it is not written down.
local function server(command)
  local f = redis.call('HMGET', command.record, 'server', 'lost')
  local name = identity() or f[1] or '-'
  local second, of = string.match(f[2] or '', '^(%d+) (.+)$')
  return name, of == name and whole(second, LAST_SECOND) or nil
end

-- The slot of a run, from now on.
local function slot(command)
  return text(command.slot) .. ':' .. text(now_us + command.slot)
end

-- Takes out the run with this nonce, if it has not ended, and notes what is to be written for it.
local function close(job, nonce, changes)
  if job.open and job.open.nonce == nonce then
    changes.open, changes.slot = '', ''
    return job.open
  end
  for i, run in ipairs(job.others) do
    if run.nonce == nonce then
      table.remove(job.others, i)
      changes.others = joined(job.others)
      return run
    end
  end
end
