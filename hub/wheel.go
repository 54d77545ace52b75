package hub

import (
	"sync"
	"time"
)

const (
	tick  = 250 * time.Millisecond // how exactly the wheel keeps time
	slots = 256                    // 64 s a turn: one for every default deadline
)

// wheel holds each session of a shard in the slot of the tick at which something is due for it. Moving a session costs
// two list operations, and a session without a timer of its own saves a heap entry in the runtime and 100 bytes.
type wheel struct {
	mu    sync.Mutex
	at    int64 // the last tick that was taken
	slots [slots]*Session
}

// spoke is a session's place in the wheel, guarded by wheel.mu.
type spoke struct {
	next, prev *Session
	slot       int16
	held       bool // is in the wheel
	off        bool // was removed for good
}

// put has the session returned by take at due, or at the wheel's horizon when that comes first.
func (w *wheel) put(s *Session, due time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.spoke.off || s.spoke.held {
		return
	}
	at := int64((due + tick - 1) / tick)
	at = max(at, w.at+1)
	at = min(at, w.at+slots-1)
	slot := at % slots
	first := w.slots[slot]
	s.spoke = spoke{next: first, slot: int16(slot), held: true}
	if first != nil {
		first.spoke.prev = s
	}
	w.slots[slot] = s
}

// remove takes the session out for good: a later put does nothing.
func (w *wheel) remove(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := &s.spoke; p.held {
		if p.prev != nil {
			p.prev.spoke.next = p.next
		} else {
			w.slots[p.slot] = p.next
		}
		if p.next != nil {
			p.next.spoke.prev = p.prev
		}
	}
	s.spoke = spoke{off: true}
}

// take turns the wheel to now and returns the sessions it passed, which are then no longer in it.
func (w *wheel) take(now time.Duration) []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := int64(now / tick)
	// After a longer gap than a turn every slot is passed once.
	w.at = max(w.at, end-slots)
	var due []*Session
	for w.at < end {
		w.at++
		slot := w.at % slots
		for s := w.slots[slot]; s != nil; {
			next := s.spoke.next
			s.spoke = spoke{}
			due = append(due, s)
			s = next
		}
		w.slots[slot] = nil
	}
	return due
}
