-- Run id and replication id: another one means another memory. Nothing, where INFO is not permitted.
local known_identity
local function identity()
  if known_identity == nil then
    local server, replication = redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication')
    known_identity = false
    if type(server) == 'string' and type(replication) == 'string' then
      local run, history = string.match(server, 'run_id:(%w+)'), string.match(replication, 'master_replid:(%w+)')
      known_identity = run and history and run .. ':' .. history or false
    end
  end
  return known_identity
end

