-- Takes stock for each grab of a call, as if they had come one by one. A grab takes all of its units or none; stock,
-- the buyer's mark and the order for the outbox change together.
--
-- An answer already given comes before everything that may have changed since: who repeats a request that succeeded
-- gets that order even when the sale has closed, and after its release takes nothing under the dead order.
--
-- All checks of a grab come before its writes, and the first write is one that Redis refuses when memory is short, so
-- that none can fail after the first.
--
-- Without a line nobody holds grabs back when orders pile up in the outbox, so then a limit of its length does.
--
-- Units that came into such a sale when it had none are off sale for a moment; see REST.
--
-- Of an item that is not there any more everybody is told so, whether it is their turn or not: it is true for all, and
-- who had a turn when the last unit went is no latecomer.
--
-- KEYS  1 meta, 2 stock, 3 seats, 4 turns, 5 winners, 6 past, 7 outbox, 8 away, 9 draw, then the limit keys of each
--       grab
-- ARGV  1 user limit, 2 its window, 3 address limit, 4 its window (microseconds), 5 the longest outbox that takes
--       orders of a sale without a line (0 = any), then for each grab: user, item, qty, request id, order id
-- returns  {ms, state, stock state before the call}, then for each grab
--          {0, mark, 0 | 1 replayed | 2 replayed and released since}; {-1, mark} has a live order;
--          {-2, units left of the item, stock state}; {-3} no turn; {-4} not open; {-5, which limit, microseconds to
--          wait}; {-6} no such item; {-7} recovering, or the outbox is full; {-8, limit} qty above the limit; nothing
--          at all when the sale is not here
local k = { turns = KEYS[4], draw = KEYS[9] }
local m = read(KEYS[1], fields(LINE, { 'limit', 'hold', 'held', 'rests' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local sale_ms = ms - stopped(m, ms)
local limit, hold, held = tonumber(m.limit), tonumber(m.hold), tonumber(m.held)
local resting = m.order == 'off' and ms < tonumber(m.rests or '0')
local jam = tonumber(ARGV[5])
local room = (m.order ~= 'off' or jam == 0) and math.huge or jam - redis.call('XLEN', KEYS[7])

local function grab(user, item, qty, request, order)
  local mark = redis.call('HGET', KEYS[5], user)
  if mark then
    local _, _, _, _, _, before = mark_parts(mark)
    if before == request then
      return { 0, mark, 1 }
    end
    return { -1, mark }
  end
  local past = redis.call('HGET', KEYS[6], user)
  if past then
    local _, _, _, _, _, before = mark_parts(past)
    if before == request then
      return { 0, past, 2 }
    end
  end
  if phase ~= 'open' then
    return { -4 }
  end
  local units = tonumber(redis.call('HGET', KEYS[2], item) or '-1')
  if units < 0 then
    return { -6 }
  end
  if units == 0 then
    return { -2, 0, stock_state(0, held) }
  end
  if resting then
    return { -2, 0, 'held' }
  end
  local ticket, number
  if m.order ~= 'off' then
    ticket = redis.call('HGET', KEYS[3], user)
    number = ticket and int(number_of(k, m, tonumber(ticket)))
    local deadline = number and redis.call('ZSCORE', k.turns, number)
    if not deadline or tonumber(deadline) <= sale_ms then
      return { -3 }
    end
  end
  if qty < 1 or qty > limit then
    return { -8, limit }
  end
  if units < qty then
    return { -2, units, stock_state(units, held) }
  end
  if room <= 0 then
    return { -7 }
  end
  room = room - 1
  local pay_by = hold > 0 and int(ms + hold) or '0'
  mark = mark_of(order, item, int(qty), int(ms), pay_by, request)
  redis.call('HINCRBY', KEYS[2], item, -qty)
  redis.call('HINCRBY', KEYS[1], 'w:' .. item, qty)
  redis.call('HSET', KEYS[5], user, mark)
  redis.call('XADD', KEYS[7], '*', 'user', user, 'mark', mark)
  if hold > 0 then
    held = redis.call('HINCRBY', KEYS[1], 'held', qty)
  end
  if number then
    redis.call('ZREM', k.turns, number)
    redis.call('ZREM', KEYS[8], ticket)
  end
  return { 0, mark, 0 }
end

local replies = { { int(ms), phase, stock_state(left(KEYS[2]), held) } }
for i = 1, (#ARGV - 5) / 5 do
  local a = 5 + 5 * (i - 1)
  local reply = refused(9, i, at)
  if not reply then
    if phase == 'recovering' then
      reply = { -7 }
    else
      reply = grab(ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5])
    end
  end
  replies[#replies + 1] = reply
end
return replies
