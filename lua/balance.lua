-- Adds up a sale: for each item, stock and the units of all winners must make the total, at every moment. It reads
-- every winner, which is bounded by the stock, and writes nothing.
--
-- KEYS  1 meta, 2 stock, 3 winners
-- returns  {ms}, then for each item {item, total, units left, units of winners}; nothing at all when the sale is not
--          here
local m = read(KEYS[1], { 'items' })
if not m then
  return {}
end
local won = {}
for _, mark in ipairs(redis.call('HVALS', KEYS[3])) do
  local _, item, qty = mark_parts(mark)
  won[item] = (won[item] or 0) + tonumber(qty)
end
local replies = { { int(math.floor(now() / 1000)) } }
for item in string.gmatch(m.items, '%S+') do
  replies[#replies + 1] = {
    item,
    redis.call('HGET', KEYS[1], 't:' .. item) or '-1',
    redis.call('HGET', KEYS[2], item) or '-1',
    int(won[item] or 0),
  }
end
return replies
