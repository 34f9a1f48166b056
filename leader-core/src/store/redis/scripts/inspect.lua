-- Tells who holds the lease. Changes nothing.
local function inspect(command)
  local group = read(command)
  if not group.value then return {'inspected'} end
  return {'inspected', holder(command, group)}
end
