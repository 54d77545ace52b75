package worker

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The waits between tries while a dependency is away: long enough to be no burden to it, short enough to be back
// within 5 s after it is.
const (
	troubleFirst = 50 * time.Millisecond
	troubleMost  = 1500 * time.Millisecond
)

// trouble is something that fails for a while. It says how long to wait until the next try, and logs when it begins
// and when it is over, but not each try. It belongs to one goroutine.
type trouble struct {
	log   *slog.Logger
	what  string // what fails, for the log: "write orders"
	on    bool
	tries int
	since time.Time // of on
}

// met is to be called after a failed try. It returns how long to wait before the next one.
func (t *trouble) met(err error) time.Duration {
	if !t.on {
		if time.Since(t.since) > 2*troubleMost { // else it was only away for a moment, and the waits go on growing
			t.tries = 0
		}
		t.on, t.since = true, time.Now()
		t.log.Warn("cannot "+t.what+", trying again", "error", err)
	}
	limit := min(troubleFirst<<min(t.tries, 10), troubleMost)
	t.tries++
	return limit/2 + rand.N(limit/2) // so that those who failed together do not come back together
}

// over is to be called after a try that succeeded.
func (t *trouble) over() {
	if t.on {
		t.log.Info("can "+t.what+" again", "after", time.Since(t.since).Round(time.Millisecond))
		t.on, t.since = false, time.Now()
	}
}

// sleep waits, and says whether it was for the whole time and not until ctx ended.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
