-- The scripts run inside Redis. Each is compiled behind server.lua (or embedded.lua) and common.lua, so that what is
-- local there is known in every script; lua/lua.go puts them together.
std = 'lua51'
max_line_length = 120

local redis = { 'redis', 'cjson', 'KEYS', 'ARGV' }

local known = {
  -- server.lua, embedded.lua
  'run_id',
  -- common.lua
  'now', 'int', 'read', 'STATE', 'fields', 'state', 'GAP', 'stopped', 'left', 'stock_state',
  'NONE', 'WAITING', 'TURN', 'MISSED', 'BUYER', 'place', 'tell', 'mark_of', 'mark_parts', 'limited', 'refused',
  unpack(redis),
}

files['lua/*.lua'] = { read_globals = known }

-- What these three define is used by the others.
for _, name in ipairs({ 'server', 'embedded' }) do
  files['lua/' .. name .. '.lua'] = { new_read_globals = redis, ignore = { '211' } }
end
files['lua/common.lua'] = { new_read_globals = { 'run_id', unpack(redis) }, ignore = { '211' } }

-- A script of wrk defines what wrk calls, in LuaJIT; the two others pass between its Lua states.
files['deploy/wrk/*.lua'] = {
  std = 'luajit',
  globals = { 'setup', 'init', 'request', 'response', 'done', 'answers' },
  read_globals = { 'wrk', 'thread_number' },
}
