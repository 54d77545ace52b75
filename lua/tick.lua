-- The one read of truth that every node makes regularly, and the only place where turns are given. Any node's call may
-- do the work: it depends on Redis time and on what stands here, not on who calls or how often.
--
-- Turns that ran out end. Then seats are called from the cursor on, as many as the smallest of these allows: the rate
-- since the last call; what the rate leaves in the last second (so that no second ever sees more than `rate`); the cap
-- on outstanding turns; `ratio` times the stock left. At most 1,000 numbers are passed a call. Numbers that were given
-- up are passed without spending a turn.
--
-- While orders pile up in the outbox beyond a limit, nobody else is called: what is sold must fit into Redis until the
-- broker takes orders again. Turns that were given go on.
--
-- KEYS  1 meta, 2 stock, 3 turns, 4 gone, 5 news, 6 outbox
-- ARGV  1 the newest news that the node knows (-1 = none, and none wanted), 2 the count of given up seats it knows
--       (-1 = none), 3 the most news to return, 4 the longest outbox with which turns are given (0 = any)
-- returns  {ms, state, stock state, stopped ms, settings version, epoch, served, issued, turns outstanding, turns given
--          in all, newest news, given up seats in all, held units, 1 when another call would give more turns at once},
--          {item, units left, item, units left…}, {first byte's index, bits of gone from the cursor on} when the count
--          of given up seats is another than the node's, else {}, {news…} as XRANGE gives them;
--          nothing at all when the sale is not here
local m = read(KEYS[1], fields({ 'v', 'epoch', 'served', 'issued', 'granted', 'news', 'left', 'held', 'rate', 'active',
  'ratio', 'turn', 'credit', 'ring', 'order' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local still = stopped(m, ms)
local units = left(KEYS[2])
local served, issued, granted = tonumber(m.served), tonumber(m.issued), tonumber(m.granted)
local news_now = tonumber(m.news)
local more = 0

-- news_of adds one entry and keeps count of it here.
local function news_of(...)
  tell(KEYS[1], KEYS[5], ...)
  news_now = news_now + 1
end

-- taken returns how many turns the ring counts in the second before `at`, and the ring without what is older.
local function taken(ring)
  local sum, kept = 0, {}
  for stamp, count in string.gmatch(ring, '(%d+):(%d+)') do
    if tonumber(stamp) > at - 1000000 then
      sum = sum + tonumber(count)
      kept[#kept + 1] = stamp .. ':' .. count
    end
  end
  return sum, kept
end

-- call passes the cursor over the line until `most` seats got a turn, and returns their numbers.
local function call(most)
  local called, to = {}, math.min(issued, served + 1000)
  local first = math.floor((served + 1) / 8)
  local bits = redis.call('GETRANGE', KEYS[4], first, math.floor(to / 8))
  local number = served
  while number < to and #called < most do
    number = number + 1
    local byte = string.byte(bits, math.floor(number / 8) - first + 1) or 0
    if math.floor(byte / 2 ^ (7 - number % 8)) % 2 == 0 then
      called[#called + 1] = number
    end
  end
  return called, number
end

if phase ~= 'recovering' then
  redis.call('HSET', KEYS[1], 'tick', int(ms), 'stopped', int(still))
  if phase ~= 'open' then
    redis.call('HSET', KEYS[1], 'credit', int(at))
  end
end

if phase == 'open' then
  local ended = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', int(ms - still), 'LIMIT', 0, 1000)
  if #ended > 0 then
    news_of('t', 'ended', 'n', table.concat(ended, ','))
    redis.call('ZREM', KEYS[3], unpack(ended))
  end

  local rate, active, ratio = tonumber(m.rate), tonumber(m.active), tonumber(m.ratio)
  local outstanding = redis.call('ZCARD', KEYS[3])
  -- The rate allows what came due since `credit`, and never more than the last second leaves.
  local credit = math.max(tonumber(m.credit), tonumber(m.opens) * 1000, at - 1000000)
  local by_rate, kept = 1000, {}
  if rate > 0 then
    local sum
    sum, kept = taken(m.ring)
    by_rate = math.min(math.floor(rate * (at - credit) / 1000000), rate - sum)
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
  local given, to = 0, served
  if most > 0 and served < issued then
    local called
    called, to = call(most)
    given = #called
    local deadline = int(ms - still + tonumber(m.turn))
    redis.call('HSET', KEYS[1], 'served', int(to), 'granted', int(granted + given))
    if given > 0 then
      news_of('t', 'turn', 'f', int(served + 1), 'l', int(to), 'd', deadline)
      local scored = {}
      for _, number in ipairs(called) do
        scored[#scored + 1] = deadline
        scored[#scored + 1] = int(number)
      end
      redis.call('ZADD', KEYS[3], unpack(scored))
    end
  end
  local cut = to == served + 1000
  more = (cut and to < issued) and 1 or 0
  -- What the rate itself or the bound of this call held back is given later, as far as it came due in the last tenth
  -- of a second, or since the last turn that is not due yet: that makes good for ticks that come unevenly, while more
  -- would be given in bursts a second apart. Time that the line or another cap left unused is not saved up.
  if rate > 0 then
    if given > 0 then
      kept[#kept + 1] = int(at) .. ':' .. given
    end
    if given == by_rate or cut then
      credit = math.max(credit + math.ceil(given * 1000000 / rate), at - math.max(100000, math.ceil(1000000 / rate)))
    else
      credit = at
    end
    redis.call('HSET', KEYS[1], 'credit', int(credit), 'ring', table.concat(kept, ' '))
  end
  served, granted = to, granted + given
end

local gone = {}
local first = math.floor(served / 8)
if tonumber(ARGV[2]) ~= tonumber(m.left) then
  gone = { first, redis.call('GETRANGE', KEYS[4], first, math.floor(issued / 8)) }
end
local known, news = tonumber(ARGV[1]), {}
if known >= 0 and known < news_now then
  news = redis.call('XRANGE', KEYS[5], '(' .. int(known) .. '-0', '+', 'COUNT', ARGV[3])
end
return {
  { int(ms), phase, stock_state(units, m.held), int(still), m.v, m.epoch, int(served), int(issued),
    redis.call('ZCARD', KEYS[3]), int(granted), int(news_now), m.left, m.held, more },
  redis.call('HGETALL', KEYS[2]), gone, news,
}
