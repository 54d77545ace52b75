-- Makes the draw of a lottery count, whose table stands complete in `draw`: from here on every seat has its number, and
-- the sale goes on. Those who left since the entries were frozen are given up. Doing it again changes nothing.
--
-- KEYS  1 meta, 2 draw, 3 gone, 4 leavers
-- ARGV  1 tickets, 2 live entries of the draw
-- returns  1 drawn now, 0 was drawn, -1 the sale is not here, or its draw is another one
local k = { draw = KEYS[2] }
local m = read(KEYS[1], fields(LINE))
if not m or m.frozen ~= ARGV[1] or m.live ~= ARGV[2] then
  return -1
end
if m.drawn == '1' then
  return 0
end
if redis.call('STRLEN', k.draw) ~= 4 * (tonumber(m.frozen) + tonumber(m.live)) then
  return -1
end
local ms = math.floor(now() / 1000)
redis.call('HSET', KEYS[1], 'stopped', int(stopped(m, ms)), 'tick', int(ms), 'drawn', 1)
m.drawn = '1'
for _, ticket in ipairs(redis.call('SMEMBERS', KEYS[4])) do
  redis.call('SETBIT', KEYS[3], number_of(k, m, tonumber(ticket)), 1)
  redis.call('HINCRBY', KEYS[1], 'left', 1)
end
redis.call('DEL', KEYS[4])
redis.call('HINCRBY', KEYS[1], 'v', 1)
return 1
