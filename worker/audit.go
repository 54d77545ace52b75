package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sluice/queue"
)

// auditGrace is how old a mark may be before it needs a row, or a row before it needs a mark: the way between them takes
// far less, unless something is wrong.
const auditGrace = 10 * time.Second

// unmatchedMost is how many unmatched orders a report names.
const unmatchedMost = 100

// auditLetters is how many dead letters an audit reads; more than a few are a fault of the installation.
const auditLetters = 10_000

// auditBroker is how long an audit waits for the broker's counts.
const auditBroker = 2 * time.Second

// Auditor compares what Redis, the broker and the database have of a sale, order by order. Queue lengths are shown and
// never added up: an order may be in two places at once on its way.
type Auditor struct {
	queue  *queue.Queue
	store  *Store
	broker Broker
}

// NewAuditor makes an auditor; broker may be nil.
func NewAuditor(q *queue.Queue, store *Store, broker Broker) *Auditor {
	return &Auditor{queue: q, store: store, broker: broker}
}

// Report is what an audit found. Its JSON is the answer of the admin API.
type Report struct {
	Sale      string         `json:"sale"`
	Archived  bool           `json:"archived,omitempty"` // what is said of Redis and the broker is as of then
	At        int64          `json:"at"`                 // Redis time, ms since the epoch
	Balanced  bool           `json:"balanced"`
	Items     []ReportItem   `json:"items"`
	Redis     ReportRedis    `json:"redis"`
	Database  ReportDatabase `json:"database"`
	Unmatched []Unmatched    `json:"unmatched"`
	InFlight  int64          `json:"in_flight"` // marks without a row that are on their way
	Outbox    int64          `json:"outbox"`
	Broker    ReportBroker   `json:"broker"`
	Problems  []string       `json:"problems"`
}

// ReportItem is one item, in units.
type ReportItem struct {
	Item    string `json:"item"`
	Total   int64  `json:"total"`
	Stock   int64  `json:"stock"`   // left, in Redis
	Winners int64  `json:"winners"` // of the marks in Redis
	Sold    int64  `json:"sold"`    // as the database counts along
	Live    int64  `json:"live"`    // of the live orders in the database

	// Imbalance is how many units do not add up: what Redis is off its total, what the database is off its count, and
	// those of orders that one side has and the other has not.
	Imbalance int64 `json:"imbalance"`
}

// ReportRedis says whether stock and winners make the total, for each item.
type ReportRedis struct {
	Balanced bool `json:"balanced"`
}

// ReportDatabase says whether what was sold is what the live orders hold, and no more than the total.
type ReportDatabase struct {
	Balanced   bool `json:"balanced"`
	DoubleLive int  `json:"double_live"` // users with more than one live order; the problems name them
	OverLimit  int  `json:"over_limit"`  // orders of more units than one may have
}

// ReportBroker is what the broker says of its queues.
type ReportBroker struct {
	Orders int64 `json:"orders"` // of all sales, that no writer has in hand
	Dead   int64 `json:"dead"`
	Away   bool  `json:"away"` // it did not answer, and nobody knows what it holds
}

// Unmatched is an order that one side has and the other has not, longer than its way takes.
type Unmatched struct {
	Order string `json:"order"`
	User  string `json:"user"`
	Why   string `json:"why"`
	Item  string `json:"item"`
	Qty   int64  `json:"qty"`
	Age   int64  `json:"age_ms"` // since the grab
}

// Audit compares the stores of a sale. It reads every order once, and may run while the sale does. Of an archived sale it is
// the last audit before that, with the database as it is now. Errors:
// queue.NoSuchSale, queue.Unavailable when a part cannot be asked.
func (a *Auditor) Audit(ctx context.Context, sale string) (Report, error) {
	balance, err := a.queue.Balance(ctx, sale)
	if err != nil {
		if _, gone := a.queue.Sale(ctx, sale); queue.CodeOf(gone) == queue.NoSuchSale {
			if archive, err := a.store.Archive(ctx, sale); err != nil || archive != nil {
				return a.archived(ctx, archive, err)
			}
			return Report{}, gone
		}
		return Report{}, err
	}
	books, err := a.store.Audit(ctx, sale)
	if err != nil {
		return Report{}, err
	}
	// The broker comes first: what lies in it now and is taken out meanwhile is found in the database, or in hand.
	report := Report{Sale: sale, At: balance.At, Broker: a.counts(ctx), Unmatched: []Unmatched{}, Problems: []string{}}
	a.items(&report, balance, books)
	if err := a.across(ctx, &report, balance); err != nil {
		return Report{}, err
	}
	if report.Outbox, err = a.queue.OutboxLen(ctx, sale); err != nil {
		return Report{}, err
	}
	report.Balanced = len(report.Problems) == 0
	return report, nil
}

// archived is the audit of an archived sale.
func (a *Auditor) archived(ctx context.Context, archive *queue.Archive, err error) (report Report, _ error) {
	if err == nil {
		err = json.Unmarshal(archive.Audit, &report)
	}
	if err != nil {
		return Report{}, err
	}
	books, err := a.store.Audit(ctx, archive.Sale)
	if err != nil {
		return Report{}, err
	}
	var balance queue.Balance
	for _, item := range report.Items {
		balance.Items = append(balance.Items, queue.ItemBalance{Item: item.Item, Total: item.Total, Stock: item.Stock, Winners: item.Winners})
	}
	report.Items, report.Problems, report.Archived = nil, []string{}, true
	a.items(&report, balance, books)
	report.Balanced = len(report.Problems) == 0
	return report, nil
}

// items adds up each store by itself.
func (a *Auditor) items(report *Report, balance queue.Balance, books StoreAudit) {
	problem := func(format string, args ...any) {
		report.Problems = append(report.Problems, fmt.Sprintf(format, args...))
	}
	rows := map[string]ItemAudit{}
	for _, row := range books.Items {
		rows[row.Item] = row
	}
	report.Redis.Balanced = true
	for _, item := range balance.Items {
		row := rows[item.Item]
		report.Items = append(report.Items, ReportItem{
			Item: item.Item, Total: item.Total, Stock: item.Stock, Winners: item.Winners, Sold: row.Sold, Live: row.Live,
			Imbalance: abs(item.Total-item.Stock-item.Winners) + abs(row.Sold-row.Live),
		})
		if item.Stock < 0 || item.Stock+item.Winners != item.Total {
			report.Redis.Balanced = false
			problem("%s: %d left and %d with winners do not make the total of %d in Redis", item.Item, item.Stock, item.Winners, item.Total)
		}
		if row.Total != item.Total {
			problem("%s: the total is %d in Redis and %d in the database", item.Item, item.Total, row.Total)
		}
		if row.Sold != row.Live || row.Sold > row.Total {
			problem("%s: the database counts %d sold of %d, and its live orders hold %d", item.Item, row.Sold, row.Total, row.Live)
		}
	}
	report.Database = ReportDatabase{Balanced: books.Sound(), DoubleLive: len(books.Doubles), OverLimit: len(books.OverLimit)}
	for _, user := range books.Doubles {
		problem("user %q has more than one live order", user)
	}
	for _, order := range books.OverLimit {
		problem("order %s holds more units than one order may have", order)
	}
}

// across matches marks and rows by order id. What does not match at first is looked at again by itself, because both
// sides move on while they are read.
func (a *Auditor) across(ctx context.Context, report *Report, balance queue.Balance) error {
	marks := map[string]queue.Order{}
	units := map[string]int64{} // of the marks, by item
	err := a.queue.Marks(ctx, report.Sale, func(page []queue.Mark) error {
		for _, mark := range page {
			if _, twice := marks[mark.Order.ID]; !twice {
				units[mark.Order.Item] += mark.Order.Qty
			}
			marks[mark.Order.ID] = mark.Order
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := a.marksAddUp(ctx, report, balance, units); err != nil {
		return err
	}
	rows := map[string]queue.Order{}
	err = a.store.EachOrder(ctx, report.Sale, 1000, func(page []queue.Order) error {
		for _, order := range page {
			if order.Status.Live() {
				rows[order.ID] = order
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	waiting, err := a.queue.OutboxIDs(ctx, report.Sale)
	if err != nil {
		return err
	}
	dead, err := a.dead(ctx, report.Broker)
	if err != nil {
		return err
	}
	held, err := a.queue.Held(ctx, report.Sale)
	if err != nil {
		return err
	}
	// While orders wait in the broker, or nobody knows whether some do, any that was taken may be among them.
	brokered := report.Broker.Orders > 0 || report.Broker.Away
	old := func(o queue.Order) bool { return report.At-o.CreatedAt > auditGrace.Milliseconds() }
	for id, mark := range marks {
		if _, written := rows[id]; written {
			continue
		}
		report.InFlight++
		if brokered || waiting[id] || dead[id] || held[id] || !old(mark) {
			continue
		}
		if unmatched, err := a.markWithoutRow(ctx, mark); err != nil {
			return err
		} else if unmatched != "" {
			report.unmatched(mark, unmatched)
		}
	}
	for id, row := range rows {
		if _, marked := marks[id]; marked || !old(row) {
			continue
		}
		if unmatched, err := a.rowWithoutMark(ctx, row); err != nil {
			return err
		} else if unmatched != "" {
			report.unmatched(row, unmatched)
		}
	}
	return nil
}

// marksAddUp compares the marks as they were read, one after the other, with what was counted along with them. That says
// something only when nothing moved meanwhile: no mark came, or the count would be another, and none went, which is news.
func (a *Auditor) marksAddUp(ctx context.Context, report *Report, before queue.Balance, units map[string]int64) error {
	after, err := a.queue.Balance(ctx, report.Sale)
	if err != nil {
		return err
	}
	if before.News != after.News || !slices.Equal(before.Items, after.Items) {
		return nil
	}
	for i, item := range after.Items {
		if units[item.Item] == item.Winners {
			continue
		}
		report.Redis.Balanced = false
		if i < len(report.Items) {
			report.Items[i].Imbalance += abs(units[item.Item] - item.Winners)
		}
		report.Problems = append(report.Problems, fmt.Sprintf(
			"%s: the marks in Redis hold %d units, and %d were counted with them", item.Item, units[item.Item], item.Winners))
	}
	return nil
}

// counts are what the broker has. One that does not answer costs the audit a moment.
func (a *Auditor) counts(ctx context.Context) ReportBroker {
	if a.broker == nil {
		return ReportBroker{}
	}
	counted := make(chan ReportBroker, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, auditBroker)
		defer cancel()
		var c ReportBroker
		var deadErr, ordersErr error
		c.Dead, deadErr = a.broker.DeadLetters(ctx)
		c.Orders, ordersErr = a.broker.Waiting(ctx)
		c.Away = deadErr != nil || ordersErr != nil
		counted <- c
	}()
	select {
	case c := <-counted:
		return c
	case <-time.After(auditBroker): // it may hang longer than it was asked to
		return ReportBroker{Away: true}
	}
}

// dead are the ids of the dead letters, which hold their units until an operator has decided.
func (a *Auditor) dead(ctx context.Context, broker ReportBroker) (map[string]bool, error) {
	dead := map[string]bool{}
	if broker.Dead == 0 {
		return dead, nil
	}
	letters, err := a.broker.Letters(ctx, auditLetters)
	for _, letter := range letters {
		dead[letter.ID] = true
	}
	return dead, err
}

// markWithoutRow says why a mark has no row, "" when it has one by now or is gone.
func (a *Auditor) markWithoutRow(ctx context.Context, mark queue.Order) (string, error) {
	row, err := a.store.Order(ctx, mark.ID)
	if err == nil && row.Status.Live() {
		return "", nil
	}
	if err != nil && queue.CodeOf(err) != queue.NoSuchOrder {
		return "", err
	}
	seat, lookErr := a.queue.Look(ctx, mark.Sale, mark.User)
	if lookErr != nil {
		return "", lookErr
	}
	if seat.Order == nil || seat.Order.ID != mark.ID {
		return "", nil
	}
	if err == nil {
		if pending, err := a.store.Pending(ctx, mark.ID); err != nil || pending {
			return "", err // a stock move is on its way
		}
		return fmt.Sprintf("its order is %s in the database, and Redis still holds its stock", row.Status), nil
	}
	return "Redis holds its stock, and no order was written", nil
}

// rowWithoutMark says why a live row has no mark, "" when it has one by now or is not live any more.
func (a *Auditor) rowWithoutMark(ctx context.Context, row queue.Order) (string, error) {
	seat, err := a.queue.Look(ctx, row.Sale, row.User)
	if err != nil {
		return "", err
	}
	if seat.Order != nil && seat.Order.ID == row.ID {
		return "", nil
	}
	now, err := a.store.Order(ctx, row.ID)
	if err != nil {
		return "", err
	}
	if !now.Status.Live() {
		return "", nil
	}
	return "the order is live in the database, and Redis does not hold its stock", nil
}

func (r *Report) unmatched(order queue.Order, why string) {
	if len(r.Unmatched) < unmatchedMost {
		r.Unmatched = append(r.Unmatched, Unmatched{
			Order: order.ID, User: order.User, Why: why, Item: order.Item, Qty: order.Qty, Age: r.At - order.CreatedAt,
		})
	}
	for i := range r.Items {
		if r.Items[i].Item == order.Item {
			r.Items[i].Imbalance += order.Qty
		}
	}
	if len(r.Problems) < unmatchedMost {
		r.Problems = append(r.Problems, fmt.Sprintf("order %s of user %q: %s", order.ID, order.User, why))
	}
}

func abs(n int64) int64 { return max(n, -n) }
