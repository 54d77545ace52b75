-- Gives each user a seat, or returns the one held, and notes that somebody of it is here. A call that resumes never
-- takes a new seat: somebody who comes back too late is told so before starting again at the end of the line.
--
-- After a loss of the tickets, a call that resumes a ticket of the epoch before takes it back, unless somebody has.
-- While the sale recovers, the seat is as it was, and who had a turn has one again; a node knows the cursor as it was
-- just before the loss, and what was kept of it may be older. Later the seat does not count for those behind it any
-- more, because their places must not become worse, but is recalled once the cursor has come to it.
--
-- Who may have a new seat is decided here, in the step that gives it, and by the settings of that moment: of the lists,
-- which the node reads, it says by which version it has judged. Whoever is refused has changed nothing, and whoever
-- holds a seat is not asked. A code is used up by its first seat; whoever lost that needs none again while the sale has
-- the code.
--
-- KEYS  1 meta, 2 seats, 3 turns, 4 winners, 5 stock, 6 gone, 7 away, 8 recall, 9 draw, 10 conn, 11 lost, 12 leaves,
--       13 news, 14 dropouts, 15 codes, 16 used, 17 coded, 18 addresses, 19 ranks, then the limit keys of each user
-- ARGV  1 user limit, 2 its window, 3 address limit, 4 its window (microseconds), 5 the cursor before a loss, where the
--       caller knows it (0 = no), 6 node, 7 version of the settings by whose lists the node has judged (0 = by none),
--       then for each user: user, the ticket to resume (0 = none, -1 = whichever is held), its epoch, 1 when it is
--       known to have had a turn or 0, who is here ('c' a connection of the node, '' nobody known, or for how many ms a
--       poll is good), leaf of a lottery, code ('' = none), address ('' = not known), 1 when the lists keep the user
--       out or 0, 1 when the challenge is solved or 0, 1 when the limits have counted this call or 0
-- returns  {ms, state, stock state, epoch, stopped ms}, then for each user {status, ticket, number, deadline in sale
--          time, mark, 1 when recalled, the code that the user has used or ''}; {-4} not joinable in this state; {-2}
--          stock gone; {-5, which limit, microseconds to wait}; {-9, why} kept out; {-10} the lists are of another
--          version; behind them the figures of the limits that are on, three for each user; nothing at all when the
--          sale is not here
local k = {
  meta = KEYS[1], seats = KEYS[2], turns = KEYS[3], winners = KEYS[4], gone = KEYS[6], away = KEYS[7], recall = KEYS[8],
  draw = KEYS[9], conn = KEYS[10], lost = KEYS[11], news = KEYS[13], codes = KEYS[15], used = KEYS[16],
  coded = KEYS[17], addresses = KEYS[18], ranks = KEYS[19],
}
local m = read(k.meta, fields(LINE, { 'issued', 'epoch', 'held', 'turn', 'calling', 'v', 'lists', 'codes', 'challenge',
  'seats_per_address' }))
if not m then
  return {}
end
local at = now()
local ms = math.floor(at / 1000)
local phase = state(m, ms)
local still = stopped(m, ms)
local stock = stock_state(left(KEYS[5]), m.held)
local most_seats = tonumber(m.seats_per_address or '0')
local cursor = tonumber(ARGV[5])
if phase == 'recovering' and cursor > tonumber(m.served) and cursor <= tonumber(m.issued) then
  m.served = int(cursor)
  redis.call('HSET', k.meta, 'served', m.served)
end

-- neighbours returns the live seats that were taken from an address, in the form in which they are kept, and how many
-- they are. Nothing has to be taken off when a seat ends: it is looked at when somebody else wants one.
local function neighbours(address)
  local live, count = '', 0
  for ticket, user in string.gmatch(redis.call('HGET', k.addresses, address) or '', '(%d+) ([^\n]*)\n') do
    local status, held = place(k, m, user, ms - still)
    if held == tonumber(ticket) and (status == WAITING or status == TURN or status == BUYER) then
      live, count = live .. ticket .. ' ' .. user .. '\n', count + 1
    end
  end
  return live, count
end

-- admit decides whether a user may have a new seat. It returns the reply that refuses one, or nil and what is to be
-- noted with the seat: a code that is used now, the live seats of the address, and the priority of the code.
local function admit(user, code, address, denied, solved)
  if m.lists == '1' and ARGV[7] ~= m.v then
    return { -10 }
  end
  if m.lists == '1' and denied then
    return { -9, 'denied' }
  end
  local live
  if most_seats > 0 and address ~= '' then
    local count
    live, count = neighbours(address)
    if count >= most_seats then
      return { -9, 'address' }
    end
  end
  local fresh, priority
  if m.codes == '1' then
    local known = redis.call('HGET', k.coded, user)
    local terms = known and redis.call('HGET', k.codes, known)
    if not terms then
      if code == '' then
        return { -9, 'code_needed' }
      end
      terms = redis.call('HGET', k.codes, code)
      if not terms then
        return { -9, 'code_used' }
      end
      local most = tonumber(string.match(terms, '^%d+'))
      if most > 0 and tonumber(redis.call('HGET', k.used, code) or '0') >= most then
        return { -9, 'code_used' }
      end
      fresh = code
    end
    priority = tonumber(string.match(terms, '%d+$'))
  end
  if m.challenge == '1' and not solved then
    return { -9, 'challenge_needed' } -- last, because whoever solved one should not have done so in vain
  end
  return nil, fresh, live, priority
end

-- admitted notes what admit decided by.
local function admitted(user, ticket, address, fresh, live)
  if fresh then
    redis.call('HINCRBY', k.used, fresh, 1)
    redis.call('HSET', k.coded, user, fresh)
  end
  if live then
    redis.call('HSET', k.addresses, address, live .. int(ticket) .. ' ' .. user .. '\n')
  end
end

-- enter notes what counts of a ticket when the lobby is put in order.
local function enter(ticket, leaf, priority)
  if leaf ~= '' then
    redis.call('SETRANGE', KEYS[12], 32 * (ticket - 1), leaf)
  end
  if sorts(m) and priority > 0 then
    redis.call('SETRANGE', k.ranks, ticket - 1, string.char(priority))
  end
end

-- claim gives a lost ticket back to the one who holds a token of it. What the loss took of codes and addresses comes
-- back along with it; nobody is refused by that.
local function claim(user, ticket, called, leaf, code, address)
  local number = number_of(k, m, ticket)
  local enters = number == 0 and not m.frozen -- the lobby that is to be put in order
  if ticket > tonumber(m.issued) or redis.call('GETBIT', k.lost, ticket) == 0 or (number == 0 and not enters) then
    return
  end
  redis.call('SETBIT', k.lost, ticket, 0)
  redis.call('HSET', k.seats, user, int(ticket))
  admitted(user, ticket, address, code ~= '' and redis.call('HEXISTS', k.coded, user) == 0 and code or nil,
    most_seats > 0 and address ~= '' and neighbours(address) or nil)
  if enters then
    redis.call('HINCRBY', k.meta, 'dropped', -1)
    redis.call('SETBIT', KEYS[14], ticket, 0)
    local terms = code ~= '' and redis.call('HGET', k.codes, code) or '0'
    enter(ticket, leaf, tonumber(string.match(terms, '%d+$')))
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

-- take gives the next ticket to a user who had `before`, or none (0), and returns the place.
local function take(user, before, leaf, priority)
  if before > 0 then
    redis.call('HDEL', k.conn, before)
  end
  local ticket = redis.call('HINCRBY', k.meta, 'issued', 1)
  redis.call('HSET', k.seats, user, int(ticket))
  if not m.frozen then
    enter(ticket, leaf, priority)
  end
  -- Nothing was ever noted of a new ticket, unless the cursor is ahead of what was kept of the tickets.
  local number = int(number_of(k, m, ticket))
  if tonumber(number) <= tonumber(m.served) and number ~= '0' then
    return { place(k, m, user, ms - still) }
  end
  return { WAITING, ticket, tonumber(number), '0', '', 0 }
end

local replies = { { int(ms), phase, stock, m.epoch, int(still) } }
for i = 1, (#ARGV - 7) / 11 do
  local a = 7 + 11 * (i - 1)
  local user, resumed, before, called = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), ARGV[a + 4] == '1'
  local here, leaf, code, address = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8]
  local denied, solved, counted = ARGV[a + 9] == '1', ARGV[a + 10] == '1', ARGV[a + 11] == '1'
  local reply = refused(19, i, at, counted)
  if not reply then
    local seat = { place(k, m, user, ms - still) }
    if seat[1] == NONE and resumed > 0 and before == tonumber(m.epoch) - 1 and phase ~= 'closed' then
      claim(user, resumed, called, leaf, code, address)
      seat = { place(k, m, user, ms - still) }
    end
    local none = seat[1] == NONE or seat[1] == MISSED or seat[1] == ABSENT
    if none and resumed == 0 and phase ~= 'recovering' then
      if phase == 'scheduled' or phase == 'closed' then
        reply = { -4 }
      elseif stock == 'gone' then
        reply = { -2 }
      elseif m.order ~= 'off' then
        local fresh, live, priority
        reply, fresh, live, priority = admit(user, code, address, denied, solved)
        if not reply then
          seat = take(user, seat[2], leaf, priority or 0)
          admitted(user, seat[2], address, fresh, live)
        end
      end
    end
    if not reply and (seat[1] == WAITING or seat[1] == TURN) and here ~= '' then
      local poll = here ~= 'c'
      if arrive(k, m, seat[2], seat[3], not poll and ARGV[6] or nil, poll and ms - still + tonumber(here) or nil) then
        seat = { place(k, m, user, ms - still) }
      end
    end
    if not reply then
      seat[7] = m.codes == '1' and redis.call('HGET', k.coded, user) or ''
    end
    reply = reply or seat
  end
  replies[#replies + 1] = reply
end
if #figures > 0 then
  replies[#replies + 1] = figures
end
return replies
