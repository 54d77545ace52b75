-- Floods one sale with grabs, each of another user, over plain HTTP: what a node and its Redis take without sockets.
--
--   wrk -t2 -c100 -d30s -s deploy/wrk/seckill.lua http://127.0.0.1:8080 -- SALE SECRET [USERS]
--
--   SALE    id of the sale; its line should be off, else most answers are "no_turn"
--   SECRET  the server's --secret (the first one, if it has several), which must accept --auth hmac
--   USERS   how many users each thread has before they come again (default 100000): user N of thread T is wrk-T-N,
--           because wrk does not tell a thread how many others there are to share users with
--
-- A user who comes again after buying is answered "already", and one who comes more often than the server's
-- --limit-user is refused: for the cost of grabs alone take USERS larger than the requests of a thread.
-- At the end the answers are counted by result code and by HTTP status. For anything but raw speed use `sluice crowd`,
-- which sends whole shoppers and checks what they were told.

local bit = require('bit')
local band, bnot, bxor, ror, rshift = bit.band, bit.bnot, bit.bxor, bit.ror, bit.rshift
local tobit, tohex = bit.tobit, bit.tohex

-- SHA-256 (FIPS 180-4): the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
local K = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
local START = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

-- w holds the message schedule of the block at hand; one table for all blocks spares the collector.
local w = {}

-- compress returns the state after the 64-byte block of text that starts at byte `at`.
local function compress(state, text, at)
  for i = 1, 16 do
    local p = at + (i - 1) * 4
    local a, b, c, d = text:byte(p, p + 3)
    w[i] = tobit(a * 0x1000000 + b * 0x10000 + c * 0x100 + d)
  end
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0 = bxor(ror(x, 7), ror(x, 18), rshift(x, 3))
    local s1 = bxor(ror(y, 17), ror(y, 19), rshift(y, 10))
    w[i] = tobit(w[i - 16] + s0 + w[i - 7] + s1)
  end
  local a, b, c, d, e, f, g, h = unpack(state)
  for i = 1, 64 do
    local s1 = bxor(ror(e, 6), ror(e, 11), ror(e, 25))
    local t1 = h + s1 + bxor(band(e, f), band(bnot(e), g)) + K[i] + w[i]
    local s0 = bxor(ror(a, 2), ror(a, 13), ror(a, 22))
    local t2 = s0 + bxor(band(a, b), band(a, c), band(b, c))
    h, g, f, e, d, c, b, a = g, f, e, tobit(d + t1), c, b, a, tobit(t1 + t2)
  end
  return {
    tobit(state[1] + a), tobit(state[2] + b), tobit(state[3] + c), tobit(state[4] + d),
    tobit(state[5] + e), tobit(state[6] + f), tobit(state[7] + g), tobit(state[8] + h),
  }
end

-- word returns a number below 2^32 as four bytes, the highest first.
local function word(n)
  return string.char(band(rshift(n, 24), 255), band(rshift(n, 16), 255), band(rshift(n, 8), 255), band(n, 255))
end

-- digest returns the state after the rest of a message, of whose bytes `before` (whole blocks) went into state already.
local function digest(state, text, before)
  local zeros = (55 - #text) % 64
  local length = (before + #text) * 8
  text = text .. '\128' .. ('\0'):rep(zeros) .. word(math.floor(length / 0x100000000)) .. word(tobit(length))
  for at = 1, #text, 64 do
    state = compress(state, text, at)
  end
  return state
end

local function bytes(state)
  local out = {}
  for i = 1, 8 do
    out[i] = word(state[i])
  end
  return table.concat(out)
end

local function hex(state)
  local out = {}
  for i = 1, 8 do
    out[i] = tohex(state[i])
  end
  return table.concat(out)
end

-- hmac returns a function from a message to the hex HMAC-SHA256 under the key. The blocks of the two pads depend on
-- the key alone, so they are compressed once: a short message then costs two compressions instead of four.
local function hmac(key)
  if #key > 64 then
    key = bytes(digest(START, key, 0))
  end
  key = key .. ('\0'):rep(64 - #key)
  local function pad(with)
    return compress(START, key:gsub('.', function(c) return string.char(bxor(c:byte(), with)) end), 1)
  end
  local inner, outer = pad(0x36), pad(0x5c)
  return function(text)
    return hex(digest(outer, bytes(digest(inner, text, 64)), 64))
  end
end

-- self_check compares with published vectors: a wrong sum would only show as every request being refused.
local function self_check()
  local vectors = {
    -- RFC 4231, test cases 2 and 6: a short key, and one longer than a block.
    { 'Jefe', 'what do ya want for nothing?', '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843' },
    {
      ('\170'):rep(131), 'Test Using Larger Than Block-Size Key - Hash Key First',
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    },
  }
  for _, v in ipairs(vectors) do
    if hmac(v[1])(v[2]) ~= v[3] then
      error('HMAC-SHA256 is wrong on this LuaJIT')
    end
  end
end

-- A token lives longer than any run, so that one expiry, fixed at the start, does for all of them.
local LIFETIME = 24 * 60 * 60

-- What follows is called by wrk: setup and done in a Lua state of their own, init, request and response in the state of
-- each thread. A thread object reads and writes the globals of its thread's state, so what passes between them is
-- global: thread_number in, answers out.

local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  thread:set('thread_number', #threads)
end

local path, sign, expiry, users
local sent = 0

function init(args)
  self_check()
  users = tonumber(args[3] or '100000')
  if not args[1] or not args[2] or args[4] or not users or users < 1 or users % 1 ~= 0 then
    io.stderr:write('usage: wrk -t2 -c100 -d30s -s deploy/wrk/seckill.lua URL -- SALE SECRET [USERS]\n')
    os.exit(2)
  end
  path = '/api/v1/seckill/' .. args[1]
  sign = hmac(args[2])
  expiry = os.time() + LIFETIME
  answers = {}
end

function request()
  local user = 'wrk-' .. thread_number .. '-' .. sent % users + 1
  sent = sent + 1
  return wrk.format('POST', path, {
    ['X-User-Id'] = user,
    ['X-Token'] = expiry .. '.' .. sign(user .. '.' .. expiry),
    ['Content-Length'] = '0',
  })
end

-- response counts by result code or, for what is no result, by status and problem code.
function response(status, _, body)
  local answer
  if status == 200 then
    answer = 'code ' .. (body:match('"code":%s*(%-?%d+)') or 'missing')
  else
    answer = 'HTTP ' .. status .. ' ' .. (body:match('"code":%s*"([%w_]+)"') or '')
  end
  answers[answer] = (answers[answer] or 0) + 1
end

local NAMES = {
  ['code 0'] = 'success', ['code -1'] = 'already', ['code -2'] = 'sold_out', ['code -3'] = 'no_turn',
  ['code -4'] = 'not_open',
}

function done(summary)
  local sum, order = {}, {}
  for _, thread in ipairs(threads) do
    for answer, n in pairs(thread:get('answers')) do
      if not sum[answer] then
        order[#order + 1] = answer
      end
      sum[answer] = (sum[answer] or 0) + n
    end
  end
  table.sort(order, function(a, b) return sum[a] > sum[b] end)

  local line = '  %-28s %10d  %s\n'
  io.write('Answers:\n')
  for _, answer in ipairs(order) do
    io.write(line:format(answer, sum[answer], NAMES[answer] or ''))
  end
  for _, kind in ipairs({ 'connect', 'read', 'write', 'timeout' }) do
    if summary.errors[kind] > 0 then
      io.write(line:format('no answer', summary.errors[kind], kind .. ' error'))
    end
  end
end
