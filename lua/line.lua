-- Put before every script, after common.lua: what concerns the line. Here k names the keys that a script was given.
--
-- A ticket names a seat for good; tickets are given in the order of arrival. A number is the place in the line. In a
-- line by arrival they are the same. In a lottery the numbers of the lobby are drawn, where codes have a priority it is
-- put in order by that, and who comes later follows in the order of arrival. What stands here of a draw is true of
-- both. Seats, conn and away are kept by ticket; turns, gone and recall by number.

-- LINE names the fields that this part needs, besides those of STATE.
local LINE = { 'served', 'frozen', 'live' }

-- drawn reads one entry of the draw: the numbers of the tickets that were frozen, then the tickets of those numbers,
-- four bytes each.
local function drawn(draw, index)
  local a, b, c, d = string.byte(redis.call('GETRANGE', draw, 4 * index - 4, 4 * index - 1), 1, 4)
  return ((a * 256 + b) * 256 + c) * 256 + d
end

-- number_of returns the number of a ticket, 0 while it is not drawn.
local function number_of(k, m, ticket)
  if not sorts(m) then
    return ticket
  end
  local frozen = tonumber(m.frozen)
  if not frozen or (ticket <= frozen and undrawn(m)) then
    return 0
  end
  return ticket > frozen and ticket - frozen + tonumber(m.live) or drawn(k.draw, ticket)
end

-- ticket_of returns the ticket of a number.
local function ticket_of(k, m, number)
  if not sorts(m) then
    return number
  end
  local live = tonumber(m.live)
  return number > live and number - live + tonumber(m.frozen) or drawn(k.draw, tonumber(m.frozen) + number)
end

-- What a seat can be; the numbers are those of SeatStatus in package queue.
local NONE, WAITING, TURN, MISSED, BUYER, ABSENT = 0, 1, 2, 3, 4, 5

-- place returns where a user stands: status, ticket, number, the deadline of a turn in sale time, the mark of a buyer,
-- and 1 for one who is to be called before the others.
local function place(k, m, user, sale_ms)
  local ticket = tonumber(redis.call('HGET', k.seats, user) or '0')
  local mark = redis.call('HGET', k.winners, user)
  local number = ticket > 0 and number_of(k, m, ticket) or 0
  if mark then
    return BUYER, ticket, number, '0', mark, 0
  end
  if ticket == 0 then
    return NONE, 0, 0, '0', '', 0
  end
  if number == 0 then
    return WAITING, ticket, 0, '0', '', 0
  end
  local called = number <= tonumber(m.served)
  if redis.call('GETBIT', k.recall, number) == 1 then
    return WAITING, ticket, number, '0', '', called and 1 or 0
  end
  if called then
    local deadline = redis.call('ZSCORE', k.turns, number)
    if deadline and tonumber(deadline) > sale_ms then
      return TURN, ticket, number, int(tonumber(deadline)), '', 0
    end
  end
  if redis.call('GETBIT', k.gone, number) == 1 then
    return ABSENT, ticket, number, '0', '', 0
  end
  if not called or redis.call('ZSCORE', k.away, ticket) and not redis.call('ZSCORE', k.turns, number) then
    return WAITING, ticket, number, '0', '', 0
  end
  return MISSED, ticket, number, '0', '', 0
end

-- away_since returns for each ticket since when nobody of it is here, in sale time, and nothing for those of whom
-- somebody is. Somebody is here while one of the nodes that hold a connection has a lease, or until the moment that a
-- poll was good for; of a seat that nothing was ever noted of, nobody has gone.
local function away_since(k, tickets, sale_ms)
  if #tickets == 0 then
    return {}
  end
  local leases, flat = {}, redis.call('HGETALL', k.nodes)
  for i = 1, #flat, 2 do
    leases[flat[i]] = tonumber(flat[i + 1])
  end
  local conn, since = redis.call('HMGET', k.conn, unpack(tickets)), {}
  for i, ticket in ipairs(tickets) do
    local lapsed
    for node in string.gmatch(conn[i] or '', '%S+') do
      lapsed = math.max(lapsed or 0, leases[node] or sale_ms)
    end
    if not lapsed or lapsed <= sale_ms then
      since[i] = tonumber(redis.call('ZSCORE', k.away, ticket) or lapsed)
      if since[i] and since[i] > sale_ms then
        since[i] = nil
      end
    end
  end
  return since
end

-- recall puts numbers before all others, so that they are called again, or at last.
local function recall(k, numbers)
  for _, number in ipairs(numbers) do
    redis.call('SETBIT', k.recall, number, 1)
  end
  redis.call('HINCRBY', k.meta, 'recalls', 1)
  tell(k.meta, k.news, 't', 'recall', 'n', table.concat(numbers, ','))
end

-- arrive notes that somebody of a seat is here: on a node, or by a poll until a moment of sale time. Who was passed by
-- the cursor meanwhile is recalled. It returns true when the seat was away, and may stand elsewhere now.
local function arrive(k, m, ticket, number, node, till)
  local away = redis.call('ZSCORE', k.away, ticket)
  if away then
    if number > 0 and number <= tonumber(m.served) and not redis.call('ZSCORE', k.turns, number) and
        redis.call('GETBIT', k.recall, number) == 0 then
      recall(k, { int(number) })
    end
    redis.call('ZREM', k.away, ticket)
  end
  if not node then
    redis.call('ZADD', k.away, int(till), ticket)
    return away
  end
  local held = redis.call('HGET', k.conn, ticket)
  if not held then
    redis.call('HSET', k.conn, ticket, node)
  elseif not string.find(' ' .. held .. ' ', ' ' .. node .. ' ', 1, true) then
    redis.call('HSET', k.conn, ticket, held .. ' ' .. node)
  end
  return away
end

-- forsake notes that nobody of a seat is here, since a moment of sale time. A seat that is used up is not kept.
local function forsake(k, m, ticket, since)
  local number = number_of(k, m, ticket)
  local keeps = number == 0
  if number > tonumber(m.served) then
    keeps = redis.call('GETBIT', k.gone, number) == 0 or redis.call('GETBIT', k.recall, number) == 1
  elseif number > 0 then
    keeps = redis.call('ZSCORE', k.turns, number) or redis.call('ZSCORE', k.away, ticket)
    if redis.call('SETBIT', k.recall, number, 0) == 1 then
      redis.call('HINCRBY', k.meta, 'recalls', 1)
      keeps = true
    end
  end
  if keeps then
    local before = tonumber(redis.call('ZSCORE', k.away, ticket) or since)
    redis.call('ZADD', k.away, int(math.max(before, since)), ticket)
  end
end

-- depart removes nodes from those that hold a connection of a seat; nothing is left of it when they were the last.
local function depart(k, m, ticket, nodes, since)
  local held, rest, found = redis.call('HGET', k.conn, ticket), {}, false
  for node in string.gmatch(held or '', '%S+') do
    if nodes[node] then
      found = true
    else
      rest[#rest + 1] = node
    end
  end
  if not found then
    return
  end
  if #rest > 0 then
    redis.call('HSET', k.conn, ticket, table.concat(rest, ' '))
  else
    redis.call('HDEL', k.conn, ticket)
    forsake(k, m, ticket, since)
  end
end
