-- The rules of a sale that several scripts share. Put before every script when it is compiled.

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
