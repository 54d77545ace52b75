package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"sluice/lua"
	"sluice/queue"
)

// callers is how many grabs are asked for at once.
const callers = 1024

// measureGrabs measures the grab path of a node within one process, as the server calls it, on a Redis that syncs every
// write to disk before it answers.
func (b *bench) measureGrabs(ctx context.Context) (result, error) {
	r := newResult()
	const (
		successes = "successes/s, a turn each, appendfsync always"
		asked     = "refusals/s, asked of Redis"
		refusals  = "refusals/s"
		ours      = "Sluice, in batches"
		single    = "one EVALSHA a request, go-redis"
		raw       = "redis-benchmark -P 64, no turns"
	)
	for round := range b.rounds {
		b.say("round %d", round+1)
		rate, err := b.winTurns(ctx, func(q *queue.Queue, sale string) (func(i int64) error, error) {
			return func(i int64) error { return won(ctx, q, sale, i) }, nil
		})
		if err != nil {
			return *r, err
		}
		r.add(successes, ours, rate)
		rate, err = b.winTurns(ctx, func(_ *queue.Queue, sale string) (func(i int64) error, error) { return b.oneByOne(ctx, sale) })
		if err != nil {
			return *r, err
		}
		r.add(successes, single, rate)
		rate, err = b.rawGrabs(ctx)
		if err != nil {
			return *r, err
		}
		r.add(successes, raw, rate)
		known, fromRedis, err := b.refusals(ctx)
		if err != nil {
			return *r, err
		}
		r.add(refusals, ours, known)
		r.add(asked, ours, fromRedis)
	}
	r.promise(r.median(successes, ours) >= 60_000, "grab path ≥ 60 k successes/s: %.1f k", r.median(successes, ours)/1000)
	r.promise(r.median(refusals, ours) >= 200_000, "≥ 200 k refusals/s: %.0f k", r.median(refusals, ours)/1000)
	ratio := r.median(successes, ours) / r.median(successes, single)
	r.promise(ratio >= 2, "≥ 2 × one EVALSHA a request: %.1f ×", ratio)
	return *r, nil
}

// each calls do for 1 to n from many goroutines, and returns how many calls a second that were.
func each(n int64, do func(i int64) error) (float64, error) {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var group sync.WaitGroup
	begun := time.Now()
	for range callers {
		group.Go(func() {
			for i := next.Add(1); i <= n && failed.Load() == nil; i = next.Add(1) {
				if err := do(i); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	group.Wait()
	took := time.Since(begun).Seconds()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(n) / took, nil
}

// openQueue connects as a node does.
func (b *bench) openQueue() (*queue.Queue, redis.UniversalClient, error) {
	rdb, err := queue.Connect(b.redisURL, 64)
	if err != nil {
		return nil, nil, err
	}
	return queue.New(rdb, queue.Options{}), rdb, nil
}

// install makes a sale in Redis alone.
func install(ctx context.Context, q *queue.Queue, order queue.LineOrder, stock int64) (string, error) {
	sale := queue.Sale{
		ID: "grabs", Title: queue.Text{"en": "A sale of the bench"}, Items: []queue.Item{{ID: "main", Title: queue.Text{"en": "Main"}, Stock: stock}},
		OpensAt: time.Now().Add(-time.Second), ClosesAt: time.Now().Add(6 * time.Hour), Limit: 1, Hold: queue.Duration(time.Hour),
		Line: queue.Line{Order: order, Turn: queue.Duration(time.Hour), Grace: queue.Duration(10 * time.Minute)},
	}
	if err := q.Install(ctx, sale, queue.Reach{}); err != nil {
		return "", err
	}
	return sale.ID, q.Ready(ctx, sale.ID)
}

func user(i int64) string { return "user-" + strconv.FormatInt(i, 10) }

func won(ctx context.Context, q *queue.Queue, sale string, i int64) error {
	g, err := q.Grab(ctx, queue.GrabRequest{Sale: sale, User: user(i), Item: "main", Qty: 1, RequestID: "first"})
	if err == nil && g.Result != queue.Success {
		err = fmt.Errorf("a grab of somebody with a turn: %s", g.Result)
	}
	return err
}

// winTurns gives a turn to everyone and measures how fast all of them buy.
func (b *bench) winTurns(ctx context.Context, prepare func(*queue.Queue, string) (func(int64) error, error)) (float64, error) {
	if _, err := b.newWorld(ctx, "everysec", "mysql"); err != nil {
		return 0, err
	}
	q, rdb, err := b.openQueue()
	if err != nil {
		return 0, err
	}
	defer rdb.Close()
	n := int64(b.grabs)
	sale, err := install(ctx, q, queue.FIFO, n)
	if err != nil {
		return 0, err
	}
	if _, err := each(n, func(i int64) error {
		_, err := q.Join(ctx, queue.JoinRequest{Sale: sale, User: user(i)})
		return err
	}); err != nil {
		return 0, err
	}
	watching, stop := context.WithCancel(ctx)
	watcher := queue.NewWatcher(q, sale, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watcher.Run(watching) // ends with stop
	}()
	err = until(ctx, "everyone's turn", 2*time.Minute, func() (bool, error) {
		s := watcher.Snapshot()
		return s != nil && s.Turns >= n, nil
	})
	stop()
	<-ended
	if err != nil {
		return 0, err
	}
	grab, err := prepare(q, sale)
	if err != nil {
		return 0, err
	}
	if err := b.redis.ConfigSet(ctx, "appendfsync", "always").Err(); err != nil {
		return 0, err
	}
	return each(n, grab)
}

// grabKeys are the keys of the grab script, as docs/architecture.md has them.
func grabKeys(sale string) []string {
	var keys []string
	for _, name := range []string{"meta", "stock", "seats", "turns", "winners", "past", "outbox", "away", "draw"} {
		keys = append(keys, "sluice:{"+sale+"}:"+name)
	}
	return keys
}

// oneByOne calls the same script for each grab alone.
func (b *bench) oneByOne(ctx context.Context, sale string) (func(int64) error, error) {
	options, err := redis.ParseURL(b.redisURL)
	if err != nil {
		return nil, err
	}
	options.PoolSize = 64
	rdb := redis.NewClient(options)
	script := redis.NewScript(lua.Source("grab", false))
	if err := script.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	keys := grabKeys(sale)
	return func(i int64) error {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		reply, err := script.EvalSha(ctx, rdb, keys, 0, 0, 0, 0, 0, "", user(i), "main", 1, "first", id.String()).Slice()
		if err != nil {
			return err
		}
		if row, ok := reply[1].([]any); !ok || row[0] != int64(0) {
			return fmt.Errorf("the script said %v", reply)
		}
		return nil
	}, nil
}

var benchmarkRate = regexp.MustCompile(`([0-9.]+) requests per second`)

// rawGrabs has redis-benchmark call the script, without a line because it cannot make seats.
func (b *bench) rawGrabs(ctx context.Context) (float64, error) {
	if _, err := b.newWorld(ctx, "always", "mysql"); err != nil {
		return 0, err
	}
	q, rdb, err := b.openQueue()
	if err != nil {
		return 0, err
	}
	defer rdb.Close()
	sale, err := install(ctx, q, queue.Off, 1_000_000_000)
	if err != nil {
		return 0, err
	}
	sha, err := rdb.ScriptLoad(ctx, lua.Source("grab", false)).Result()
	if err != nil {
		return 0, err
	}
	options, err := redis.ParseURL(b.redisURL)
	if err != nil {
		return 0, err
	}
	host, port, err := splitAddress(options.Addr)
	if err != nil {
		return 0, err
	}
	args := []string{"-h", host, "-p", port, "-c", "50", "-P", "64", "-n", strconv.Itoa(b.grabs), "-r", "1000000000", "EVALSHA", sha, "9"}
	args = append(append(args, grabKeys(sale)...), "0", "0", "0", "0", "0", "", "user-__rand_int__", "main", "1", "first", "order-__rand_int__")
	out, err := b.run(ctx, "redis-benchmark", args...)
	if err != nil {
		return 0, err
	}
	m := benchmarkRate.FindAllStringSubmatch(out, -1)
	if m == nil {
		return 0, fmt.Errorf("redis-benchmark said %q", out)
	}
	sold, err := rdb.HLen(ctx, "sluice:{"+sale+"}:winners").Result()
	if err != nil || sold < int64(b.grabs)*9/10 {
		return 0, fmt.Errorf("of %d grabs of redis-benchmark %d bought: %w", b.grabs, sold, err)
	}
	return strconv.ParseFloat(m[len(m)-1][1], 64)
}

// refusals measures how fast strangers are told that a sale without a line is sold out: by the node alone, and by Redis
// while the node does not know yet.
func (b *bench) refusals(ctx context.Context) (known, asked float64, err error) {
	if _, err := b.newWorld(ctx, "always", "mysql"); err != nil {
		return 0, 0, err
	}
	q, rdb, err := b.openQueue()
	if err != nil {
		return 0, 0, err
	}
	defer rdb.Close()
	sale, err := install(ctx, q, queue.Off, 100)
	if err != nil {
		return 0, 0, err
	}
	if _, err := each(100, func(i int64) error { return won(ctx, q, sale, i) }); err != nil {
		return 0, 0, err
	}
	refused := func(i int64) error {
		g, err := q.Grab(ctx, queue.GrabRequest{Sale: sale, User: user(1000 + i), Item: "main", Qty: 1, RequestID: "first"})
		if err == nil && g.Result != queue.SoldOut {
			err = fmt.Errorf("a sale that is sold out says %s", g.Result)
		}
		return err
	}
	if asked, err = each(int64(b.grabs), refused); err != nil {
		return 0, 0, err
	}
	ctx, stop := context.WithCancel(ctx)
	watcher := queue.NewWatcher(q, sale, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watcher.Run(ctx) // ends with stop
	}()
	defer func() {
		stop()
		<-ended
	}()
	// The node answers by itself once grabs cost Redis no call.
	err = until(ctx, "the node to know that the sale is sold out", startPatience, func() (bool, error) {
		before, err := b.scriptCalls(ctx)
		if err != nil {
			return false, err
		}
		if _, err := each(1000, refused); err != nil {
			return false, err
		}
		after, err := b.scriptCalls(ctx)
		return after-before < 10, err // ticks go on
	})
	if err != nil {
		return 0, 0, err
	}
	known, err = each(20*int64(b.grabs), refused)
	return known, asked, err
}
