-- Installs a sale, or changes the settings of one that is here. Stock is never set over live stock: a new total moves
-- what is left by the difference, and not below what was sold. It can also only say whether it would.
--
-- A sale that is installed is `recovering` until ready.lua has run: if the database knows orders of it, they must have
-- their marks first. The outbox is left alone, because it may hold orders that no database has yet.
--
-- A sale that was archived is not installed again: whoever asks for that read of it before.
--
-- Where numbers were lost, all of them begin as given up, and each is taken back by the one who holds a token of it
-- (join.lua). So nobody waits behind a number that is not claimed.
--
-- KEYS  1 meta, 2 stock, 3 seats, 4 turns, 5 winners, 6 past, 7 gone, 8 news, 9 lost, 10 dropouts, 11 codes, then other
--       keys of the line, which a sale that is installed begins without; the last one is the mark of an archived sale
-- ARGV  1 'install' to do nothing when the sale is here, 'check' to do nothing at all, else 'change', 2 settings as
--       JSON, 3 opens, 4 closes, 5 lobby (ms), 6 order, 7 limit, 8 rate, 9 active, 10 ratio, 11 turn (ms), 12 hold
--       (ms); of a sale that is installed 13 its epoch, 14 the highest ticket that may have been given, 15 the cursor,
--       16 1 when it is paused, 17 the lowest number that may have had a turn; 18 grace (ms); of who may join 19 1 when
--       there are lists or 0, 20 1 when there is a challenge or 0, 21 seats of one address (0 = any), 22 1 when
--       priorities put a line by arrival in order or 0, 23 how many codes there are; then for each code: code, uses and
--       priority (as `uses|priority`); then for each item: id, total
-- returns  {1} installed, {0} changed or here already (of a check: what it would be), {-1, field} that field cannot
--          change any more, {-2, item, total that cannot be gone below}, {-3} archived
if redis.call('EXISTS', KEYS[#KEYS]) == 1 then
  return { -3 }
end
local m = read(KEYS[1], fields({ 'limit', 'items', 'v' }))
local opens, closes, lobby, order, limit = ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local ms = math.floor(now() / 1000)
local items, totals = {}, {}
local codes = tonumber(ARGV[23])
for i = 24 + 2 * codes, #ARGV, 2 do
  items[#items + 1] = ARGV[i]
  totals[ARGV[i]] = tonumber(ARGV[i + 1])
end

local check = ARGV[1] == 'check'
if m and ARGV[1] == 'install' then
  return { 0 }
end
if check then
  if not m then
    return { 1 }
  end
  m.run = run_id() -- before a change, a sale that recovers is put right
end

if not m then
  local last = redis.call('XREVRANGE', KEYS[8], '+', '-', 'COUNT', 1)
  local news = #last > 0 and string.match(last[1][1], '^%d+') or '0'
  redis.call('HSET', KEYS[1], 'run', '', 'epoch', ARGV[13], 'paused', ARGV[16], 'tick', int(ms), 'stopped', 0,
    'issued', ARGV[14], 'served', ARGV[15], 'calling', ARGV[17], 'granted', 0, 'left', 0, 'held', 0, 'news', news,
    'credit', 0, 'ring', '', 'recalls', 0, 'dropped', 0, 'supply', int(ms))
  for i, key in ipairs(KEYS) do
    if i ~= 1 and i ~= 8 and i ~= #KEYS then
      redis.call('DEL', key)
    end
  end
  local lost = tonumber(ARGV[14])
  if lost > 0 then
    local all = string.rep('\255', math.floor(lost / 8)) .. string.char(256 - 2 ^ (7 - lost % 8))
    redis.call('SET', KEYS[7], all)
    redis.call('SET', KEYS[9], all)
    redis.call('SET', KEYS[10], all)
    redis.call('HSET', KEYS[1], 'dropped', int(lost))
    -- Nodes read the bits when this differs from what they know, so it must differ from what it was before the loss.
    redis.call('HSET', KEYS[1], 'left', int(tonumber(ARGV[13]) * 1000000000))
  end
else
  local started = state(m, ms)
  m.sorted = m.sorted or '0'
  if started ~= 'scheduled' then
    lobby = m.lobby -- it has begun, and opening early may have moved it
    local fixed = { { 'opens_at', 'opens', opens }, { 'limit', 'limit', limit }, { 'line.order', 'order', order },
      { 'access.codes.priority', 'sorted', ARGV[22] } }
    for _, field in ipairs(fixed) do
      if m[field[2]] ~= field[3] then
        return { -1, field[1] }
      end
    end
    if m.items ~= table.concat(items, ' ') then
      return { -1, 'items' }
    end
  end
  for _, item in ipairs(items) do
    local before = tonumber(redis.call('HGET', KEYS[1], 't:' .. item) or '0')
    local units = tonumber(redis.call('HGET', KEYS[2], item) or '0')
    if units + totals[item] - before < 0 then
      return { -2, item, int(before - units) }
    end
  end
end
if check then
  return { 0 }
end

redis.call('HSET', KEYS[1], 'spec', ARGV[2], 'opens', opens, 'closes', closes, 'lobby', lobby, 'order', order,
  'limit', limit, 'rate', ARGV[8], 'active', ARGV[9], 'ratio', ARGV[10], 'turn', ARGV[11], 'hold', ARGV[12],
  'items', table.concat(items, ' '), 'grace', ARGV[18], 'lists', ARGV[19], 'challenge', ARGV[20],
  'seats_per_address', ARGV[21], 'sorted', ARGV[22], 'codes', codes > 0 and 1 or 0)
redis.call('DEL', KEYS[11]) -- how often each was used stays
for i = 24, 23 + 2 * codes, 2000 do
  redis.call('HSET', KEYS[11], unpack(ARGV, i, math.min(i + 1999, 23 + 2 * codes)))
end
-- Nodes keep settings and lists by this number, so no other settings of the sale may ever have had it: not those before
-- a loss, nor those of a master whose replica took over without them.
redis.call('HSET', KEYS[1], 'v', int(math.max(ms, tonumber(m and m.v or '0') + 1)))
local more = false
for _, item in ipairs(items) do
  more = more or totals[item] > tonumber(redis.call('HGET', KEYS[1], 't:' .. item) or '0')
end
if more and (m or tonumber(ARGV[13]) > 1) then -- not of a sale that is new: no node has called that sold out
  supplied(KEYS[1], KEYS[2])
end
for item in string.gmatch(m and m.items or '', '%S+') do
  if not totals[item] then
    redis.call('HDEL', KEYS[1], 't:' .. item, 'w:' .. item)
    redis.call('HDEL', KEYS[2], item)
  end
end
for _, item in ipairs(items) do
  local before = tonumber(redis.call('HGET', KEYS[1], 't:' .. item) or '0')
  redis.call('HINCRBY', KEYS[2], item, totals[item] - before)
  redis.call('HSET', KEYS[1], 't:' .. item, int(totals[item]))
end
return { m and 0 or 1 }
