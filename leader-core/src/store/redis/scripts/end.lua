local operations = {acquire = acquire, renew = renew, release = release, inspect = inspect}
local answers = {}
for i = 1, #KEYS / 2 do
  local a = 2 + (i - 1) * WIDTH
  local command = {
    lease = KEYS[2 * i - 1], record = KEYS[2 * i],
    id = ARGV[a + 2], incarnation = ARGV[a + 3], ttl = tonumber(ARGV[a + 4]), floor = number(ARGV[a + 5]),
    term = tonumber(ARGV[a + 6]), continues = ARGV[a + 7] == '1', take = ARGV[a + 8] == '1',
    jobs = ARGV[a + 9],
  }
  -- One key of a wrong type must not fail its neighbours.
  local done, answer = pcall(operations[ARGV[a + 1]], command)
  if not done then
    answer = {'error', type(answer) == 'table' and answer.err or tostring(answer)}
  end
  answers[i] = answer
end
return answers
