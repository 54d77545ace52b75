-- Takes stock for each grab of a call, as if they had come one by one. A grab takes all of its units or none; stock,
-- the buyer's mark and the order for the outbox change together.
--
-- An answer already given comes before everything that may have changed since: who repeats a request that succeeded
-- gets that order even when the sale has closed, and after its release takes nothing under the dead order.
--
-- What the grabs of a call need is read at once, and what they change is written at once, after the last of them was
-- decided, but for the windows of limits: a script spends its time on commands, not on decisions. The first write is
-- one that Redis refuses when memory is short, so that none can fail after the first.
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
--       orders of a sale without a line (0 = any), 6 the traces of those grabs that are followed (see traces_of), then
--       for each grab: user, item, qty, request id, order id
-- returns  {ms, state, stock state before the call}, then for each grab
--          {0, mark, 0 | 1 replayed | 2 replayed and released since}; {-1, mark} has a live order;
--          {-2, units left of the item, stock state}; {-3} no turn; {-4} not open; {-5, which limit, microseconds to
--          wait}; {-6} no such item; {-7} recovering, or the outbox is full; {-8, limit} qty above the limit; behind
--          them the figures of the limits that are on, three for each grab; nothing at all when the sale is not here
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

local users, known = {}, {}
for a = 7, #ARGV, 5 do
  if not known[ARGV[a]] then
    known[ARGV[a]] = true
    users[#users + 1] = ARGV[a]
  end
end

-- ask returns what a hash has of each of the users.
local function ask(key)
  local found, values = {}, redis.call('HMGET', key, unpack(users))
  for i, user in ipairs(users) do
    found[user] = values[i] or nil
  end
  return found
end

local marks, past, units, total = ask(KEYS[5]), ask(KEYS[6]), {}, 0
local flat = redis.call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
  units[flat[i]] = tonumber(flat[i + 1])
  total = total + units[flat[i]]
end

-- turns are the tickets, numbers and deadlines of those who have a turn, by user.
local function read_turns()
  local turns, callers, numbers = {}, {}, {}
  local tickets = ask(KEYS[3])
  for _, user in ipairs(users) do
    if tickets[user] then
      callers[#callers + 1] = user
      local number = sorts(m) and int(number_of(k, m, tonumber(tickets[user]))) or tickets[user]
      numbers[#numbers + 1] = number
    end
  end
  if #callers > 0 then
    for i, deadline in ipairs(redis.call('ZMSCORE', k.turns, unpack(numbers))) do
      if deadline and tonumber(deadline) > sale_ms then
        turns[callers[i]] = { ticket = tickets[callers[i]], number = numbers[i] }
      end
    end
  end
  return turns
end

local turns = m.order ~= 'off' and read_turns()

local made, pay_by = int(ms), hold > 0 and int(ms + hold) or '0'
local limits = ARGV[1] ~= '0' or ARGV[3] ~= '0'

-- What the call changes.
local won, sold, holds, used, spent = {}, {}, 0, {}, {}
local traces, followed = traces_of(ARGV[6]), {}

local function grab(user, item, qty, request, order, trace)
  local mark = marks[user]
  if mark then
    local _, _, _, _, _, before = mark_parts(mark)
    if before == request then
      return { 0, mark, 1 }
    end
    return { -1, mark }
  end
  if past[user] then
    local _, _, _, _, _, before = mark_parts(past[user])
    if before == request then
      return { 0, past[user], 2 }
    end
  end
  if phase ~= 'open' then
    return { -4 }
  end
  local rest = units[item]
  if not rest then
    return { -6 }
  end
  if rest == 0 then
    return { -2, 0, stock_state(0, held + holds) }
  end
  if resting then
    return { -2, 0, 'held' }
  end
  local turn = turns and turns[user]
  if turns and not turn then
    return { -3 }
  end
  if qty < 1 or qty > limit then
    return { -8, limit }
  end
  if rest < qty then
    return { -2, rest, stock_state(rest, held + holds) }
  end
  if room <= 0 then
    return { -7 }
  end
  room = room - 1
  mark = mark_of(order, item, int(qty), made, pay_by, request)
  marks[user] = mark
  won[#won + 1] = user
  won[#won + 1] = mark
  followed[user] = trace
  units[item] = rest - qty
  sold[item] = (sold[item] or 0) + qty
  if hold > 0 then
    holds = holds + qty
  end
  if turn then
    turns[user] = nil
    used[#used + 1] = turn.number
    spent[#spent + 1] = turn.ticket
  end
  return { 0, mark, 0 }
end

local function write()
  redis.call('HSET', KEYS[5], unpack(won))
  for i = 1, #won, 2 do
    local trace = followed[won[i]]
    if trace then
      redis.call('XADD', KEYS[7], '*', 'user', won[i], 'mark', won[i + 1], 'trace', trace)
    else
      redis.call('XADD', KEYS[7], '*', 'user', won[i], 'mark', won[i + 1])
    end
  end
  for item, qty in pairs(sold) do
    redis.call('HINCRBY', KEYS[2], item, -qty)
    redis.call('HINCRBY', KEYS[1], 'w:' .. item, qty)
  end
  if holds > 0 then
    redis.call('HINCRBY', KEYS[1], 'held', holds)
  end
  if #used > 0 then
    redis.call('ZREM', k.turns, unpack(used))
    redis.call('ZREM', KEYS[8], unpack(spent))
  end
end

local replies = { { int(ms), phase, stock_state(total, held) } }
for i = 1, (#ARGV - 6) / 5 do
  local a = 6 + 5 * (i - 1)
  local reply = limits and refused(9, i, at)
  if not reply then
    if phase == 'recovering' then
      reply = { -7 }
    else
      reply = grab(ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), ARGV[a + 4], ARGV[a + 5], traces[i])
    end
  end
  replies[#replies + 1] = reply
end
if limits then
  replies[#replies + 1] = figures
end
if #won > 0 then
  write()
end
return replies
