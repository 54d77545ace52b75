package server

import (
	"context"
	"sync"
	"time"
)

const (
	// brokerAge is how old the counts of the broker may be: a little less than the time between two frames, so that who
	// watches alone sees new ones each time.
	brokerAge = 900 * time.Millisecond
	// brokerTimeout bounds asking for them, as far as the broker minds it.
	brokerTimeout = time.Second
)

// Broker is what carries orders to the database. worker.Broker is one. Its calls may take longer than ctx allows.
type Broker interface {
	// Waiting counts the orders in it that no writer has in hand.
	Waiting(ctx context.Context) (int64, error)
	// DeadLetters counts what could not be written and was put aside.
	DeadLetters(ctx context.Context) (int64, error)
}

// brokerCounts are the counts of the broker, asked for once however many operators watch. A broker that hangs holds up one
// goroutine, and nobody who asks.
type brokerCounts struct {
	broker Broker

	mu   sync.Mutex
	last *brokerCount
}

// brokerCount is one time of asking; its results stand once done is closed.
type brokerCount struct {
	begun         time.Time
	done          chan struct{}
	waiting, dead int64
	err           error
}

// get returns how many orders and dead letters the broker has. It waits for the broker as long as ctx lasts.
func (b *brokerCounts) get(ctx context.Context) (waiting, dead int64, err error) {
	count := b.newest()
	select {
	case <-count.done:
		return count.waiting, count.dead, count.err
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// newest is the count that is under way or new enough, or else one that begins now.
func (b *brokerCounts) newest() *brokerCount {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		select {
		case <-b.last.done:
			if time.Since(b.last.begun) < brokerAge {
				return b.last
			}
		default:
			return b.last
		}
	}
	b.last = &brokerCount{begun: time.Now(), done: make(chan struct{})}
	go b.ask(b.last)
	return b.last
}

func (b *brokerCounts) ask(count *brokerCount) {
	defer close(count.done)
	ctx, cancel := context.WithTimeout(context.Background(), brokerTimeout)
	defer cancel()
	if count.waiting, count.err = b.broker.Waiting(ctx); count.err == nil {
		count.dead, count.err = b.broker.DeadLetters(ctx)
	}
}
