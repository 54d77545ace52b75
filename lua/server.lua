-- The run id of a Redis server changes when it restarts and when a replica takes over.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end
