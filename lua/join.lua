-- Gives each user a seat, or returns the one held, and notes that somebody of it is here. A call that resumes never
-- takes a new seat: somebody who comes back too late is told so before starting again at the end of the line.
--
-- After a loss of the tickets, a call that resumes a ticket of the epoch before takes it back, unless somebody has.
-- While the sale recovers, the seat is as it was, and who had a turn has one again; a node knows the cursor as it was
-- just before the loss, and what was kept of it may be older. Later the seat does not count for those behind it any
-- more, because their places must not become worse, but is recalled once the cursor has come to it.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 winners, 5 stock, 6 gone, 7 away, 8 recall, 9 draw, 10 conn, 11 lost, 12 leaves,
--       13 news, 14 dropouts, then the limit keys of each user
-- ARGV  1 user limit, 2 its window, 3 address limit, 4 its window (microseconds), 5 the cursor before a loss, where the
--       caller knows it (0 = no), 6 node, then for each user: user, the ticket to resume (0 = none, -1 = whichever is
--       held), its epoch, 1 when it is known to have had a turn or 0, who is here ('c' a connection of the node, ''
--       nobody known, or for how many ms a poll is good), leaf of a lottery
-- returns  {ms, state, stock state, epoch, stopped ms}, then for each user
--          {status, ticket, number, deadline in sale time, mark, 1 when recalled}; {-4} not joinable in this state;
--          {-2} stock gone; {-5, which limit, microseconds to wait}; nothing at all when the sale is not here
local k = {
  meta = KEYS[1], seats = KEYS[2], turns = KEYS[3], winners = KEYS[4], gone = KEYS[6], away = KEYS[7], recall = KEYS[8],
  draw = KEYS[9], conn = KEYS[10], lost = KEYS[11], news = KEYS[13],
}
local m = read(k.meta, fields(LINE, { 'issued', 'epoch', 'held', 'turn', 'calling' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local still = stopped(m, ms)
local stock = stock_state(left(KEYS[5]), m.held)
local cursor = tonumber(ARGV[5])
if phase == 'recovering' and cursor > tonumber(m.served) and cursor <= tonumber(m.issued) then
  m.served = int(cursor)
  redis.call('HSET', k.meta, 'served', m.served)
end

-- claim gives a lost ticket back to the one who holds a token of it.
local function claim(user, ticket, called, leaf)
  local number = number_of(k, m, ticket)
  local enters = number == 0 and not m.frozen -- the draw of a lottery
  if ticket > tonumber(m.issued) or redis.call('GETBIT', k.lost, ticket) == 0 or (number == 0 and not enters) then
    return
  end
  redis.call('SETBIT', k.lost, ticket, 0)
  redis.call('HSET', k.seats, user, int(ticket))
  if enters then
    redis.call('HINCRBY', k.meta, 'dropped', -1)
    redis.call('SETBIT', KEYS[14], ticket, 0)
    redis.call('SETRANGE', KEYS[12], 32 * (ticket - 1), leaf)
    return
  end
  if phase == 'recovering' then
    redis.call('SETBIT', k.gone, number, 0)
    redis.call('HINCRBY', k.meta, 'left', 1) -- any other count than the one that nodes know
    if called or (number <= tonumber(m.served) and number >= tonumber(m.calling)) then
      redis.call('ZADD', k.turns, int(ms - still + tonumber(m.turn)), int(number))
    end
  elseif called or number >= tonumber(m.calling) then
    recall(k, { int(number) })
  end
end

local replies = { { int(ms), phase, stock, m.epoch, int(still) } }
for i = 1, (#ARGV - 6) / 6 do
  local a = 6 + 6 * (i - 1)
  local user, resumed, before, called = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 4] == '1'
  local here, leaf = ARGV[a + 5], ARGV[a + 6]
  local reply = refused(14, i, at)
  if not reply then
    local seat = { place(k, m, user, ms - still) }
    if seat[1] == NONE and resumed > 0 and before == tonumber(m.epoch) - 1 and phase ~= 'closed' then
      claim(user, resumed, called, leaf)
      seat = { place(k, m, user, ms - still) }
    end
    local none = seat[1] == NONE or seat[1] == MISSED or seat[1] == ABSENT
    if none and resumed == 0 and phase ~= 'recovering' then
      if phase == 'scheduled' or phase == 'closed' then
        reply = { -4 }
      elseif stock == 'gone' then
        reply = { -2 }
      elseif m.order ~= 'off' then
        if seat[2] > 0 then
          redis.call('HDEL', k.conn, seat[2])
        end
        local ticket = redis.call('HINCRBY', k.meta, 'issued', 1)
        redis.call('HSET', k.seats, user, int(ticket))
        if leaf ~= '' and not m.frozen then
          redis.call('SETRANGE', KEYS[12], 32 * (ticket - 1), leaf)
        end
        -- Nothing was ever noted of a new ticket, unless the cursor is ahead of what was kept of the tickets.
        local number = int(number_of(k, m, ticket))
        if tonumber(number) <= tonumber(m.served) and number ~= '0' then
          seat = { place(k, m, user, ms - still) }
        else
          seat = { WAITING, ticket, tonumber(number), '0', '', 0 }
        end
      end
    end
    if not reply and (seat[1] == WAITING or seat[1] == TURN) and here ~= '' then
      local poll = here ~= 'c'
      if arrive(k, m, seat[2], seat[3], not poll and ARGV[6] or nil, poll and ms - still + tonumber(here) or nil) then
        seat = { place(k, m, user, ms - still) }
      end
    end
    reply = reply or seat
  end
  replies[#replies + 1] = reply
end
return replies
