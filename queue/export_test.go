package queue

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/lua"
)

// ConnectPatiently is Connect with a minute for each answer.
func ConnectPatiently(url string, pool int) (redis.UniversalClient, error) {
	return connect(url, pool, 0, time.Minute)
}

// SetClock makes the scripts of a queue read the time, in microseconds since the epoch, from a key of Redis instead of its
// clock, so that a test can move it.
func SetClock(q *Queue, key string) {
	for _, name := range lua.Names() {
		text := lua.Source(name, q.opts.Embedded)
		moved := strings.ReplaceAll(text, "redis.call('TIME')", "{ 0, redis.call('GET', '"+key+"') }")
		if moved == text {
			panic("the scripts read their time in another way")
		}
		q.scripts[name] = redis.NewScript(moved)
	}
}

// NewTicker returns a function that makes one tick, for tests that drive the clock themselves.
func NewTicker(q *Queue, sale string) func(context.Context) (*Snapshot, error) {
	tick := NewNodeTicker(q, sale)
	return func(ctx context.Context) (*Snapshot, error) {
		s, _, err := tick(ctx)
		return s, err
	}
}

// NewNodeTicker is NewTicker for those who also want to know what the tick says was lost.
func NewNodeTicker(q *Queue, sale string) func(context.Context) (*Snapshot, Lost, error) {
	var lost Lost
	w := NewWatcher(q, sale, observerFunc(func(_ *Snapshot, _ []Event, l Lost) { lost = l }))
	return func(ctx context.Context) (*Snapshot, Lost, error) {
		if _, err := w.tick(ctx); err != nil {
			return nil, Lost{}, err
		}
		return w.Snapshot(), lost, nil
	}
}

type observerFunc func(*Snapshot, []Event, Lost)

func (f observerFunc) Tick(s *Snapshot, events []Event, lost Lost) { f(s, events, lost) }

// KeysOf are the names of all keys that a sale has whatever its shoppers do.
func KeysOf(sale string) []string {
	k := keysOf(sale)
	return []string{
		k.meta, k.stock, k.seats, k.turns, k.gone, k.conn, k.away, k.recall, k.nodes, k.lost, k.leaves, k.draw, k.dropout, k.leavers,
		k.winners, k.past, k.outbox, k.news, k.codes, k.used, k.coded, k.address, k.ranks,
	}
}

// JoinAll joins many at once, and returns an error for each.
func JoinAll(q *Queue, ctx context.Context, sale string, reqs []JoinRequest) []error {
	_, errs := q.joinBatch(ctx, sale, reqs)
	return errs
}

// TurnsOf are the numbers that have a turn.
func TurnsOf(q *Queue, ctx context.Context, sale string) []int64 {
	r := &reply{script: "turns"}
	var numbers []int64
	for _, number := range q.rdb.ZRange(ctx, keysOf(sale).turns, 0, -1).Val() {
		numbers = append(numbers, r.int(number))
	}
	return numbers
}

// AwaitLatch waits until the buyers of a sale that is sold out were read.
func AwaitLatch(q *Queue, sale string) {
	l := q.latches.get(sale)
	for {
		l.mu.Lock()
		loading := l.loading
		l.mu.Unlock()
		if !loading {
			return
		}
		runtime.Gosched()
	}
}

// AgeLatch makes a latch as old as it may not be.
func AgeLatch(q *Queue, sale string) {
	l := q.latches.get(sale)
	if closed := l.closed.Load(); closed != nil {
		old := *closed
		old.until = 0
		l.closed.Store(&old)
	}
}
