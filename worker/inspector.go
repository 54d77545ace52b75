package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"sluice/queue"
)

const (
	// inspectEvery is how often every sale is audited.
	inspectEvery = 10 * time.Second
	// inspectAgain is how long after an audit that did not add up there is a second one. What two stores have at one
	// moment cannot be read at one moment, and an operator's change of the total reaches them one after the other.
	inspectAgain = 2 * time.Second
	// inspectRest is how many audits of a sale are left out once it is closed and everything of it is settled.
	inspectRest = 30
	// breachAge is how long an order may be on one side only, and nowhere on its way, before that is a breach: what is a matter
	// of a moment brings no sale to a stop.
	breachAge = time.Minute
)

// Inspector audits all sales as long as they can change. One process at a time does it.
type Inspector struct {
	queue     *queue.Queue
	audit     func(ctx context.Context, sale string) (Report, error)
	node      string
	pause     bool
	log       *slog.Logger
	imbalance *prometheus.GaugeVec
	rest      map[string]int    // by sale: how many audits are left out
	logged    map[string]string // by sale: what did not add up when that was logged last
	paused    map[string]string // by sale: what did not add up when it was paused for that
}

// NewInspector makes an inspector for that node. With pause, a sale whose books do not add up is paused. reg may be nil.
func NewInspector(q *queue.Queue, auditor *Auditor, node string, pause bool, log *slog.Logger, reg prometheus.Registerer) *Inspector {
	return &Inspector{
		queue: q, audit: auditor.Audit, node: node, pause: pause, log: log, rest: map[string]int{}, logged: map[string]string{}, paused: map[string]string{},
		imbalance: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_audit_imbalance",
			Help: "Units of an item that do not add up between Redis, the database and the orders on their way; 0 when sound.",
		}, []string{"sale", "item"}),
	}
}

// Run inspects until ctx ends. It rides out every failure.
func (i *Inspector) Run(ctx context.Context) {
	failing := trouble{log: i.log, what: "audit the sales"}
	for wait := inspectEvery; sleep(ctx, wait); {
		wait = inspectEvery
		err := i.Once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failing.met(err) // for the log only: an audit is no work to press for
			continue
		}
		failing.over()
	}
}

// Once audits every sale, unless another process does.
func (i *Inspector) Once(ctx context.Context) error {
	mine, err := i.queue.Lease(ctx, "audit", i.node, 3*inspectEvery)
	if err != nil || !mine {
		i.imbalance.Reset() // whoever audits shows it
		return err
	}
	sales, err := i.queue.Sales(ctx)
	if err != nil {
		return err
	}
	for _, sale := range sales {
		if i.rest[sale]--; i.rest[sale] > 0 {
			continue
		}
		if err := i.inspect(ctx, sale); err != nil && !isAnswer(err) { // a sale that recovers is audited afterwards
			return err
		}
	}
	return nil
}

func (i *Inspector) inspect(ctx context.Context, sale string) error {
	report, err := i.audit(ctx, sale)
	if err == nil && !report.Balanced {
		if !sleep(ctx, inspectAgain) {
			return ctx.Err()
		}
		report, err = i.audit(ctx, sale)
	}
	if err != nil {
		return err
	}
	for _, item := range report.Items {
		i.imbalance.WithLabelValues(sale, item.Item).Set(float64(item.Imbalance))
	}
	if err := i.queue.KeepAudit(ctx, sale, report.summary()); err != nil {
		i.log.Warn("operators see an older audit of a sale", "sale", sale, "error", err)
	}
	if seat, err := i.queue.Look(ctx, sale, ""); err == nil && seat.State == queue.Closed && report.Balanced &&
		report.InFlight == 0 && report.Outbox == 0 {
		i.rest[sale] = inspectRest
	}
	problems := strings.Join(report.Problems, "; ")
	if problems != i.logged[sale] {
		i.logged[sale] = problems
		if report.Balanced {
			i.log.Info("the books of a sale add up again", "sale", sale)
		} else {
			i.log.Error("the books of a sale do not add up", "sale", sale, "problems", problems)
		}
	}
	// An operator who resumes the sale all the same is not overruled until something else does not add up.
	if !i.pause || !report.Breach() || problems == i.paused[sale] {
		return nil
	}
	if _, err := i.queue.Pause(ctx, sale); err != nil && queue.CodeOf(err) != queue.Conflict { // it is closed
		return err
	}
	i.paused[sale] = problems
	i.log.Error("the sale is paused because its books do not add up: see sluice audit, then docs/operate.md, SluiceAuditImbalance", "sale", sale)
	return nil
}

// summaryProblems is how many problems a summary names. It is sent to every operator who watches, each second.
const summaryProblems = 20

// summary is the report without the figures behind it.
func (r Report) summary() queue.AuditSummary {
	s := queue.AuditSummary{At: r.At, Balanced: r.Balanced, Imbalance: map[string]int64{}, Problems: r.Problems}
	for _, item := range r.Items {
		s.Imbalance[item.Item] = item.Imbalance
	}
	if more := len(r.Problems) - summaryProblems; more > 0 {
		s.Problems = append(slices.Clone(r.Problems[:summaryProblems]), fmt.Sprintf("and %d more; see the full audit", more))
	}
	return s
}

// Breach says whether what does not add up is no matter of time: within Redis, within the database, or an order that has
// been on one side only for a minute and is nowhere on its way.
func (r Report) Breach() bool {
	return !r.Redis.Balanced || !r.Database.Balanced ||
		slices.ContainsFunc(r.Unmatched, func(u Unmatched) bool { return u.Age > breachAge.Milliseconds() })
}
