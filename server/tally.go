package server

import (
	"sync"
	"sync/atomic"

	"sluice/queue"
)

// failed is the outcome of a grab without a result; those with one are the negated result.
const failed = int(-queue.NotOpen) + 1

// tally counts what this node did since it started, in a form that can be read back.
type tally struct {
	grabs               sync.Map // by sale: *outcomes
	user, address, node atomic.Int64
}

// outcomes counts grabs by their outcome.
type outcomes [failed + 1]atomic.Int64

func (t *tally) grab(sale string, outcome int) {
	counts, ok := t.grabs.Load(sale)
	if !ok {
		counts, _ = t.grabs.LoadOrStore(sale, new(outcomes))
	}
	counts.(*outcomes)[outcome].Add(1)
}

// of are the grabs of a sale by the names of their outcomes, without those that never were.
func (t *tally) of(sale string) map[string]int64 {
	named := map[string]int64{}
	counts, ok := t.grabs.Load(sale)
	if !ok {
		return named
	}
	for outcome := range counts.(*outcomes) {
		n := counts.(*outcomes)[outcome].Load()
		switch {
		case n == 0:
		case outcome == failed:
			named["failed"] = n
		default:
			named[queue.Result(-outcome).String()] = n
		}
	}
	return named
}

func (t *tally) refuse(by string) {
	switch by {
	case "user":
		t.user.Add(1)
	case "address":
		t.address.Add(1)
	case "node":
		t.node.Add(1)
	}
}

// limited is how often each limit was met.
func (t *tally) limited() queue.NodeLimited {
	return queue.NodeLimited{User: t.user.Load(), Address: t.address.Load(), Node: t.node.Load()}
}
