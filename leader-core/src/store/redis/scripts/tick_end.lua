-- The record as it is told: the server's name, since when that is known, and the fields.
local function told(command, kind, name, lost)
  return {kind, name, text(lost or now_s), unpack(fields(command))}
end

local function register(command)
  local name, lost = server(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  if not job then
    local known = tonumber(command.known)
    local exact = not known or known >= now_s
    write(command.job, {
      since = text(now_s), last = text(exact and now_s or known), schedule = command.schedule, server = exact and name or '',
    })
  end
  return told(command, 'registered', name, lost)
end

local function load(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  if not job then return {'unknown'} end
  return told(command, 'loaded', server(command))
end

-- The slot of a run lasts from now on.
local function keep(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  if not job or not job.open or job.open.nonce ~= command.nonce then return {'gone'} end
  write(command.job, {slot = slot(command)})
  return {'kept'}
end

-- A run has ended, whatever the term is by now.
local function finish(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  -- Told again, because the answer was lost.
  if job and job.done == command.nonce then return {'ended'} end
  local changes = {done = command.nonce}
  local run = job and close(job, command.nonce, changes)
  if run then write(command.job, changes) end
  note(command, 'e', (run and text(run.tick) or '-') .. ' ' .. command.rest)
  return {run and 'ended' or 'other'}
end

-- A claim is given back.
local function give_back(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  local changes = {}
  local run = job and close(job, command.nonce, changes)
  if not run then return {'not open'} end
  local returned = job.returned
  if (run.tick ~= job.last and not command.keep) or #returned >= KEPT then
    write(command.job, changes)
    return {'superseded', text(run.tick)}
  end
  local place = #returned + 1
  for i = #returned, 1, -1 do
    if returned[i].tick > run.tick then place = i end
  end
  table.insert(returned, place, {
    tick = run.tick, attempts = command.begun and run.attempt or math.max(run.attempt - 1, 0),
  })
  changes.returned = joined(returned)
  write(command.job, changes)
  return {'returned'}
end

local function pause(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  if not job then return {'unknown'} end
  write(command.job, {paused = command.rest})
  return {'changed'}
end

local function resume(command)
  local job, strange = read(command)
  if strange then return {'corrupt', strange} end
  if not job then return {'unknown'} end
  -- It stays in the record, as one that has ended: whoever leads next is not to make up for its ticks either.
  if job.paused and now_us < job.paused * 1000000 then
    write(command.job, {paused = text(now_s) .. ' ' .. job.note})
  end
  return {'changed'}
end

local function write_down(command)
  local written = note(command, command.kind, command.rest)
  if type(written) == 'table' and written.err then error(written) end
  return {'noted'}
end

local function history(command)
  if command.limit == 0 then return {'history'} end
  return {'history', unpack(redis.call('LRANGE', command.runs, -command.limit, -1))}
end

local operations = {
  register = register, load = load, claim = claim, keep = keep, ['end'] = finish, ['give back'] = give_back, pause = pause,
  resume = resume, note = write_down, history = history,
}
local answers = {text(now_us)}
for i = 1, #KEYS / 5 do
  local k, a = (i - 1) * 5, (i - 1) * WIDTH
  local flags = ARGV[a + 5]
  local function flag(letter) return string.find(flags, letter, 1, true) ~= nil end
  local command = {
    lease = KEYS[k + 1], record = KEYS[k + 2], job = KEYS[k + 3], runs = KEYS[k + 4],
    old = KEYS[k + 5] ~= KEYS[k + 3] and KEYS[k + 5] or '',
    id = ARGV[a + 2], incarnation = ARGV[a + 3], nonce = ARGV[a + 4],
    forbid = flag('f'), at_least_once = flag('a'), vouch = flag('v'), begun = flag('b'), keep = flag('k'),
    term = ARGV[a + 6], tick = tonumber(ARGV[a + 7]), expect = tonumber(ARGV[a + 8]), floor = tonumber(ARGV[a + 9]),
    not_after = tonumber(ARGV[a + 10]), slot = tonumber(ARGV[a + 11]), max_attempts = tonumber(ARGV[a + 12]),
    retry_within = tonumber(ARGV[a + 13]), schedule = ARGV[a + 14], missed = ARGV[a + 15], known = ARGV[a + 16],
    kind = ARGV[a + 17], rest = ARGV[a + 18], limit = tonumber(ARGV[a + 17]),
  }
  -- One key of a wrong type must not fail its neighbours.
  local done, answer = pcall(operations[ARGV[a + 1]], command)
  if not done then
    answer = {'error', type(answer) == 'table' and answer.err or tostring(answer)}
  end
  answers[i + 1] = answer
end
return answers
