-- Removes nodes whose lease has run out from the seats that they held connections of. A call looks at some of the seats
-- and the next one goes on there; a node is forgotten when one round has seen them all.
--
-- KEYS  1 meta, 2 turns, 3 gone, 4 away, 5 recall, 6 draw, 7 conn, 8 nodes
-- ARGV  1 about how many seats to look at
-- returns  1 when the round goes on, else 0
local k = {
  meta = KEYS[1], turns = KEYS[2], gone = KEYS[3], away = KEYS[4], recall = KEYS[5], draw = KEYS[6], conn = KEYS[7],
}
local m = read(k.meta, fields(LINE, { 'burying', 'buried' }))
if not m or m.run ~= run_id() then
  return 0
end
local ms = math.floor(now() / 1000)
local sale_ms = ms - stopped(m, ms)
local dead, leases, names = {}, {}, {}
local flat = redis.call('HGETALL', KEYS[8])
for i = 1, #flat, 2 do
  if tonumber(flat[i + 1]) <= sale_ms then
    dead[flat[i]] = true
    leases[flat[i]] = tonumber(flat[i + 1])
    names[#names + 1] = flat[i]
  end
end
-- A round is for those that were dead when it began; who was not, or is not any more, waits for the next.
local cursor, round = m.burying or '0', m.buried or ''
if cursor == '0' then
  round = table.concat(names, ' ')
end
if round == '' then
  return 0
end
local page = redis.call('HSCAN', k.conn, cursor, 'COUNT', ARGV[1])
for i = 1, #page[2], 2 do
  local since
  for node in string.gmatch(page[2][i + 1], '%S+') do
    if dead[node] then
      since = math.max(since or 0, leases[node])
    end
  end
  if since then
    depart(k, m, tonumber(page[2][i]), dead, since)
  end
end
local done = page[1] == '0'
if done then
  for node in string.gmatch(round, '%S+') do
    if dead[node] then
      redis.call('HDEL', KEYS[8], node)
    end
  end
  round = ''
end
redis.call('HSET', k.meta, 'burying', page[1], 'buried', round)
return done and 0 or 1
