-- Gives up a seat. The number is named so that a replay cannot hit a newer seat of the same user.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 gone, 5 news
-- ARGV  1 user, 2 number
-- returns  1 given up, 0 no such seat (any more), -1 the sale is not here
if redis.call('EXISTS', KEYS[1]) == 0 then
  return -1
end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  return 0
end
redis.call('SETBIT', KEYS[4], ARGV[2], 1)
redis.call('HINCRBY', KEYS[1], 'left', 1)
tell(KEYS[1], KEYS[5], 't', 'left', 'u', ARGV[1], 'n', ARGV[2])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[2])
return 1
