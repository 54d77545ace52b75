package queue_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/queue"
)

// TestTheTimeToWaitFollowsThePaceOfTheLine: what is told is the pace of the last minute, and soon the new one after a change.
func TestTheTimeToWaitFollowsThePaceOfTheLine(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) { s.Line.Rate, s.Items[0].Stock = 10, 5000 })
	c.fill(3000)
	if _, _, known := c.tick().ETA(3000); known {
		t.Error("a time to wait is told before anybody was called")
	}
	near := func(what string, s *queue.Snapshot, number int64, want time.Duration) {
		t.Helper()
		eta, most, known := s.ETA(number)
		if !known || eta < want*8/10 || eta > want*12/10 || most <= eta {
			t.Errorf("%s: number %d waits %s to %s (%v), want about %s; %d are ahead at %.1f a second",
				what, number, eta, most, known, want, s.Ahead(number), s.Rate)
		}
		if _, decimals, _ := strings.Cut(strconv.FormatFloat(s.Rate, 'f', -1, 64), "."); len(decimals) > 3 {
			t.Errorf("%s: the pace is told as %v a second", what, s.Rate)
		}
	}
	s := c.live(30*time.Second, 0)
	near("at ten a second", s, 2300, 200*time.Second)
	c.clock.pass(37 * time.Millisecond)
	near("at a moment that is no multiple", c.tick(), 2300, 200*time.Second)
	faster := c.sale
	faster.Line.Rate = 50
	if err := c.Apply(t.Context(), faster); err != nil {
		t.Fatal(err)
	}
	s = c.live(3*time.Second, 0)
	near("three seconds after a change to fifty", s, 2450, 40*time.Second)
	near("the next one", s, s.Served+1, 20*time.Millisecond)
}
