package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice/fault"
	"sluice/queue"
)

const (
	// restoreEvery is how often a process looks for sales that Redis does not have, or has of another run.
	restoreEvery = time.Second
	// restorePage is how many orders are read at a time.
	restorePage = 1000
	// restoreLease is how long a process that died keeps others from its work.
	restoreLease = 3 * time.Second
	// restorePatience is how long orders on their way are waited for, and restorePoll how often is looked.
	restorePatience = 3 * time.Second
	restorePoll     = 20 * time.Millisecond
	// restoreClaims is how long lost numbers can be taken back before the line goes on: nodes do it at once for the shoppers
	// that they hold, and those whose node is gone as well come back within 3 s. Nobody is waited for longer.
	restoreClaims = 3 * time.Second
)

// Restorer brings sales back to Redis from the database: after a restart of Redis, a loss, a flush or a failover, when an
// operator asks for it, and when the embedded Redis begins empty. Every process has one, and one at a time works; every
// step is idempotent for each order, so two at once do no harm.
type Restorer struct {
	queue  *queue.Queue
	store  *Store
	broker interface {
		Waiting(context.Context) (int64, error)
	}
	node     string
	log      *slog.Logger
	restored *prometheus.CounterVec
	kept     map[string]queue.Reach // by sale: what this process kept last
}

// NewRestorer makes a restorer for that node; reg may be nil.
func NewRestorer(q *queue.Queue, store *Store, broker Broker, node string, log *slog.Logger, reg prometheus.Registerer) *Restorer {
	return &Restorer{queue: q, store: store, broker: broker, node: node, log: log, kept: map[string]queue.Reach{},
		restored: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_recoveries_total",
			Help: "Sales that were put right in Redis, by why: lost, restarted or asked.",
		}, []string{"sale", "why"})}
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

// Once restores every sale of the database that Redis does not have ready, unless another process does. It blocks on both.
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
			if err := r.keep(ctx, sale.ID); err != nil {
				return err
			}
			continue
		}
		mine, err := r.queue.Lease(ctx, "restore:"+sale.ID, r.node, restoreLease)
		if err != nil {
			return err
		}
		if !mine {
			continue
		}
		if err := r.restore(ctx, sale, here); err != nil {
			return err
		}
	}
	return nil
}

// keep writes down how far the line of a sale is, where it has moved. One process does it.
func (r *Restorer) keep(ctx context.Context, sale string) error {
	mine, err := r.queue.Lease(ctx, "keep:"+sale, r.node, restoreLease)
	if err != nil || !mine {
		return err
	}
	reach, err := r.queue.Reach(ctx, sale)
	if isAnswer(err) || err == nil && reach == r.kept[sale] {
		return nil // lost just now, or unmoved
	}
	if err == nil {
		err = r.store.KeepReach(ctx, sale, reach)
	}
	if err == nil {
		r.kept[sale] = reach
	}
	return err
}

func (r *Restorer) restore(ctx context.Context, sale queue.Sale, here bool) error {
	why := "lost"
	if here {
		why = "restarted"
		if asked, err := r.queue.Asked(ctx, sale.ID); err != nil {
			return err
		} else if asked {
			why = "asked"
		}
	}
	if archived, err := r.store.Archived(ctx, sale.ID); err != nil || archived {
		return err // since the sales were listed
	}
	fault.Point("restore.begun")
	began := time.Now()
	orders := 0
	reach, err := r.store.Reach(ctx, sale.ID)
	if err != nil {
		return err
	}
	err = r.queue.Rebuild(ctx, sale, reach, func(yield func([]queue.Order) error) error {
		return r.store.EachOrder(ctx, sale.ID, restorePage, func(page []queue.Order) error {
			orders += len(page)
			if _, err := r.queue.Lease(ctx, "restore:"+sale.ID, r.node, restoreLease); err != nil {
				return err
			}
			err := yield(page)
			fault.Point("restore.page")
			return err
		})
	})
	if queue.IsArchived(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !here && reach.Issued > 0 {
		sleep(ctx, max(0, restoreClaims-time.Since(began)))
	}
	r.quiet(ctx, sale.ID)
	// Before anything is granted: a loss that follows at once must not begin the same epoch again.
	if now, err := r.queue.Reach(ctx, sale.ID); err != nil {
		return err
	} else if err := r.store.KeepReach(ctx, sale.ID, now); err != nil {
		return err
	}
	// A sale that was archived while it was brought back stays out of Redis. Nothing was granted in it.
	if archived, err := r.store.Archived(ctx, sale.ID); err != nil {
		return err
	} else if archived {
		return r.queue.EraseLeftovers(ctx, sale.ID)
	}
	fault.Point("restore.quiet")
	if err := r.queue.Ready(ctx, sale.ID); err != nil {
		return err
	}
	fault.Point("restore.ready")
	r.restored.WithLabelValues(sale.ID, why).Inc()
	r.log.Info("a sale was put right in Redis", "sale", sale.ID, "why", why, "orders", orders, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// quiet waits a while until the orders that are on their way have arrived: those whose marks were lost take their stock
// when they are written. It is a kindness: a unit that is sold twice meanwhile is refused by the database, and whoever
// thought to have it is told.
func (r *Restorer) quiet(ctx context.Context, sale string) {
	for end := time.Now().Add(restorePatience); time.Now().Before(end); {
		outbox, err := r.queue.OutboxLen(ctx, sale)
		if err == nil && outbox == 0 {
			waiting, err := r.broker.Waiting(ctx)
			if err == nil && waiting == 0 {
				return
			}
		}
		if !sleep(ctx, restorePoll) {
			return
		}
	}
}
