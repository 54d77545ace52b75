-- Makes sure that live orders of the database have their mark here: an order whose mark was lost gets it back and takes
-- its stock, once. Orders whose shopper should hear of it are announced. Running it again changes nothing.
--
-- KEYS  1 meta, 2 stock, 3 winners, 4 past, 5 news
-- ARGV  1 status to announce, or '' to announce nothing, then for each order: user, order id, item, qty, at, pay_by,
--       request id
-- returns  for each order 0 marked, 1 marked now and its stock taken, 2 not enough stock, 3 released before, 4 the user
--          holds another order; nothing at all when the sale is not here
local m = read(KEYS[1], { 'held', 'news' })
if not m then
  return {}
end
local replies = {}
for i = 1, (#ARGV - 1) / 7 do
  local a = 1 + 7 * (i - 1)
  local user, order, item, qty = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4])
  local at, pay_by, request = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  local mark = redis.call('HGET', KEYS[3], user)
  local past = not mark and redis.call('HGET', KEYS[4], user)
  local reply
  if mark then
    reply = mark_parts(mark) == order and 0 or 4
  elseif past and mark_parts(past) == order then
    reply = 3
  elseif tonumber(redis.call('HGET', KEYS[2], item) or '0') < qty then
    reply = 2
  else
    redis.call('HINCRBY', KEYS[2], item, -qty)
    redis.call('HSET', KEYS[3], user, mark_of(order, item, int(qty), at, pay_by, request))
    if pay_by ~= '0' then
      redis.call('HINCRBY', KEYS[1], 'held', qty)
    end
    reply = 1
  end
  if ARGV[1] ~= '' and reply ~= 3 then
    local told = mark_of(order, item, int(qty), at, pay_by, request)
    tell(KEYS[1], KEYS[5], 't', 'order', 'u', user, 's', ARGV[1], 'm', told)
  end
  replies[i] = reply
end
return replies
