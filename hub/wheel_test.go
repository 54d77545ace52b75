package hub

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTheWheelIsNeitherEarlyNorLate compares the wheel with a plain list of what is due.
func TestTheWheelIsNeitherEarlyNorLate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var w wheel
		now := time.Duration(0)
		due := map[*Session]time.Duration{}
		var all []*Session
		removed := map[*Session]bool{}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := &Session{}
				all = append(all, s)
				due[s] = now + time.Duration(rapid.Int64Range(0, 2*slots).Draw(t, "ticks"))*tick/2
				w.put(s, due[s])
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip("none")
				}
				s := rapid.SampledFrom(all).Draw(t, "session")
				w.remove(s)
				removed[s] = true
				delete(due, s)
				w.put(s, now) // does nothing
			},
			"take": func(t *rapid.T) {
				now += rapid.SampledFrom([]time.Duration{
					0, 1, tick / 2, tick, 5 * tick, (slots - 1) * tick, slots * tick, (slots + 5) * tick, 3 * slots * tick,
				}).Draw(t, "step")
				for _, s := range w.take(now) {
					at, ok := due[s]
					switch {
					case removed[s]:
						t.Fatal("a removed session was returned")
					case !ok:
						t.Fatal("a session was returned twice")
					case at > now:
						w.put(s, at) // beyond the horizon: put back, as the heart does
					default:
						delete(due, s)
					}
				}
				for _, at := range due {
					if at <= now-2*tick {
						t.Fatalf("now is %v and what was due at %v was not returned", now, at)
					}
				}
			},
		})
	})
}
