package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice/fault"
	"sluice/queue"
	"sluice/trace"
)

const (
	// sweepEvery is how often holds are looked at.
	sweepEvery = 500 * time.Millisecond
	// sweepPage is how many orders one transaction ends, or Redis is told of at once.
	sweepPage = 500
)

// Sweeper ends the holds of orders that were not paid in time, and finishes what the database decided and Redis may not
// have heard of: whoever decided it may have died right then. Any number of sweepers may run at once.
type Sweeper struct {
	queue   decided
	store   *Store
	log     *slog.Logger
	overdue prometheus.Gauge
	tracer  *trace.Tracer // nil = nothing is followed
}

// NewSweeper makes a sweeper; reg and tracer may be nil.
func NewSweeper(q *queue.Queue, store *Store, log *slog.Logger, reg prometheus.Registerer, tracer *trace.Tracer) *Sweeper {
	return &Sweeper{queue: q, store: store, log: log, tracer: tracer, overdue: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
		Name: "sluice_holds_overdue",
		Help: "Orders whose hold is over and that have not been expired yet.",
	})}
}

// Run sweeps until ctx ends. It rides out every failure of Redis and the database.
func (s *Sweeper) Run(ctx context.Context) {
	failing := trouble{log: s.log, what: "sweep the holds"}
	for wait := sweepEvery; sleep(ctx, wait); {
		begun := time.Now()
		err := s.Once(ctx)
		wait = max(0, sweepEvery-time.Since(begun)) // after a crowd, orders fall due as fast as they were made
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			wait = failing.met(err)
			continue
		}
		failing.over()
	}
}

// Once expires all that is due by the clock of Redis, and tells Redis of all that it may not know. What is overdue after
// that is counted whatever came of it: those are the holds that an operator has to hear of.
func (s *Sweeper) Once(ctx context.Context) error {
	at, err := s.queue.Time(ctx)
	if err != nil {
		return err
	}
	traces := map[string]string{} // what orders that expire now are a part of, by id; empty where nobody follows them
	err = errors.Join(s.expire(ctx, at, traces), s.finish(ctx, traces))
	overdue, uncounted := s.store.Overdue(ctx, at)
	if uncounted == nil {
		s.overdue.Set(float64(overdue))
	}
	return errors.Join(err, uncounted)
}

// expire ends the holds that were over at that moment by Redis time, and adds to traces.
func (s *Sweeper) expire(ctx context.Context, at int64, traces map[string]string) error {
	for {
		began := time.Now().UnixMilli()
		expired, err := s.store.Expire(ctx, at, sweepPage)
		if err != nil {
			return err
		}
		s.follow(began, expired, traces)
		fault.Point("sweep.expired")
		if len(expired) < sweepPage {
			return nil
		}
	}
}

// follow records the end of holds, and adds to traces what the news of them are a part of.
func (s *Sweeper) follow(began int64, expired []queue.Order, traces map[string]string) {
	if s.tracer == nil || len(expired) == 0 {
		return
	}
	span := s.tracer.BeginAt(began, trace.Expire)
	if !span.On() {
		return
	}
	span.Count(trace.Together, len(expired))
	for _, order := range expired {
		traces[order.ID] = span.Context()
	}
	span.End("")
}

// finish settles all pending moves. Those of a sale that Redis does not have, or that recovers, stay for later; of one that is
// archived there is nobody to tell.
func (s *Sweeper) finish(ctx context.Context, traces map[string]string) error {
	for after := int64(0); ; {
		moves, err := s.store.Moves(ctx, after, sweepPage)
		if err != nil || len(moves) == 0 {
			return err
		}
		fault.Point("sweep.finishing")
		orders := map[string][]queue.Order{}
		for _, move := range moves {
			move.Order.Trace = traces[move.Order.ID]
			orders[move.Order.Sale] = append(orders[move.Order.Sale], move.Order)
			after = move.ID
		}
		for sale, orders := range orders {
			err := settle(ctx, s.queue, s.store, sale, orders)
			if isAnswer(err) {
				err = s.close(ctx, sale, orders)
			}
			if err != nil {
				return err
			}
		}
	}
}

// close marks the moves of orders as done, if their sale is archived.
func (s *Sweeper) close(ctx context.Context, sale string, orders []queue.Order) error {
	archive, err := s.store.Archive(ctx, sale)
	if err != nil || archive == nil || archive.Done == 0 {
		return err
	}
	ids := make([]string, len(orders))
	for i, order := range orders {
		ids[i] = order.ID
	}
	return s.store.MoveDone(ctx, ids)
}
