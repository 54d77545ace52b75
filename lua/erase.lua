-- Takes a sale out of Redis, all of its keys in one step, and leaves a mark that keeps it out: whoever read of the sale
-- before may be about to install it. What goes is what was judged, or nothing: a sale whose settings changed since,
-- that is not closed, or in whose outbox orders wait stays as it is.
--
-- The mark is set last, although it is the one write that Redis could refuse for want of memory: after the first write
-- of a script it refuses none, and a full Redis must be able to get rid of a sale.
--
-- KEYS  1 meta, 2 outbox, 3 the mark, then the other keys of the sale
-- ARGV  1 version of the settings that were judged, '' = whatever is here goes, 2 how long the mark stays (ms)
-- returns  1 gone now, 0 nothing was here, -1 changed or not closed, -2 orders wait in the outbox
local m = read(KEYS[1], fields({ 'v' }))
if m and ARGV[1] ~= '' then
  local phase = state(m, math.floor(now() / 1000))
  if m.v ~= ARGV[1] or (phase ~= 'closed' and phase ~= 'recovering') then
    return -1
  end
  if redis.call('XLEN', KEYS[2]) > 0 then
    return -2
  end
end
for i, key in ipairs(KEYS) do
  if i ~= 3 then
    redis.call('UNLINK', key)
  end
end
redis.call('SET', KEYS[3], 1, 'PX', ARGV[2])
return m and 1 or 0
