-- The scripts run inside Redis. Each is compiled behind server.lua (or embedded.lua), rules.lua, window.lua and line.lua,
-- so that what is local there is known in every script; lua/lua.go puts them together.
std = 'lua51'
max_line_length = 120

local redis = { 'redis', 'cjson', 'KEYS', 'ARGV' }

local function with(names, more)
  local all = { unpack(names) }
  for _, name in ipairs(more) do
    all[#all + 1] = name
  end
  return all
end

local rules = with(redis, {
  -- server.lua, embedded.lua
  'run_id',
  -- rules.lua
  'now', 'int', 'read', 'STATE', 'fields', 'sorts', 'undrawn', 'state', 'GAP', 'stopped', 'left', 'stock_state', 'tell',
  'mark_of', 'mark_parts', 'traces_of', 'tell_order', 'supplied',
})
local windows = with(rules, {
  -- window.lua
  'refused', 'figures',
})
local known = with(windows, {
  -- line.lua
  'LINE', 'number_of', 'ticket_of', 'NONE', 'WAITING', 'TURN', 'MISSED', 'BUYER', 'ABSENT', 'place', 'away_since', 'recall',
  'arrive', 'forsake', 'depart',
})

files['lua/*.lua'] = { read_globals = known }

-- What these five define is used by the others.
for _, name in ipairs({ 'server', 'embedded' }) do
  files['lua/' .. name .. '.lua'] = { new_read_globals = redis, ignore = { '211' } }
end
files['lua/rules.lua'] = { new_read_globals = with(redis, { 'run_id' }), ignore = { '211', '241' } }
files['lua/window.lua'] = { new_read_globals = rules, ignore = { '211', '241' } }
files['lua/line.lua'] = { new_read_globals = windows, ignore = { '211' } }

-- A script of wrk defines what wrk calls, in LuaJIT; the two others pass between its Lua states.
files['deploy/wrk/*.lua'] = {
  std = 'luajit',
  globals = { 'setup', 'init', 'request', 'response', 'done', 'answers' },
  read_globals = { 'wrk', 'thread_number' },
}
