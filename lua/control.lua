-- Opens, pauses, resumes or closes a sale, at once; or has it put right again, as after a loss.
--
-- KEYS  1 meta
-- ARGV  1 'open', 'pause', 'resume', 'close' or 'recover'
-- returns  {state after it, opens, closes}; {} when the sale is not here; {-1, state} when the state does not allow it
local m = read(KEYS[1], fields({}))
if not m then
  return {}
end
local ms = math.floor(now() / 1000)
local phase, still = state(m, ms), stopped(m, ms)
local action = ARGV[1]
local allowed = {
  open = phase == 'scheduled' or phase == 'lobby' or phase == 'open',
  pause = phase ~= 'closed' and phase ~= 'recovering',
  resume = phase ~= 'closed' and phase ~= 'recovering',
  close = phase ~= 'recovering',
  recover = true,
}
if not allowed[action] then
  return { -1, phase }
end
if action == 'open' and phase ~= 'open' then
  m.opens = int(ms)
  m.lobby = int(math.min(tonumber(m.lobby), ms))
elseif action == 'pause' then
  m.paused = '1'
elseif action == 'resume' then
  m.paused = '0'
elseif action == 'close' and phase ~= 'closed' then
  m.closes = int(ms)
elseif action == 'recover' then
  m.run = 'asked'
  redis.call('HSET', KEYS[1], 'run', m.run)
end
redis.call('HSET', KEYS[1], 'tick', int(ms), 'stopped', int(still), 'opens', m.opens, 'lobby', m.lobby,
  'closes', m.closes, 'paused', m.paused)
redis.call('HINCRBY', KEYS[1], 'v', 1)
return { state(m, ms), m.opens, m.closes }
