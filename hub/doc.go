// Package hub holds the WebSocket sessions of one node. It speaks in frames, groups and keys and knows nothing of what
// they mean: the server binds a session to a group (a sale) and a key (a seat) and sends frames to either.
//
// # Goroutines
//
// A session costs one goroutine, its reader, which waits for a message and is then replaced: a goroutine of the crew, or the
// reader itself when none is free, calls the handler, and a new reader begins when that is done. So there is one at a time,
// or none while a handler has put off its end, and only a reader ends the session.
// Nobody waits to write: whoever queues the first frame of an idle session starts a drainer, which writes until nothing
// is queued and returns. So there is at most one writer a connection, and a peer that does not read holds up its own
// drainer and nothing else. One more goroutine, the heart, turns the timer wheels of all shards.
//
// # What is queued
//
// Frames given to Send are kept in order and never dropped; when too many wait, or a write takes too long, the session
// is closed with 1013 and its shopper learns everything after the next hello. The frame given to Position replaces the
// one before it. Pongs and pings are written first, the rest in the order in which it was queued, the
// close frame last. A position frame that replaces another takes its own, later place, so none is written after a later
// Send, and the newest one is always written. What a peer
// has seen is therefore always a prefix of what was sent to it, with old positions left out.
//
// # Locks
//
//	Hub.turning → wheel.mu
//	Hub.turning → Session.mu
//	shard.mu    → Session.mu
//
// Hub.mu is taken alone. wheel.mu and Session.mu are never held together, nor are the locks of two shards.
// No lock is held while something is read, written or handed to a handler. Setting a deadline is not I/O and is done
// under Session.mu, so that the last one set is the one that was meant.
//
// A session belongs to two shards: that of its id keeps the set of all sessions and the wheel, that of its key keeps
// the index of groups and keys. They are chosen at different times and usually differ.
//
// # Clocks
//
// Heartbeats, the hello deadline and the message budget run by Options.Now. Write and read deadlines belong to the
// kernel and run by its clock.
package hub
