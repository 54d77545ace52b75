-- The one read of truth that every node makes regularly, and the only place where turns are given. Any node's call may
-- do the work: it depends on Redis time and on what stands here, not on who calls or how often.
--
-- Turns that ran out end. Then seats are called, as many as the smallest of these allows: the rate since the last call;
-- what the rate leaves in the last second (so that no second ever sees more than `rate`); the cap on outstanding turns;
-- `ratio` times the stock left. First come those who are recalled, from the lowest number on, then the line from the
-- cursor on. Of either at most 1,000 are passed a call. Numbers that were given up, and seats of whom nobody is here,
-- are passed without spending a turn; the latter are recalled when they are back within the grace.
--
-- When the stock is used up nobody can use a turn: who has one is recalled, and so comes first if units come back.
--
-- While orders pile up in the outbox beyond a limit, nobody else is called: what is sold must fit into Redis until the
-- broker takes orders again. Turns that were given go on.
--
-- KEYS  1 meta, 2 stock, 3 turns, 4 gone, 5 news, 6 outbox, 7 conn, 8 away, 9 recall, 10 nodes, 11 draw
-- ARGV  1 the newest news that the node knows (-1 = none, and none wanted), 2 the count of given up seats it knows
--       (-1 = none), 3 the most news to return, 4 the longest outbox with which turns are given (0 = any), 5 node, 6
--       the count of changes in who is recalled that it knows (-1 = none)
-- returns  {ms, state, stock state, stopped ms, settings version, epoch, served, issued, turns outstanding, turns given
--          in all, newest news, given up seats in all, held units, 1 when another call would give more turns at once,
--          count of changes in who is recalled, 1 when the node was not among the living and is to say who is there,
--          nodes that are dead, 1 when the numbers of a lottery are drawn, 1 when its entries are frozen,
--          supply, 1 when the sale is paused, whatever its state},
--          {item, units left, item, units left…}, {first byte's index, bits of gone from the cursor on} when the count
--          of given up seats is another than the node's, else {}, {news…} as XRANGE gives them, {first byte's index,
--          bits of recall} when the count of changes is another than the node's, else {};
--          nothing at all when the sale is not here
local k = {
  meta = KEYS[1], turns = KEYS[3], gone = KEYS[4], news = KEYS[5], conn = KEYS[7], away = KEYS[8], recall = KEYS[9],
  nodes = KEYS[10], draw = KEYS[11],
}
local m = read(k.meta, fields(LINE, { 'v', 'epoch', 'issued', 'granted', 'held', 'rate', 'active', 'ratio',
  'turn', 'grace', 'credit', 'ring', 'dropped', 'supply' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local still = stopped(m, ms)
local sale_ms = ms - still
local units = left(KEYS[2])
local served, granted = tonumber(m.served), tonumber(m.granted)
local more, stranger, dead = 0, 0, 0

-- A lease of a node lasts LEASE ms of sale time, so that an outage, in which nobody can renew any, ends none.
local LEASE = 3000
if phase ~= 'recovering' and ARGV[5] ~= '' then
  local lease = tonumber(redis.call('HGET', k.nodes, ARGV[5]) or '-1')
  stranger = lease <= sale_ms and 1 or 0
  redis.call('HSET', k.nodes, ARGV[5], int(sale_ms + LEASE))
end
for _, lease in ipairs(redis.call('HVALS', k.nodes)) do
  dead = dead + (tonumber(lease) <= sale_ms and 1 or 0)
end

-- What numbers are issued, and in a lobby that is yet to be put in order how many entries there are.
local issued = tonumber(m.issued)
if sorts(m) then
  issued = m.frozen and issued - tonumber(m.frozen) + tonumber(m.live) or issued - tonumber(m.dropped)
end

-- tickets_of returns the tickets of numbers.
local function tickets_of(numbers)
  local tickets = {}
  for i, number in ipairs(numbers) do
    tickets[i] = ticket_of(k, m, number)
  end
  return tickets
end

-- each calls a function for each of the numbers and the moment since which nobody of it is here, nothing for who is.
local function each(numbers, fn)
  local tickets = tickets_of(numbers)
  local since = away_since(k, tickets, sale_ms)
  for i, number in ipairs(numbers) do
    fn(number, tickets[i], since[i])
  end
end

-- pass notes that a seat was passed while nobody of it was here.
local function pass(ticket, since)
  redis.call('ZADD', k.away, int(since), ticket)
end

-- bits returns the numbers from `first` to `last` whose bit in a map is `value`.
local function bits(map, first, last, value)
  local found, byte = {}, math.floor(first / 8)
  local bytes = redis.call('GETRANGE', map, byte, math.floor(last / 8))
  for number = first, last do
    local b = string.byte(bytes, math.floor(number / 8) - byte + 1) or 0
    if math.floor(b / 2 ^ (7 - number % 8)) % 2 == value then
      found[#found + 1] = number
    end
  end
  return found
end

-- recalled appends to `called` those who are recalled, up to `most`, and says whether there may be more of them.
local function recalled(called, most)
  local first = redis.call('BITPOS', k.recall, 1)
  if first < 0 or first > served then
    return false
  end
  local to, changed = math.min(served, first + 7999), 0
  local numbers, i = bits(k.recall, first, to, 1), 0
  while #called < most and i < #numbers and i < 1000 do
    local some = {}
    while #some < most - #called and i < #numbers and i < 1000 do
      i = i + 1
      some[#some + 1] = numbers[i]
    end
    each(some, function(number, ticket, since)
      redis.call('SETBIT', k.recall, number, 0)
      changed = changed + 1
      if since then
        pass(ticket, since)
      else
        redis.call('SETBIT', k.gone, number, 0) -- of one who came late after a loss; nobody counts it any more
        called[#called + 1] = number
      end
    end)
  end
  if changed > 0 then
    redis.call('HINCRBY', k.meta, 'recalls', 1)
  end
  return changed < #numbers or to < served
end

-- call appends to `called` those who are next in the line, until it holds `most`, and returns the last number passed.
local function call(called, most)
  local to, number = math.min(issued, served + 1000), served
  local numbers, i = bits(k.gone, served + 1, to, 0), 0
  while #called < most and i < #numbers do
    local some = {}
    while #some < most - #called and i < #numbers do
      i = i + 1
      some[#some + 1] = numbers[i]
    end
    each(some, function(passed, ticket, since)
      if since then
        pass(ticket, since)
      else
        called[#called + 1] = passed
      end
    end)
    number = some[#some]
  end
  return #called < most and to or number
end

if phase ~= 'recovering' then
  redis.call('HSET', k.meta, 'tick', int(ms), 'stopped', int(still))
  if phase ~= 'open' then
    redis.call('HSET', k.meta, 'credit', int(at))
  end
end

if phase == 'open' then
  local ended = redis.call('ZRANGEBYSCORE', k.turns, '-inf', int(sale_ms), 'LIMIT', 0, 1000)
  if #ended > 0 then
    tell(k.meta, k.news, 't', 'ended', 'n', table.concat(ended, ','))
    redis.call('ZREM', k.turns, unpack(ended))
    for i, number in ipairs(ended) do
      ended[i] = tonumber(number)
    end
    redis.call('ZREM', k.away, unpack(tickets_of(ended)))
  end

  -- Those of whom nobody came back in time are gone.
  local absent = redis.call('ZRANGEBYSCORE', k.away, '-inf', int(sale_ms - tonumber(m.grace)), 'LIMIT', 0, 1000)
  if #absent > 0 then
    redis.call('ZREM', k.away, unpack(absent))
    for i, ticket in ipairs(absent) do
      absent[i] = number_of(k, m, tonumber(ticket))
      redis.call('SETBIT', k.gone, absent[i], 1)
      if redis.call('SETBIT', k.recall, absent[i], 0) == 1 then
        redis.call('HINCRBY', k.meta, 'recalls', 1)
      end
    end
    redis.call('ZREM', k.turns, unpack(absent))
    redis.call('HINCRBY', k.meta, 'left', #absent)
    tell(k.meta, k.news, 't', 'absent', 'n', table.concat(absent, ','))
  end

  if units == 0 then
    local out = redis.call('ZRANGEBYSCORE', k.turns, '(' .. int(sale_ms), '+inf', 'LIMIT', 0, 1000)
    if #out > 0 then
      local numbers, back = {}, {}
      for i, number in ipairs(out) do
        numbers[i] = tonumber(number)
      end
      redis.call('ZREM', k.turns, unpack(out))
      each(numbers, function(number, ticket, since)
        if since then
          pass(ticket, since)
        else
          back[#back + 1] = number
        end
      end)
      if #back > 0 then
        recall(k, back)
      end
      more = #out == 1000 and 1 or 0
    end
  end

  local rate, active, ratio = tonumber(m.rate), tonumber(m.active), tonumber(m.ratio)
  local outstanding = redis.call('ZCARD', k.turns)
  -- The rate allows what came due since `credit`, and never more than the last second leaves.
  local credit = math.max(tonumber(m.credit), tonumber(m.opens) * 1000, at - 1000000)
  local by_rate, kept, sum = 1000, {}, 0
  for stamp, count in string.gmatch(m.ring, '(%d+):(%d+)') do
    if tonumber(stamp) > at - 1000000 then
      sum = sum + tonumber(count)
      kept[#kept + 1] = stamp .. ':' .. count
    end
  end
  if rate > 0 then
    by_rate = math.min(math.floor(rate * (at - credit) / 1000000), rate - sum, 1000)
  end
  local most = by_rate
  if active > 0 then
    most = math.min(most, active - outstanding)
  end
  if ratio > 0 then
    most = math.min(most, math.floor(ratio * units) - outstanding)
  end
  local jam = tonumber(ARGV[4])
  if units == 0 or m.order == 'off' or (jam > 0 and redis.call('XLEN', KEYS[6]) >= jam) then
    most = 0
  end
  local called, to, cut = {}, served, false
  if most > 0 then
    local waits = recalled(called, most)
    if #called < most and not waits and served < issued then
      to = call(called, most)
      redis.call('HSET', k.meta, 'served', int(to))
    end
    cut = #called < most and (waits or to < issued) or #called == 1000
    more = cut and 1 or more
  end
  if #called > 0 then
    local deadline, scored = int(sale_ms + tonumber(m.turn)), {}
    redis.call('HSET', k.meta, 'granted', int(granted + #called))
    tell(k.meta, k.news, 't', 'turn', 'n', table.concat(called, ','), 'd', deadline)
    for _, number in ipairs(called) do
      scored[#scored + 1] = deadline
      scored[#scored + 1] = int(number)
    end
    redis.call('ZADD', k.turns, unpack(scored))
  end
  -- What the rate itself or the bound of this call held back is given later, as far as it came due in the last tenth
  -- of a second, or since the last turn that is not due yet: that makes good for ticks that come unevenly, while more
  -- would be given in bursts a second apart. Time that the line or another cap left unused is not saved up.
  -- The ring is kept without a rate too, for the second after one is set.
  if #called > 0 then
    kept[#kept + 1] = int(at) .. ':' .. #called
  end
  redis.call('HSET', k.meta, 'ring', table.concat(kept, ' '))
  if rate > 0 then
    if #called == by_rate or cut then
      credit = credit + math.ceil(#called * 1000000 / rate)
      credit = math.max(credit, at - math.max(100000, math.ceil(1000000 / rate)))
    else
      credit = at
    end
    redis.call('HSET', k.meta, 'credit', int(credit))
  end
  served, granted = to, granted + #called
end

local counts = redis.call('HMGET', k.meta, 'news', 'left', 'recalls')
local newest, given_up, recalls = tonumber(counts[1]), counts[2], counts[3]
local gone, back = {}, {}
local first = math.floor(served / 8)
if tonumber(ARGV[2]) ~= tonumber(given_up) then
  gone = { first, redis.call('GETRANGE', k.gone, first, math.floor(issued / 8)) }
end
if tonumber(ARGV[6]) ~= tonumber(recalls) then
  local lowest = math.max(0, math.floor(redis.call('BITPOS', k.recall, 1) / 8))
  back = { lowest, redis.call('GETRANGE', k.recall, lowest, -1) }
end
local known, news = tonumber(ARGV[1]), {}
if known >= 0 and known < newest then
  news = redis.call('XRANGE', k.news, '(' .. int(known) .. '-0', '+', 'COUNT', ARGV[3])
end
return {
  { int(ms), phase, stock_state(units, m.held), int(still), m.v, m.epoch, int(served), int(issued),
    redis.call('ZCARD', k.turns), int(granted), int(newest), given_up, m.held, more, recalls, stranger, dead,
    m.drawn == '1' and 1 or 0, m.frozen and 1 or 0, m.supply, m.paused == '1' and 1 or 0 },
  redis.call('HGETALL', KEYS[2]), gone, news, back,
}
