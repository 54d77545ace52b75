-- Freezes the entries of a lottery, or of a lobby that priorities put in order, once its sale has opened: who joins
-- from now on takes no part in the draw and follows after it. Doing it again changes nothing. A draw that the database
-- knows is taken as it is there.
--
-- KEYS  1 meta
-- ARGV  1 tickets, 2 live entries, as the database has them; '' when it has none
-- returns  {tickets, live entries, 1 drawn or 0}; {} while there is nothing to freeze; nothing at all when the sale is
--          not here
local m = read(KEYS[1], fields(LINE, { 'issued', 'dropped' }))
if not m then
  return false
end
local ms = math.floor(now() / 1000)
local phase = state(m, ms)
if not sorts(m) or (ARGV[1] == '' and not m.frozen and
    (phase ~= 'lobby' or ms < tonumber(m.opens) or m.paused == '1')) then
  return {}
end
if not m.frozen then
  m.frozen, m.live = m.issued, int(tonumber(m.issued) - tonumber(m.dropped))
  if ARGV[1] ~= '' then
    m.frozen, m.live = ARGV[1], ARGV[2]
  end
  redis.call('HSET', KEYS[1], 'frozen', m.frozen, 'live', m.live)
end
return { m.frozen, m.live, m.drawn == '1' and 1 or 0 }
