-- The embedded Redis lives and dies with its process and its data, so its runs need no telling apart.
local function run_id()
  return 'embedded'
end
