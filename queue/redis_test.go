package queue_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"sluice/queue"
)

var saleCount atomic.Int64

// saleID is an id that no other test uses, on a server that many runs may share.
func saleID() string {
	return fmt.Sprintf("t%d-%d-%d", os.Getpid(), time.Now().UnixNano(), saleCount.Add(1))
}

// line is a queue with a sale on one kind of Redis, and what a test needs to look behind it.
type line struct {
	*queue.Queue
	t        *testing.T
	rdb      redis.UniversalClient
	embedded *miniredis.Miniredis // nil on a real server
}

// onEach runs a test on a real Redis, on a cluster of them, and on the embedded one.
func onEach(t *testing.T, test func(t *testing.T, l *line)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, realLine(t, queue.Options{}))
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		test(t, lineAt(t, "SLUICE_TEST_REDIS_CLUSTER", queue.Options{}))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, embeddedLine(t, queue.Options{}))
	})
}

func realLine(t *testing.T, opts queue.Options) *line {
	t.Helper()
	return lineAt(t, "SLUICE_TEST_REDIS", opts)
}

// lineAt is a queue on the Redis that a variable names.
func lineAt(t *testing.T, variable string, opts queue.Options) *line {
	t.Helper()
	url := os.Getenv(variable)
	if url == "" {
		t.Fatalf("%s is not set; run the tests with: make test", variable)
	}
	rdb := connect(t, url)
	t.Cleanup(func() { rdb.Close() })
	return &line{Queue: queue.New(rdb, opts), t: t, rdb: rdb}
}

// connect makes a client that waits longer for an answer than the product does: a busy machine must not fail a test.
func connect(t interface{ Fatal(...any) }, url string) redis.UniversalClient {
	client, err := queue.ConnectPatiently(url, 8)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func embeddedLine(t *testing.T, opts queue.Options) *line {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := connect(t, "redis://"+m.Addr())
	t.Cleanup(func() { rdb.Close() })
	opts.Embedded = true
	return &line{Queue: queue.New(rdb, opts), t: t, rdb: rdb, embedded: m}
}

// sale is settings that open at once and close in an hour.
func (l *line) sale(change func(*queue.Sale)) queue.Sale {
	s := queue.Sale{
		ID:      saleID(),
		Items:   []queue.Item{{ID: "main", Stock: 10}},
		OpensAt: time.Now().Add(-time.Second).Truncate(time.Millisecond), ClosesAt: time.Now().Add(time.Hour).Truncate(time.Millisecond),
		Limit: 1,
		Line:  queue.Line{Order: queue.FIFO, Ratio: 0, Turn: queue.Duration(time.Minute), Grace: queue.Duration(time.Minute)},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// start installs a sale that has no orders.
func (l *line) start(change func(*queue.Sale)) queue.Sale {
	l.t.Helper()
	s := l.sale(change)
	if err := l.Restore(l.t.Context(), s, queue.Reach{}, noOrders); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { l.drop(s.ID) })
	return s
}

// drop removes a sale's keys.
func (l *line) drop(sale string) {
	ctx := context.Background()
	remove := func(ctx context.Context, node *redis.Client) error {
		iter := node.Scan(ctx, 0, "sluice:{"+sale+"}:*", 1000).Iterator()
		for iter.Next(ctx) {
			node.Del(ctx, iter.Val())
		}
		return iter.Err()
	}
	var err error
	if cluster, ok := l.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, remove)
	} else {
		err = remove(ctx, l.rdb.(*redis.Client))
	}
	if err != nil {
		l.t.Errorf("clean up in redis: %v", err)
	}
	l.rdb.SRem(ctx, "sluice:sales", sale)
}

func noOrders(func([]queue.Order) error) error { return nil }

func (l *line) join(sale, user string) queue.Seat {
	l.t.Helper()
	seat, err := l.Join(l.t.Context(), queue.JoinRequest{Sale: sale, User: user})
	if err != nil {
		l.t.Fatalf("join %s: %v", user, err)
	}
	return seat
}

func (l *line) look(sale, user string) queue.Seat {
	l.t.Helper()
	seat, err := l.Look(l.t.Context(), sale, user)
	if err != nil {
		l.t.Fatalf("look at %s: %v", user, err)
	}
	return seat
}

func (l *line) grab(sale, user, request string) queue.Grabbed {
	l.t.Helper()
	g, err := l.Grab(l.t.Context(), queue.GrabRequest{Sale: sale, User: user, Item: "main", Qty: 1, RequestID: request})
	if err != nil {
		l.t.Fatalf("grab for %s: %v", user, err)
	}
	return g
}

// watching runs a watcher until the test ends and returns a function that waits for a snapshot.
func (l *line) watching(sale string) (*queue.Watcher, func(what string, ok func(*queue.Snapshot) bool) *queue.Snapshot) {
	l.t.Helper()
	seen := make(chan *queue.Snapshot, 1000)
	w := queue.NewWatcher(l.Queue, sale, observer(func(s *queue.Snapshot, _ []queue.Event, _ queue.Lost) {
		select {
		case seen <- s:
		default:
		}
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Run(ctx) }()
	l.t.Cleanup(func() { cancel(); <-done })
	return w, func(what string, ok func(*queue.Snapshot) bool) *queue.Snapshot {
		l.t.Helper()
		deadline := time.After(10 * time.Second)
		for {
			select {
			case s := <-seen:
				if ok(s) {
					return s
				}
			case <-deadline:
				l.t.Fatalf("no snapshot came in which %s; the newest is %+v", what, w.Snapshot())
			}
		}
	}
}

type observer func(*queue.Snapshot, []queue.Event, queue.Lost)

func (o observer) Tick(s *queue.Snapshot, events []queue.Event, lost queue.Lost) { o(s, events, lost) }

// units is what Redis has left of an item.
func (l *line) units(sale, item string) int64 {
	l.t.Helper()
	b, err := l.Balance(l.t.Context(), sale)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, i := range b.Items {
		if i.Stock+i.Winners != i.Total {
			l.t.Fatalf("%s: %d left and %d with winners are not the total %d", i.Item, i.Stock, i.Winners, i.Total)
		}
		if i.Item == item {
			return i.Stock
		}
	}
	l.t.Fatalf("no item %s in %+v", item, b)
	return 0
}
