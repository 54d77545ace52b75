-- Gives up a seat. The ticket is named so that a replay cannot hit a newer seat of the same user.
--
-- While a lottery is not drawn there is no number to give up: before its entries are frozen the ticket is left out of
-- the draw, and after that it is given up when the draw is done.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 gone, 5 news, 6 away, 7 recall, 8 draw, 9 conn, 10 dropouts, 11 leavers
-- ARGV  1 user, 2 ticket
-- returns  1 given up, 0 no such seat (any more), -1 the sale is not here
local k = {
  meta = KEYS[1], seats = KEYS[2], turns = KEYS[3], gone = KEYS[4], news = KEYS[5], recall = KEYS[7], draw = KEYS[8],
}
local m = read(k.meta, fields(LINE))
if not m then
  return -1
end
if redis.call('HGET', k.seats, ARGV[1]) ~= ARGV[2] then
  return 0
end
local number = number_of(k, m, tonumber(ARGV[2]))
if number > 0 then
  redis.call('SETBIT', k.gone, number, 1)
elseif m.frozen then
  redis.call('SADD', KEYS[11], ARGV[2])
else
  redis.call('SETBIT', KEYS[10], ARGV[2], 1)
  redis.call('HINCRBY', k.meta, 'dropped', 1)
end
redis.call('HINCRBY', k.meta, 'left', 1)
tell(k.meta, k.news, 't', 'left', 'u', ARGV[1], 'n', ARGV[2])
redis.call('HDEL', k.seats, ARGV[1])
redis.call('HDEL', KEYS[9], ARGV[2])
redis.call('ZREM', KEYS[6], ARGV[2])
if number > 0 then
  redis.call('ZREM', k.turns, int(number))
  if redis.call('SETBIT', k.recall, number, 0) == 1 then
    redis.call('HINCRBY', k.meta, 'recalls', 1)
  end
end
return 1
