package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/queue"
)

const (
	// restoreEvery is how often a process looks for sales that Redis does not have, or has of another run.
	restoreEvery = time.Second
	// restorePage is how many orders are read at a time.
	restorePage = 1000
)

// Restorer brings sales back to Redis from the database: after a restart of Redis, a loss, a flush or a failover, and
// when the embedded Redis begins empty. Every step is idempotent for each order, so several may run at once.
type Restorer struct {
	queue    *queue.Queue
	store    *Store
	log      *slog.Logger
	restored *prometheus.CounterVec
}

// NewRestorer makes a restorer; reg may be nil.
func NewRestorer(q *queue.Queue, store *Store, log *slog.Logger, reg prometheus.Registerer) *Restorer {
	r := &Restorer{queue: q, store: store, log: log, restored: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_recoveries_total",
		Help: "Sales that were brought back to Redis, by why.",
	}, []string{"sale", "why"})}
	if reg != nil {
		reg.MustRegister(r.restored)
	}
	return r
}

// Run restores what needs it, until ctx ends.
func (r *Restorer) Run(ctx context.Context) {
	failing := trouble{log: r.log, what: "restore the sales"}
	for ctx.Err() == nil {
		err := r.Once(ctx)
		if err == nil {
			failing.over()
			if !sleep(ctx, restoreEvery) {
				return
			}
			continue
		}
		if ctx.Err() != nil || !sleep(ctx, failing.met(err)) {
			return
		}
	}
}

// Once restores every sale of the database that Redis does not have ready. It blocks on both.
func (r *Restorer) Once(ctx context.Context) error {
	sales, err := r.store.Sales(ctx)
	if err != nil {
		return err
	}
	for _, sale := range sales {
		here, ready, err := r.queue.Installed(ctx, sale.ID)
		if err != nil {
			return err
		}
		if ready {
			continue
		}
		why := "lost"
		if here {
			why = "restarted"
		}
		began := time.Now()
		orders := 0
		err = r.queue.Restore(ctx, sale, func(yield func([]queue.Order) error) error {
			return r.store.EachOrder(ctx, sale.ID, restorePage, func(page []queue.Order) error {
				orders += len(page)
				return yield(page)
			})
		})
		if err != nil {
			return err
		}
		r.restored.WithLabelValues(sale.ID, why).Inc()
		r.log.Info("a sale was brought to Redis", "sale", sale.ID, "why", why, "orders", orders, "took", time.Since(began))
	}
	return nil
}
