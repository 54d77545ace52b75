package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/lua"
	"sluice/trace"
)

// Options of a Queue. The zero value works on a real Redis, without limits.
type Options struct {
	Logger       *slog.Logger
	Registerer   prometheus.Registerer // nil = no metrics
	UserLimit    Rate                  // Limits.User to begin with
	AddressLimit Rate                  // Limits.Address to begin with
	Blocking     redis.UniversalClient // for reads that wait, so that they never hold the connections of the others; nil = the same client
	OutboxLimit  int64                 // Limits.Outbox to begin with
	Tracer       *trace.Tracer         // follows the calls of joins and grabs; nil = none
	Embedded     bool                  // the Redis is the embedded one, which has no run id
}

// Queue is the line and the stock of all sales, in Redis. It is safe for concurrent use.
type Queue struct {
	rdb     redis.UniversalClient
	opts    Options
	node    string // names this process to the line: another one each time it starts
	scripts map[string]*redis.Script
	metrics *metrics
	latches latches
	limits  atomic.Pointer[Limits]

	mu    sync.Mutex
	lanes map[string]*lane
}

// lane gathers the concurrent calls of one sale.
type lane struct {
	joins *gather[JoinRequest, Seat]
	looks *gather[string, Seat]
	rules atomic.Pointer[rules] // by which the last joins were judged; nil = the sale has had no lists so far
	grabs *gather[grabCall, Grabbed]
}

// New makes a Queue on a client, which stays the caller's to close. The client must not repeat commands by itself
// (Connect makes such a one).
func New(rdb redis.UniversalClient, opts Options) *Queue {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Blocking == nil {
		opts.Blocking = rdb
	}
	q := &Queue{rdb: rdb, opts: opts, node: strconv.FormatUint(rand.Uint64(), 36), scripts: map[string]*redis.Script{}, lanes: map[string]*lane{}}
	for _, name := range lua.Names() {
		q.scripts[name] = redis.NewScript(lua.Source(name, opts.Embedded))
	}
	q.metrics = newMetrics(opts.Registerer)
	q.SetLimits(Limits{User: opts.UserLimit, Address: opts.AddressLimit, Outbox: opts.OutboxLimit})
	q.latches = latches{start: time.Now(), of: map[string]*latch{}}
	return q
}

// Ping asks Redis whether it answers.
func (q *Queue) Ping(ctx context.Context) error {
	if err := q.rdb.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return nil
}

// Load puts all scripts on every master, so that the first shoppers do not pay for it.
func (q *Queue) Load(ctx context.Context) error {
	for name, script := range q.scripts {
		if err := script.Load(ctx, q.rdb).Err(); err != nil {
			return fmt.Errorf("load script %s: %w", name, err)
		}
	}
	return nil
}

// run calls a script by its hash. Where Redis does not know it (a restart, a flush, another master) nothing has run, so
// the call is made again with the whole text.
func (q *Queue) run(ctx context.Context, name string, keys []string, args []any) (any, error) {
	reply, err := q.scripts[name].Run(ctx, q.rdb, keys, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("script %s: %w", name, err)
	}
	return reply, nil
}

func (q *Queue) lane(sale string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[sale]
	if l == nil {
		l = &lane{
			joins: newGather(gatherMost, func(ctx context.Context, reqs []JoinRequest) ([]Seat, []error) {
				return q.joinBatch(ctx, sale, reqs)
			}),
			looks: newGather(gatherMost, func(ctx context.Context, users []string) ([]Seat, []error) {
				return q.lookBatch(ctx, sale, users)
			}),
			grabs: newGather(grabMost, func(ctx context.Context, calls []grabCall) ([]Grabbed, []error) {
				return q.grabBatch(ctx, sale, calls)
			}),
		}
		q.lanes[sale] = l
	}
	return l
}

// errAway is the cause inside errNotHere.
var errAway = errors.New("redis does not have the sale, or it recovers")

// errNotHere is what a script's empty reply means: Redis does not have the sale (yet, or any more). That is never
// "sold out" and never "no such sale": the database may well know it.
func errNotHere(sale string) error {
	return &Error{
		Code:       Unavailable,
		Message:    fmt.Sprintf("the sale %q is being put right; nothing was taken, try again in a moment", sale),
		RetryAfter: time.Second,
		Err:        errAway,
	}
}

func isNotHere(err error) bool { return errors.Is(err, errAway) }
