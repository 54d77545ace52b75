package hub

import "time"

// standstill is a gap between two turns that only a stopped process explains: a frozen machine, a paused container.
const standstill = 5 * time.Second

// beat turns the wheels until the hub is closed.
func (h *Hub) beat() {
	defer close(h.stopped)
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			h.turn()
		case <-h.quit:
			return
		}
	}
}

// turn does all that is due by now.
func (h *Hub) turn() {
	h.turning.Lock()
	defer h.turning.Unlock()
	now := h.clock()
	if now-h.turned > standstill {
		h.resumed = now
	}
	h.turned = now
	for _, d := range h.shards {
		for _, s := range d.wheel.take(now) {
			if next, ok := s.tend(now); ok {
				d.wheel.put(s, next)
			}
		}
	}
}

// tend does what is due for one session and returns when to look again, or false when the session is ending.
func (s *Session) tend(now time.Duration) (next time.Duration, ok bool) {
	o := &s.hub.opts
	s.mu.Lock()
	greeted, ending := s.greeted, s.bye != nil || s.done
	s.mu.Unlock()
	if ending {
		return 0, false // the deadlines of its connection see to the rest
	}
	if hello := s.born + o.HelloWithin; !greeted {
		if now >= hello {
			s.Close(codeNoHello, "no hello in time")
			return 0, false
		}
		next = hello
	}
	// What peers said while this process stood still is not read yet: it must not take that for everybody's silence.
	silent := max(time.Duration(s.heard.Load()), s.hub.resumed) + o.SilentAfter
	if now >= silent {
		s.abort(codeVanished)
		return 0, false
	}
	if now >= s.pingAt {
		s.ping()
		// Skipping what was missed keeps each session at its own phase.
		s.pingAt += (now-s.pingAt)/o.PingEvery*o.PingEvery + o.PingEvery
	}
	if next == 0 {
		next = silent
	}
	return min(next, silent, s.pingAt), true
}
