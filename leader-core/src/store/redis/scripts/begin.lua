-- One call for many groups: each command has two keys, the lease and the record, and WIDTH arguments. What is computed once
-- for all of them is here. No line with an interpreter: Redis refuses such scripts whole when its memory is full.
--
-- Numbers that leave Lua go through `text`: `..` and tostring() round large ones.

local WIDTH = 9
-- Above it not every whole number can be told from the next one.
local MOST = 9007199254740991

local shortest_quarantine, trusts_fresh = tonumber(ARGV[1]), ARGV[2] == 'trust'

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_us = time[1] * 1000000 + time[2]

local function text(number) return string.format('%.0f', number) end
local function number(text) return tonumber(text) or 0 end

-- What is known of a group. Instants are milliseconds of this server's clock.
local function read(command)
  local f = redis.call('HMGET', command.record,
    'term', 'highest', 'id', 'incarnation', 'server', 'quarantine', 'reason', 'ttl', 'until', 'older')
  local group = {
    value = redis.call('GET', command.lease),
    term = number(f[1]), highest = number(f[2]), id = f[3], incarnation = f[4], server = f[5], quarantine = number(f[6]),
    reason = f[7], ttl = number(f[8]), ends = number(f[9]), older = number(f[10]),
  }
  group.highest = math.max(group.highest, group.term)
  if group.highest >= MOST or command.floor >= MOST then
    error({err = 'ERR the term has reached the largest number that a record can hold'})
  end
  -- The lease is of the last acquisition in the record; or of somebody who keeps none.
  group.recorded = group.value and group.value == group.id
  if group.value == command.id then
    group.own = group.recorded and group.incarnation == command.incarnation
    group.other_incarnation = group.recorded and not group.own
  end
  return group
end

-- How long the lease lasts, in milliseconds; nothing if it has no end.
local function remaining(command)
  local left = redis.call('PTTL', command.lease)
  if left >= 0 then return left end
end

-- Any script that finds another server than the one in the record, or no record, begins a quarantine: leases may have been
-- lost whose holders still believe in them. And whatever lasts longer than it can have been set to was set before this
-- server's clock was set back: it is cut.
local function note_server(command, group, changes)
  local server = identity() or group.server or '-'
  local quarantine_end = now + math.max(command.ttl, group.ttl, shortest_quarantine)
  if group.server ~= server then
    local reason = group.server and 'server' or 'record'
    changes.server, changes.ttl = server, text(math.max(group.ttl, command.ttl))
    group.ttl = math.max(group.ttl, command.ttl)
    if group.server or not trusts_fresh then
      group.quarantine, group.reason = quarantine_end, reason
      changes.quarantine, changes.reason = text(group.quarantine), reason
    end
  end
  if group.quarantine > quarantine_end then
    group.quarantine = quarantine_end
    changes.quarantine = text(group.quarantine)
  end
  local longest = now + math.max(group.ttl, command.ttl)
  for name, field in pairs({ends = 'until', older = 'older'}) do
    if group[name] > longest then
      group[name] = longest
      changes[field] = text(longest)
    end
  end
  return longest
end

-- Writes a change to the record. A PERSIST changes nothing and is never refused for want of memory; after it, nothing is.
local function write(command, changes)
  local fields = {}
  for name, value in pairs(changes) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  if #fields > 0 then
    redis.call('PERSIST', command.record)
    redis.call('HSET', command.record, unpack(fields))
  end
end

-- Gives the lease its time and the record what belongs to it; both, or an error and neither. What is never refused for want
-- of memory comes first: an own lease can be taken back or renewed, a fresh one is an error.
local function grant(command, group, lasts, changes)
  local before = remaining(command)
  if group.value then
    redis.call('PEXPIRE', command.lease, lasts)
  else
    redis.call('SET', command.lease, command.id, 'NX', 'PX', lasts)
  end
  local written, failure = pcall(write, command, changes)
  if written then return end
  -- Such as a command that the server's user may not run. A lease without its record would belong to nobody, and whoever
  -- tried again and again to take it would keep it from all others.
  if not group.value then
    redis.pcall('DEL', command.lease)
    redis.pcall('PEXPIRE', command.lease, 1)
  elseif before then
    redis.pcall('PEXPIRE', command.lease, math.max(before, 1))
  end
  error(failure, 0)
end

-- Holder, term, milliseconds left, another incarnation of the asker's id, not of the record. An incarnation whose term is
-- older than one that the asker has seen took nothing from it: the server has lost its memory of what came later.
local function holder(command, group)
  local same_id = group.other_incarnation and group.term >= command.floor
  return group.value, text(group.recorded and group.term or 0), remaining(command) or command.ttl,
    same_id and 1 or 0, group.recorded and 0 or 1
end
