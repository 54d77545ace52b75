-- Says where users stand, and changes nothing.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 winners, 5 stock
-- ARGV  users
-- returns  {ms, state, stock state, epoch, stopped ms}, then for each user {status, number, deadline in sale time,
--          mark}; nothing at all when the sale is not here
local m = read(KEYS[1], fields({ 'served', 'epoch', 'held' }))
if not m then
  return {}
end
local ms = math.floor(now() / 1000)
local still = stopped(m, ms)
local served = tonumber(m.served)
local replies = { { int(ms), state(m, ms), stock_state(left(KEYS[5]), m.held), m.epoch, int(still) } }
for i, user in ipairs(ARGV) do
  replies[i + 1] = { place(KEYS[2], KEYS[3], KEYS[4], user, served, ms - still) }
end
return replies
