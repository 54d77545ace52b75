package server

import (
	"maps"
	"sync"
	"time"

	"sluice/queue"
)

// How many wrong admin tokens are answered as such, from one address and from all together. The figures are of a node.
const (
	attemptsAddress = 10
	attemptsNode    = 100
	attemptsPer     = time.Minute
	// attemptsKept bounds the memory for addresses. Beyond it only the limit of all together counts.
	attemptsKept = 1000
)

// attempts counts wrong admin tokens. It is never asked about a right one, so nobody can lock an operator out by guessing: what
// keeps a guesser out is the length of the token, of which a short one is warned at start, and what is limited is the noise.
type attempts struct {
	mu        sync.Mutex
	all       *window
	addresses map[string]*window
}

func newAttempts() *attempts {
	return &attempts{all: newAttemptWindow(attemptsNode), addresses: map[string]*window{}}
}

func newAttemptWindow(n int64) *window {
	w, err := newWindow(queue.Rate{N: n, Per: attemptsPer})
	if err != nil {
		panic("server: " + err.Error()) // the rate is a constant
	}
	return w
}

// fail counts a wrong token from an address, or says how long until another one is answered, and which limit that is.
func (a *attempts) fail(address string, now time.Time) (wait time.Duration, limit int64, ok bool) {
	a.mu.Lock()
	own := a.addresses[address]
	if own == nil {
		if len(a.addresses) >= attemptsKept {
			maps.DeleteFunc(a.addresses, func(_ string, w *window) bool { return w.idle(now) })
		}
		if len(a.addresses) < attemptsKept {
			own = newAttemptWindow(attemptsAddress)
			a.addresses[address] = own
		}
	}
	a.mu.Unlock()
	if own != nil {
		if wait, ok := own.take(now); !ok {
			return wait, attemptsAddress, false
		}
	}
	wait, ok = a.all.take(now)
	return wait, attemptsNode, ok
}
