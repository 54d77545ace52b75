package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// How concurrent calls are gathered: at most two calls are under way, what arrives meanwhile makes the next one. There
// is no timer, so a lone request never waits, and the busier it gets the larger the batches are.
const (
	gatherFlights = 2
	gatherMost    = 64  // joins in one call
	grabMost      = 256 // grabs in one call: with appendfsync always each call waits for the disk, and 256 sell half as much again as 64
	gatherTimeout = 2 * time.Second
)

// gather turns concurrent requests into calls of many. The outcome equals that of running them one by one in the order
// of their arrival in a call.
type gather[A, R any] struct {
	most int // requests in one call
	run  func(context.Context, []A) ([]R, []error)

	mu      sync.Mutex
	waiting []request[A, R]
	flights int
}

type request[A, R any] struct {
	arg  A
	by   time.Time // who asks waits no longer than until then; zero = has no end
	then func(R, error)
}

// newGather makes a gather around run, which takes at most so many arguments and returns a result and an error for each.
func newGather[A, R any](most int, run func(context.Context, []A) ([]R, []error)) *gather[A, R] {
	return &gather[A, R]{most: most, run: run}
}

// do makes the request part of a call and waits for its outcome. When ctx ends first the outcome is unknown: the call
// goes on, so the caller must be able to ask again with the same ids.
func (g *gather[A, R]) do(ctx context.Context, arg A) (R, error) {
	type outcome struct {
		result R
		err    error
	}
	done := make(chan outcome, 1)
	g.start(request[A, R]{arg: arg, then: func(result R, err error) { done <- outcome{result, err} }})
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		var zero R
		return zero, ctx.Err()
	}
}

// start makes the request part of a call and returns. Its `then` is called with the outcome, after those of others, so it
// must not wait for anything; with errLate and without a call when its time has passed before its turn came.
func (g *gather[A, R]) start(r request[A, R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = append(g.waiting, r)
	if g.flights < gatherFlights {
		g.flights++
		go g.fly()
	}
}

// errLate is the cause of a request that was not made in time. Nothing has been asked of Redis.
var errLate = errors.New("too many others were before it")

// next takes the requests of the next call, or ends the flight.
func (g *gather[A, R]) next(batch []request[A, R]) []request[A, R] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), g.most)
	if n == 0 {
		g.flights--
		return nil
	}
	batch = append(batch[:0], g.waiting[:n]...)
	clear(g.waiting[:n])
	if g.waiting = g.waiting[n:]; len(g.waiting) == 0 {
		g.waiting = nil
	}
	return batch
}

// fly makes calls until nobody waits.
func (g *gather[A, R]) fly() {
	// They grow with what comes: room for the most would cost a lone grab 70 KB.
	var batch []request[A, R]
	var args []A
	for {
		if batch = g.next(batch); len(batch) == 0 {
			return
		}
		now := time.Now()
		kept := batch[:0]
		args = slices.Grow(args[:0], len(batch))
		for _, r := range batch {
			if !r.by.IsZero() && now.After(r.by) {
				var zero R
				r.then(zero, errLate)
				continue
			}
			kept, args = append(kept, r), append(args, r.arg)
		}
		if len(kept) == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), gatherTimeout)
		results, errs := g.run(ctx, args)
		cancel()
		for i, r := range kept {
			r.then(results[i], errs[i])
		}
	}
}
