-- Ends a recovery: from here on the sale is granted again on this run of the Redis server. The time it took is not
-- counted against anybody's turn.
--
-- KEYS  1 meta
-- returns  1 ready now, 0 was ready, -1 the sale is not here
local m = read(KEYS[1], fields({}))
if not m then
  return -1
end
if m.run == run_id() then
  return 0
end
local ms = math.floor(now() / 1000)
redis.call('HSET', KEYS[1], 'stopped', int(stopped(m, ms)), 'tick', int(ms), 'run', run_id())
return 1
