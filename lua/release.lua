-- Gives the stock of an order back, once: only while the user's mark is this order. The mark moves to `past`, so that a
-- late repeat of the grab finds the order it made. What happened is announced when a status is given.
--
-- KEYS  1 meta, 2 stock, 3 winners, 4 past, 5 news
-- ARGV  1 status to announce, or '', 2 user, 3 order id, 4 item, 5 qty, 6 at, 7 pay_by, 8 request id
-- returns  1 stock given back, 0 nothing to give back, -1 the sale is not here
if redis.call('EXISTS', KEYS[1]) == 0 then
  return -1
end
local user, order = ARGV[2], ARGV[3]
local told = mark_of(order, ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
local mark = redis.call('HGET', KEYS[3], user)
local released = 0
if mark then
  local id, item, qty, _, pay_by = mark_parts(mark)
  if id == order then
    redis.call('HINCRBY', KEYS[2], item, qty)
    redis.call('HSET', KEYS[4], user, mark)
    redis.call('HDEL', KEYS[3], user)
    if pay_by ~= '0' then
      redis.call('HINCRBY', KEYS[1], 'held', -tonumber(qty))
    end
    released = 1
  end
end
if ARGV[1] ~= '' then
  tell(KEYS[1], KEYS[5], 't', 'order', 'u', user, 's', ARGV[1], 'm', told)
end
return released
