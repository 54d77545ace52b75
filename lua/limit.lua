-- Counts a request that is of no one sale against the limits of its user and its address.
--
-- KEYS  one for each limit that is on
-- ARGV  1 user limit, 2 its window, 3 address limit, 4 its window (microseconds)
-- returns  {0, which limit has less left, how many more may come now, in how many microseconds it is one more} when it
--          may pass; {-5, which limit, microseconds to wait}
return refused(0, 1, now()) or { 0, figures[1], figures[2], figures[3] }
