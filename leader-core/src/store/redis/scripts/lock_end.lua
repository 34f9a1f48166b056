-- Extends the lock of the acquisition that it names.
local function renew(command)
  local lock = read(command)
  if not is_named(command, lock) then return {'lost'} end
  extend(command, lock)
  return {'renewed'}
end

-- Ends the lock of the acquisition that it names; or whatever the asker holds, and its place.
local function release(command)
  local lock = read(command)
  if lock.nonce == command.nonce and (command.token == '' or lock.token == command.token) then
    free(command, 1)
    return {'released'}
  end
  if command.token == '' then leave(command) end
  return {'not held'}
end

-- Notes that the work is done, and ends the lock. If that was noted before, the answer was lost.
local function complete(command)
  local by = command.token .. ':' .. command.nonce
  if not is_named(command, read(command)) then
    return {redis.call('GET', command.done) == by and 'completed' or 'lost'}
  end
  -- Never refused for want of memory; after it, nothing is.
  redis.call('PEXPIRE', command.lock, command.ttl)
  if command.keep == '' then
    redis.call('SET', command.done, by)
  else
    redis.call('SET', command.done, by, 'PX', command.keep)
  end
  free(command, MANY)
  return {'completed'}
end

local function forget(command)
  return {'forgotten', redis.call('DEL', command.done)}
end

local operations = {lock = acquire, renew = renew, release = release, complete = complete, forget = forget}
local answers = {}
for i = 1, #KEYS / 4 do
  local k, a = (i - 1) * 4, 1 + (i - 1) * WIDTH
  local command = {
    lock = KEYS[k + 1], queue = KEYS[k + 2], waiting = KEYS[k + 3], done = KEYS[k + 4],
    nonce = ARGV[a + 2], member = ARGV[a + 2] .. ':' .. channels .. ARGV[a + 3], id = ARGV[a + 4], ttl = tonumber(ARGV[a + 5]),
    floor = tonumber(ARGV[a + 6]) or 0, token = ARGV[a + 7], place = tonumber(ARGV[a + 8]) or 0, once = ARGV[a + 9] == '1',
    keep = ARGV[a + 10],
  }
  -- One key of a wrong type must not fail its neighbours.
  local done, answer = pcall(operations[ARGV[a + 1]], command)
  if not done then
    answer = {'error', type(answer) == 'table' and answer.err or tostring(answer)}
  end
  answers[i] = answer
end
return answers
