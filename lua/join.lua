-- Gives each user a seat, or returns the one held. A call that resumes never takes a new seat: somebody who comes back
-- too late is told so before starting again at the end of the line.
--
-- After a loss of the numbers, a call that resumes a number of the epoch before takes that number back, unless somebody
-- has. That is possible while the sale recovers: once the line goes on, nobody may come in before those who wait. Who
-- had a turn has one again. A node knows the cursor as it was just before the loss; what was kept of it may be older.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 winners, 5 stock, 6 gone, then the limit keys of each user
-- ARGV  1 user limit, 2 its window, 3 address limit, 4 its window (microseconds), 5 the cursor before a loss, where the
--       caller knows it (0 = no), then for each user: user, the number to resume (0 = none), its epoch, 1 when it is
--       known to have had a turn or 0
-- returns  {ms, state, stock state, epoch, stopped ms}, then for each user
--          {status, number, deadline in sale time, mark}; {-4} not joinable in this state; {-2} stock gone;
--          {-5, which limit, microseconds to wait}; nothing at all when the sale is not here
local m = read(KEYS[1], fields({ 'served', 'issued', 'epoch', 'held', 'order', 'turn', 'calling' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local still = stopped(m, ms)
local stock = stock_state(left(KEYS[5]), m.held)
local served = tonumber(m.served)
if phase == 'recovering' and tonumber(ARGV[5]) > served and tonumber(ARGV[5]) <= tonumber(m.issued) then
  served = tonumber(ARGV[5])
  redis.call('HSET', KEYS[1], 'served', int(served))
end
local replies = { { int(ms), phase, stock, m.epoch, int(still) } }
for i = 1, (#ARGV - 5) / 4 do
  local a = 5 + 4 * (i - 1)
  local user, lost, before, called = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 4] == '1'
  local resume = lost > 0
  local reply = refused(6, i, at)
  if not reply then
    local status, number, deadline, mark = place(KEYS[2], KEYS[3], KEYS[4], user, served, ms - still)
    if status == NONE and resume and phase == 'recovering' and before == tonumber(m.epoch) - 1 then
      if lost <= tonumber(m.issued) and redis.call('GETBIT', KEYS[6], lost) == 1 then
        redis.call('SETBIT', KEYS[6], lost, 0)
        redis.call('HSET', KEYS[2], user, int(lost))
        redis.call('HINCRBY', KEYS[1], 'left', 1)
        if called or (lost <= served and lost >= tonumber(m.calling)) then
          redis.call('ZADD', KEYS[3], int(ms - still + tonumber(m.turn)), int(lost))
        end
        status, number, deadline, mark = place(KEYS[2], KEYS[3], KEYS[4], user, served, ms - still)
      end
    end
    if (status == NONE or status == MISSED) and not resume and phase ~= 'recovering' then
      if phase == 'scheduled' or phase == 'closed' then
        reply = { -4 }
      elseif stock == 'gone' then
        reply = { -2 }
      elseif m.order ~= 'off' then
        number = int(redis.call('HINCRBY', KEYS[1], 'issued', 1))
        redis.call('HSET', KEYS[2], user, number)
        status = WAITING
      end
    end
    reply = reply or { status, number, deadline, mark }
  end
  replies[#replies + 1] = reply
end
return replies
