-- Makes sure that live orders of the database have their mark here: an order whose mark was lost gets it back and takes
-- its stock, once. A mark whose order needs no payment any more is kept without a pay_by, so that nobody waits for its
-- units. Running it again changes nothing but that the news are told again.
--
-- KEYS  1 meta, 2 stock, 3 winners, 4 past, 5 news
-- ARGV  1 '1' to announce the orders to their shoppers, or '0', 2 the traces of those that are followed (see
--       traces_of), then for each order: user, order id, item, qty, at, pay_by ('0' = needs no payment, or is paid),
--       request id, status
-- returns  for each order 0 marked, 1 marked now and its stock taken, 2 not enough stock, 3 released before, 4 the user
--          holds another order; nothing at all when the sale is not here
local m = read(KEYS[1], { 'held', 'news' })
if not m then
  return {}
end
local replies, traces = {}, traces_of(ARGV[2])
for i = 1, (#ARGV - 2) / 8 do
  local a = 2 + 8 * (i - 1)
  local user, order, item, qty = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4])
  local at, pay_by, request, status = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8]
  local mark = redis.call('HGET', KEYS[3], user)
  local past = not mark and redis.call('HGET', KEYS[4], user)
  local now_marked = mark_of(order, item, int(qty), at, pay_by, request)
  local reply
  if mark then
    local id, _, _, _, due = mark_parts(mark)
    reply = id == order and 0 or 4
    if reply == 0 and pay_by == '0' and due ~= '0' then
      redis.call('HSET', KEYS[3], user, now_marked)
      redis.call('HINCRBY', KEYS[1], 'held', -qty)
    end
  elseif past and mark_parts(past) == order then
    reply = 3
  elseif tonumber(redis.call('HGET', KEYS[2], item) or '0') < qty then
    reply = 2
  else
    redis.call('HINCRBY', KEYS[2], item, -qty)
    redis.call('HINCRBY', KEYS[1], 'w:' .. item, qty)
    redis.call('HSET', KEYS[3], user, now_marked)
    if pay_by ~= '0' then
      redis.call('HINCRBY', KEYS[1], 'held', qty)
    end
    reply = 1
  end
  if ARGV[1] == '1' and reply ~= 3 then
    tell_order(KEYS[1], KEYS[5], user, status, now_marked, traces[i])
  end
  replies[i] = reply
end
return replies
