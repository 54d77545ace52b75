-- Says where users stand, and changes nothing.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 winners, 5 stock, 6 gone, 7 away, 8 recall, 9 draw
-- ARGV  users
-- returns  {ms, state, stock state, epoch, stopped ms}, then for each user {status, ticket, number, deadline in sale
--          time, mark, 1 when recalled}; nothing at all when the sale is not here
local k = {
  meta = KEYS[1], seats = KEYS[2], turns = KEYS[3], winners = KEYS[4], gone = KEYS[6], away = KEYS[7], recall = KEYS[8],
  draw = KEYS[9],
}
local m = read(k.meta, fields(LINE, { 'epoch', 'held' }))
if not m then
  return {}
end
local ms = math.floor(now() / 1000)
local still = stopped(m, ms)
local replies = { { int(ms), state(m, ms), stock_state(left(KEYS[5]), m.held), m.epoch, int(still) } }
for i, user in ipairs(ARGV) do
  replies[i + 1] = { place(k, m, user, ms - still) }
end
return replies
