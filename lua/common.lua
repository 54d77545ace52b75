-- Put before every script when it is compiled. What stands here is the part of the rules that several scripts share.

-- now returns Redis time in microseconds since the Unix epoch: the only clock that decides anything.
local function now()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- int writes a number without exponent, which tostring would use from 10^14 on.
local function int(n)
  return string.format('%.0f', n)
end

-- read returns the named fields of the meta hash as a table of strings, or nil when the sale is not here.
local function read(meta, names)
  local values = redis.call('HMGET', meta, unpack(names))
  local m, here = {}, false
  for i, name in ipairs(names) do
    if values[i] then
      m[name] = values[i]
      here = true
    end
  end
  return here and m or nil
end

-- STATE names the fields that state and sale_time need.
local STATE = { 'run', 'opens', 'closes', 'lobby', 'paused', 'tick', 'stopped', 'order', 'sorted', 'drawn' }

-- fields returns the names of STATE and those of the lists.
local function fields(...)
  local names = {}
  for _, list in ipairs({ STATE, ... }) do
    for _, name in ipairs(list) do
      names[#names + 1] = name
    end
  end
  return names
end

-- sorts says that the lobby is put in order when the sale opens, by a draw or by the priority of codes: until then its
-- seats have no numbers.
local function sorts(m)
  return m.order == 'lottery' or m.sorted == '1'
end

-- undrawn says that the numbers of such a sale are not known yet.
local function undrawn(m)
  return sorts(m) and m.drawn ~= '1'
end

-- state follows from settings and time alone, and from the draw of a lobby that is put in order, which lasts until
-- then. `run` is the server's run id for which the sale was last put right: after a restart, a failover or a loss it
-- differs, and nothing is granted until recovery has run.
local function state(m, ms)
  if m.run ~= run_id() then
    return 'recovering'
  end
  if ms >= tonumber(m.closes) then
    return 'closed'
  end
  if ms < tonumber(m.opens) or undrawn(m) then
    return ms >= tonumber(m.lobby) and 'lobby' or 'scheduled'
  end
  return m.paused == '1' and 'paused' or 'open'
end

-- GAP is the longest time between two ticks, in milliseconds, that counts as running: with no tick nobody could have
-- been given or shown a turn, so an outage must not eat one.
local GAP = 2000

-- stopped returns how long, in milliseconds, the sale clock has stood still up to ms: sale time is Redis time less
-- this. The clock stands still before opening, until a lottery is drawn, while paused, over a backward step and over a
-- gap between ticks.
local function stopped(m, ms)
  local sum, last, opens = tonumber(m.stopped), tonumber(m.tick), tonumber(m.opens)
  local gap = ms - last
  if gap < 0 or gap > GAP or m.paused == '1' or m.run ~= run_id() or undrawn(m) then
    return sum + gap
  end
  if last < opens then
    return sum + math.min(ms, opens) - last
  end
  return sum
end

-- left returns the units of all items that can be taken now.
local function left(stock)
  local sum = 0
  for _, units in ipairs(redis.call('HVALS', stock)) do
    sum = sum + tonumber(units)
  end
  return sum
end

-- REST is how long, in milliseconds, units that come into a sale without a line which had none stay off sale. A node
-- may say "sold out" by itself for half of that after it last looked (queue/latch.go), and whoever wins such a unit
-- must not hear it: so nobody wins one before the last node has looked again.
local REST = 1000

-- supplied is to be called before units come in: `supply` becomes another number, so that nodes notice that they did
-- even when they are gone again.
local function supplied(meta, stock)
  redis.call('HINCRBY', meta, 'supply', 1)
  if left(stock) == 0 then
    redis.call('HSET', meta, 'rests', int(math.floor(now() / 1000) + REST))
  end
end

-- stock_state says what becomes of someone who waits: held means that unpaid orders may still give units back.
local function stock_state(units, held)
  if units > 0 then
    return 'available'
  end
  return tonumber(held or '0') > 0 and 'held' or 'gone'
end

-- tell appends to the news that every node reads with its tick. The id is a counter without holes, so a node that
-- missed trimmed entries sees the hole. The stream is capped because nothing depends on it: a node that fell behind
-- reads its seats again.
local function tell(meta, news, ...)
  local id = redis.call('HINCRBY', meta, 'news', 1)
  redis.call('XADD', news, 'MAXLEN', '~', 20000, int(id) .. '-0', ...)
end

-- tell_order tells of an order's status; who follows it hears of it in the same entry.
local function tell_order(meta, news, user, status, mark, trace)
  if trace then
    tell(meta, news, 't', 'order', 'u', user, 's', status, 'm', mark, 'c', trace)
  else
    tell(meta, news, 't', 'order', 'u', user, 's', status, 'm', mark)
  end
end

-- traces_of reads which entries of a call somebody follows: the number of each and its context, `3 00-…,17 00-…`.
local function traces_of(text)
  local traces = {}
  for i, context in string.gmatch(text, '(%d+) ([^,]+)') do
    traces[tonumber(i)] = context
  end
  return traces
end

-- mark_of returns the value that the winners hash keeps for an order. The request id comes last because it alone may
-- hold any character.
local function mark_of(order, item, qty, at, pay_by, request)
  return order .. '|' .. item .. '|' .. qty .. '|' .. at .. '|' .. pay_by .. '|' .. request
end

-- mark_parts takes a mark apart: order, item, qty, at, pay_by, request.
local function mark_parts(mark)
  return string.match(mark, '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)|(.*)$')
end

-- SHORT is the longest limit that is kept as a string: 16 digits of microseconds for each of the last requests that
-- passed, the newest first. It is read for a whole call at once and written in one step, which costs a third of what a
-- list does; but all of it is written each time, so longer ones are lists, under keys of their own (shortLimit in Go).
local SHORT = 64

-- stamps are the strings of the limits of this call, by key; nil until the first is asked for.
local stamps

-- stamp returns the moment at which the nth of the last requests passed, the newest being the first, or nil.
local function stamp(key, most, n)
  if most <= SHORT then
    return tonumber(string.sub(stamps[key] or '', 16 * n - 15, 16 * n))
  end
  return tonumber(redis.call('LINDEX', key, n - 1) or '')
end

-- recent returns how many of the last requests passed within the window; fewer than `most` did.
local function recent(key, most, window, at)
  local low, high = 0, most - 1
  if most <= SHORT then
    high = math.min(high, #(stamps[key] or '') / 16)
  end
  while low < high do
    local middle = math.ceil((low + high) / 2)
    local passed = stamp(key, most, middle)
    if passed and at - passed < window then
      low = middle
    else
      high = middle - 1
    end
  end
  return low
end

-- look returns how many microseconds later a request may come that is beyond a limit now, or nil; how many have passed
-- within the window; and in how many microseconds the first of them leaves it. The key holds the moments of the last
-- `most` requests that passed, so that any window holds at most `most`.
local function look(key, most, window, at)
  local oldest = stamp(key, most, most)
  if oldest and at - oldest < window then
    local wait = oldest + window - at
    return wait, most, wait
  end
  local passed = recent(key, most, window, at)
  local first = passed > 0 and stamp(key, most, passed) or at
  return nil, passed, first + window - at
end

-- count notes a request that passes, as the next one after those that passed within the window.
local function count(key, most, window, at, passed)
  local lasts = math.ceil(window / 1000)
  if most <= SHORT then
    stamps[key] = string.format('%016.0f', at) .. string.sub(stamps[key] or '', 1, 16 * passed)
    redis.call('SET', key, stamps[key], 'PX', lasts)
    return
  end
  if redis.call('LPUSH', key, int(at)) > most then
    redis.call('RPOP', key)
  end
  redis.call('PEXPIRE', key, lasts)
end

-- read_stamps reads the strings of all limits of a call, which stand behind the `base` fixed keys.
local function read_stamps(base, short)
  stamps = {}
  if #short == 0 then
    return
  end
  local names = {}
  for i = base + 1, #KEYS do
    if short[(i - base - 1) % #short + 1] then
      names[#names + 1] = KEYS[i]
    end
  end
  if #names > 0 then
    for i, value in ipairs(redis.call('MGET', unpack(names))) do
      stamps[names[i]] = value or nil
    end
  end
end

-- figures are what is left of the limits for each entry of a call that refused was asked about, three numbers each:
-- 1 (user) or 2 (address), whichever has less left, or 0 for an entry that was refused; how many more may come now; in
-- how many microseconds it is one more.
local figures = {}

-- refused checks entry i of a call against the limits given as ARGV 1–4 (user limit and window, address limit and
-- window; limit 0 = off). Its keys stand behind the `base` fixed keys, one for each limit that is on. It returns nil,
-- or the reply of a limited entry: -5, 1 (user) or 2 (address), microseconds to wait. What one of them refuses none of
-- them counts, so that steady use below a limit is never refused by it. An entry that was counted before is not counted
-- again and not refused; only its figures are noted.
local function refused(base, i, at, counted)
  local user, address = tonumber(ARGV[1]), tonumber(ARGV[3])
  local each = (user > 0 and 1 or 0) + (address > 0 and 1 or 0)
  if each == 0 then
    return nil
  end
  if not stamps then
    local short = {}
    for _, most in ipairs({ user, address }) do
      if most > 0 then
        short[#short + 1] = most <= SHORT
      end
    end
    read_stamps(base, short)
  end
  local n, first = 3 * (i - 1), base + (i - 1) * each + 1
  local of_user, of_address = KEYS[first], KEYS[first + each - 1]
  local by, wait, user_passed, user_reset, address_passed, address_reset
  if user > 0 then
    by = 1
    wait, user_passed, user_reset = look(of_user, user, tonumber(ARGV[2]), at)
  end
  if address > 0 and (counted or not wait) then
    local later
    later, address_passed, address_reset = look(of_address, address, tonumber(ARGV[4]), at)
    if later and not wait then
      by, wait = 2, later
    end
  end
  if wait and not counted then
    figures[n + 1], figures[n + 2], figures[n + 3] = 0, 0, 0
    return { -5, by, int(wait) }
  end
  local one = counted and 0 or 1
  local rest, reset
  if user > 0 then
    if not counted then
      count(of_user, user, tonumber(ARGV[2]), at, user_passed)
    end
    by, rest, reset = 1, user - user_passed - one, user_reset
  end
  if address > 0 then
    if not counted then
      count(of_address, address, tonumber(ARGV[4]), at, address_passed)
    end
    if not rest or address - address_passed - one < rest then
      by, rest, reset = 2, address - address_passed - one, address_reset
    end
  end
  figures[n + 1], figures[n + 2], figures[n + 3] = by, rest, reset
  return nil
end
