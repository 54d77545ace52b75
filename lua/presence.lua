-- Notes for seats who is here and who is not: a node tells what became of its connections, also again after it was
-- taken for dead, and how long polls are good. Telling it twice changes nothing.
--
-- KEYS  1 meta, 2 turns, 3 gone, 4 away, 5 recall, 6 draw, 7 conn, 8 news
-- ARGV  1 node, then for each seat: ticket, 'c' a connection is here, '' none is any more, or for how many ms from now
--       a poll is good (which may be less than was said before)
-- returns  1, or -1 when the sale is not here
local k = {
  meta = KEYS[1], turns = KEYS[2], gone = KEYS[3], away = KEYS[4], recall = KEYS[5], draw = KEYS[6], conn = KEYS[7],
  news = KEYS[8],
}
local m = read(k.meta, fields(LINE))
if not m then
  return -1
end
local ms = math.floor(now() / 1000)
local sale_ms = ms - stopped(m, ms)
for i = 2, #ARGV, 2 do
  local ticket, here = tonumber(ARGV[i]), ARGV[i + 1]
  if here == 'c' then
    arrive(k, m, ticket, number_of(k, m, ticket), ARGV[1])
  elseif here == '' then
    depart(k, m, ticket, { [ARGV[1]] = true }, sale_ms)
  elseif redis.call('ZSCORE', k.away, ticket) then
    redis.call('ZADD', k.away, int(sale_ms + tonumber(here)), ticket)
  end
end
return 1
