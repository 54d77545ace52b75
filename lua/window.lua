-- The windows of limits: the moments of the last requests that passed, by user and by address. Put before every script.

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

-- judge returns how many microseconds later a request may come that is beyond a limit now, or nil; how many have passed
-- within the window; and in how many microseconds the first of them leaves it. The key holds the moments of the last
-- `most` requests that passed, so that any window holds at most `most`.
local function judge(key, most, window, at)
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
    wait, user_passed, user_reset = judge(of_user, user, tonumber(ARGV[2]), at)
  end
  if address > 0 and (counted or not wait) then
    local later
    later, address_passed, address_reset = judge(of_address, address, tonumber(ARGV[4]), at)
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
