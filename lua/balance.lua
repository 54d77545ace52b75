-- Adds up a sale: for each item, stock and the units of all winners must make the total, at every moment. The units of
-- winners are counted along with every mark, because reading all marks would hold everybody else up. Writes nothing.
--
-- KEYS  1 meta, 2 stock
-- returns  {ms, newest news}, then for each item {item, total, units left, units of winners}; nothing at all when the
--          sale is not here
local m = read(KEYS[1], { 'items', 'news' })
if not m then
  return {}
end
local replies = { { int(math.floor(now() / 1000)), m.news } }
for item in string.gmatch(m.items, '%S+') do
  replies[#replies + 1] = {
    item,
    redis.call('HGET', KEYS[1], 't:' .. item) or '-1',
    redis.call('HGET', KEYS[2], item) or '-1',
    redis.call('HGET', KEYS[1], 'w:' .. item) or '0',
  }
end
return replies
