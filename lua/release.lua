-- Gives the stock of orders that ended back, each once: only while the user's mark is that order. The mark moves to
-- `past`, so that a late repeat of the grab finds the order it made.
--
-- Recovery, where marks may be lost, puts the order into `past` without one too. It gives its orders from the oldest to
-- the newest, so the newest one of a user stays there.
--
-- KEYS  1 meta, 2 stock, 3 winners, 4 past, 5 news
-- ARGV  1 'ended' announces the orders to their shoppers, and does nothing while the sale recovers; 'recovery' does
--       neither, 2 the traces of those that are followed (see traces_of), then for each order: user, order id,
--       item, qty, at, pay_by, request id, status
-- returns  for each order 1 stock given back, 0 nothing to give back; nothing at all when the sale is not here, or
--          recovers
local m = read(KEYS[1], { 'run' })
if not m or (ARGV[1] == 'ended' and m.run ~= run_id()) then
  return {}
end
local replies, traces = {}, traces_of(ARGV[2])
for i = 1, (#ARGV - 2) / 8 do
  local a = 2 + 8 * (i - 1)
  local user, order = ARGV[a + 1], ARGV[a + 2]
  local told = mark_of(order, ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7])
  local mark = redis.call('HGET', KEYS[3], user)
  local reply = 0
  if mark then
    local id, item, qty, _, pay_by = mark_parts(mark)
    if id == order then
      supplied(KEYS[1], KEYS[2])
      redis.call('HINCRBY', KEYS[2], item, qty)
      redis.call('HINCRBY', KEYS[1], 'w:' .. item, -tonumber(qty))
      redis.call('HSET', KEYS[4], user, mark)
      redis.call('HDEL', KEYS[3], user)
      if pay_by ~= '0' then
        redis.call('HINCRBY', KEYS[1], 'held', -tonumber(qty))
      end
      reply = 1
    end
  end
  if ARGV[1] == 'ended' then
    tell_order(KEYS[1], KEYS[5], user, ARGV[a + 8], told, traces[i])
  elseif reply == 0 then
    redis.call('HSET', KEYS[4], user, told)
  end
  replies[i] = reply
end
return replies
