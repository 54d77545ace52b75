-- The run id of a Redis server changes when it restarts and when a replica takes over. It is asked for once a call: it
-- takes longer than most of what a script does.
local run
local function run_id()
  run = run or string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  return run
end
