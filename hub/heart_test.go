package hub

import (
	"testing"
	"time"
)

func TestASessionWithoutHelloIsClosedWith4408(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	late, inTime := s.dial(), s.dial()
	inTime.greet()
	s.clock.Advance(10*time.Second - tick)
	s.hub.turn()
	late.session.Send(NewFrame([]byte("still here")))
	if got := late.hear(); got != "still here" {
		t.Fatalf("received %q", got)
	}
	s.clock.Advance(tick)
	s.hub.turn()
	late.ends(codeNoHello)
	inTime.session.Send(NewFrame([]byte("still here")))
	if got := inTime.hear(); got != "still here" {
		t.Fatalf("received %q", got)
	}
}

// TestAnIdleSessionThatAnswersPingsLivesForHalfAnHour walks the clock in steps, reading all the time as a browser does.
func TestAnIdleSessionThatAnswersPingsLivesForHalfAnHour(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	v.greet()
	pings := make(chan struct{}, 1)
	answer := v.peer.PingHandler()
	v.peer.SetPingHandler(func(data string) error {
		err := answer(data)
		pings <- struct{}{}
		return err
	})
	go func() {
		for {
			if _, _, err := v.peer.ReadMessage(); err != nil {
				return
			}
		}
	}()
	count, longest := 0, time.Duration(0)
	last := v.session.born
	for s.hub.clock() < 30*time.Minute {
		s.clock.Advance(time.Second)
		due := v.session.pingAt <= s.hub.clock()
		s.hub.turn()
		if !due {
			continue
		}
		await(t, pings, "a ping")
		now := s.hub.clock()
		eventually(t, "the pong", func() bool { return time.Duration(v.session.heard.Load()) == now })
		count++
		longest = max(longest, now-last)
		last = now
	}
	if longest > 26*time.Second {
		t.Errorf("%v passed without a ping", longest)
	}
	if count < 70 || count > 73 {
		t.Errorf("%d pings in half an hour", count)
	}
	if s.hub.Len() != 1 {
		t.Error("the session ended")
	}
}

func TestASilentPeerIsDroppedAfterAMinute(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	v.greet() // and from then on the peer does not even read
	for range 59 {
		s.clock.Advance(time.Second)
		s.hub.turn()
	}
	if s.hub.Len() != 1 {
		t.Fatal("dropped too early")
	}
	s.clock.Advance(time.Second)
	s.hub.turn()
	await(t, v.closed, "Closed")
	if code := v.session.bye.label; code != codeVanished {
		t.Errorf("counted as %d", code)
	}
}

func TestFirstPingsAreSpreadOverTheInterval(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	const n = 64
	halves := [2]int{}
	for range n {
		at := s.dial().session
		s.hub.turning.Lock()
		first := at.pingAt - at.born
		s.hub.turning.Unlock()
		if first < 0 || first > 25*time.Second {
			t.Fatalf("first ping after %v", first)
		}
		halves[first/(12500*time.Millisecond+1)]++
	}
	if halves[0] == 0 || halves[1] == 0 {
		t.Errorf("first pings fall into the halves of the interval as %v", halves)
	}
}

func TestANodeThatStoodStillDoesNotDropThoseWhoAreThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, Options{})
	v := s.dial()
	v.greet()
	s.clock.Advance(5 * time.Minute) // a frozen machine: what peers sent lies unread
	s.hub.turn()
	v.session.Send(NewFrame([]byte("still here")))
	if got := v.hear(); got != "still here" {
		t.Fatalf("received %q", got)
	}
	eventually(t, "that who is silent after that is dropped as ever", func() bool {
		s.clock.Advance(time.Second)
		s.hub.turn()
		return s.hub.Len() == 0
	})
}
