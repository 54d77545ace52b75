package queue

import (
	"context"
	"sync"
	"time"
)

// How concurrent calls are gathered: at most two calls are under way, what arrives meanwhile makes the next one. There
// is no timer, so a lone request never waits, and the busier it gets the larger the batches are.
const (
	gatherFlights = 2
	gatherMost    = 64
	gatherTimeout = 2 * time.Second
)

// gather turns concurrent requests into calls of many. The outcome equals that of running them one by one in the order
// of their arrival in a call.
type gather[A, R any] struct {
	run func(context.Context, []A) ([]R, []error)

	mu      sync.Mutex
	waiting []*request[A, R]
	flights int
}

type request[A, R any] struct {
	arg    A
	result R
	err    error
	done   chan struct{}
}

// newGather makes a gather around run, which returns a result and an error for each of its arguments.
func newGather[A, R any](run func(context.Context, []A) ([]R, []error)) *gather[A, R] {
	return &gather[A, R]{run: run}
}

// do makes the request part of a call and waits for its outcome. When ctx ends first the outcome is unknown: the call
// goes on, so the caller must be able to ask again with the same ids.
func (g *gather[A, R]) do(ctx context.Context, arg A) (R, error) {
	r := &request[A, R]{arg: arg, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, r)
	if g.flights < gatherFlights {
		g.flights++
		go g.fly()
	}
	g.mu.Unlock()
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		var zero R
		return zero, ctx.Err()
	}
}

// fly makes calls until nobody waits.
func (g *gather[A, R]) fly() {
	for {
		g.mu.Lock()
		n := min(len(g.waiting), gatherMost)
		if n == 0 {
			g.flights--
			g.mu.Unlock()
			return
		}
		batch := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		g.mu.Unlock()

		args := make([]A, n)
		for i, r := range batch {
			args[i] = r.arg
		}
		ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
		results, errs := g.run(ctx, args)
		cancel()
		for i, r := range batch {
			r.result, r.err = results[i], errs[i]
			close(r.done)
		}
	}
}
