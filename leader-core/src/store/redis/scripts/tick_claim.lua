-- The claim's run takes the place of the open one.
local function run(command, job, tick, attempt, changes)
  if job.open then
    local others = job.others
    others[#others + 1] = job.open
    if #others > KEPT then table.remove(others, 1) end
    changes.others = joined(others)
  end
  changes.open = table.concat({
    text(tick), command.nonce, text(attempt), text(now_us), command.term, command.incarnation, command.id,
  }, ':')
  changes.slot = slot(command)
  write(command.job, changes)
  note(command, 'c', table.concat({text(tick), text(attempt), command.id}, ' '))
  return {'run', text(tick), attempt}
end

-- A tick is given up.
local function over(command, tick, attempts, changes)
  write(command.job, changes)
  note(command, 'x', text(tick) .. ' ' .. text(attempts))
  return {'over', text(tick), attempts}
end

-- A run holds the job.
local function busy(command, open)
  local left = open.slot_end - now_us
  local longest = math.max(command.slot, open.slot)
  if left > longest then
    -- It was set before this server's clock was set back: it is cut.
    left = longest
    write(command.job, {slot = text(open.slot) .. ':' .. text(now_us + longest)})
  end
  return {'busy', text(left), open.id}
end

-- How long until a tick is due; nothing, if it is. Asked also of one that was claimed before: this clock may have been set back
-- since.
local function early(tick)
  local left = tick * 1000000 - now_us
  return left > 0 and {'early', text(left)}
end

-- A run whose slot is over without an end, with delivery at least once.
local function take_over(command, job)
  local open = job.open
  if open.attempt >= command.max_attempts or now_us - open.slot_end > command.retry_within then
    return over(command, open.tick, open.attempt, {open = '', slot = ''})
  end
  if open.tick ~= command.tick then return {'take', text(open.tick), open.attempt} end
  local wait = early(open.tick)
  if wait then return wait end
  job.open = nil
  return run(command, job, open.tick, open.attempt + 1, {})
end

-- A tick that nobody has claimed, as far as the record tells.
local function fresh(command, job, other, name, lost)
  if job.last > command.expect then return {'moved', text(job.last)} end
  local last, floor = math.max(command.expect, other or 0), 0
  -- Who vouches knows what was claimed, and at least once does not mind.
  if job.server ~= name and not command.vouch and not command.at_least_once then
    floor = math.max(job.since, lost)
  end
  if job.schedule ~= command.schedule then floor = math.max(floor, command.floor) end
  if command.tick <= last or command.tick <= floor then return {'already', text(last), text(floor)} end
  local wait = early(command.tick)
  if wait then return wait end

  local changes = {last = text(command.tick), schedule = command.schedule, server = name}
  if job.server ~= name and #job.returned > 0 then
    changes.returned = ''
    note(command, 'm', table.concat({text(job.returned[1].tick), text(#job.returned), FORGOTTEN}, ' '))
  end
  if job.server ~= name and not command.at_least_once then
    -- A run of before may have been given back since, and run again: its giver asks once more if it got no answer.
    -- Where runs exclude each other, none of them is on any more; whether they ever were, nobody will tell.
    local function forgotten(run) note(command, 'm', table.concat({text(run.tick), '1', FORGOTTEN}, ' ')) end
    if command.forbid then
      if job.open then forgotten(job.open) end
      for _, run in ipairs(job.others) do forgotten(run) end
    end
    job.open, job.others, changes.others = nil, {}, ''
  end
  if command.missed ~= '' then note(command, 'm', command.missed) end
  if other and other < command.tick then write(command.old, {last = text(command.tick)}) end
  return run(command, job, command.tick, 1, changes)
end

-- Claims a tick.
local function claim(command)
  if now_us > command.not_after then return {'late'} end
  local group = redis.call('HMGET', command.record, 'term', 'incarnation')
  if redis.call('GET', command.lease) ~= command.id or group[1] ~= command.term or group[2] ~= command.incarnation then
    return {'fenced'}
  end
  local name, lost = server(command)
  local job, strange = read(command)
  local other
  if command.old ~= '' then
    local value = redis.call('HMGET', command.old, 'last')[1] or ''
    other = whole(value, LAST_SECOND)
    if value ~= '' and not other and job then strange = 'last' end
  end
  if not lost then
    lost = now_s
    write(command.record, {lost = text(lost) .. ' ' .. name})
  end
  if strange then return {'corrupt', strange} end
  if not job then return {'unknown'} end

  local open, exclusive = job.open, command.forbid or command.at_least_once
  if open and open.nonce == command.nonce then
    -- Asked again, because the answer was lost. Its body begins now: so does its slot.
    write(command.job, {slot = slot(command)})
    return {'run', text(open.tick), open.attempt}
  end
  for _, earlier in ipairs(job.others) do
    if earlier.nonce == command.nonce and not exclusive then return {'run', text(earlier.tick), earlier.attempt} end
  end
  if job.done == command.nonce then return {'done'} end
  if job.paused and now_us < job.paused * 1000000 then return {'paused', text(job.paused), job.note} end
  if open and exclusive then
    if open.slot_end > now_us then return busy(command, open) end
    if command.at_least_once then return take_over(command, job) end
  end
  -- What was given back before the server's memory was lost may have been run since.
  if job.server == name or command.at_least_once then
    for i, given_back in ipairs(job.returned) do
      if given_back.tick == command.tick then
        local spent = command.at_least_once and given_back.attempts >= command.max_attempts
        local wait = not spent and early(given_back.tick)
        if wait then return wait end
        table.remove(job.returned, i)
        local changes = {returned = joined(job.returned)}
        if spent then return over(command, given_back.tick, given_back.attempts, changes) end
        return run(command, job, given_back.tick, given_back.attempts + 1, changes)
      end
    end
    local first = job.returned[1]
    if first then return {'take', text(first.tick), first.attempts} end
  end
  return fresh(command, job, other, name, lost)
end
