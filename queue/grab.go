package queue

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"sluice/fault"
	"sluice/trace"
)

// GrabRequest asks for units of one item.
type GrabRequest struct {
	Sale      string
	User      string
	Address   string // client address, for the address limit
	Item      string
	Qty       int64
	RequestID string // made by the shopper; a repeat with the same one gets the first answer
	Trace     string // what this is a part of, see package trace; "" = nobody follows it

	// NewOrderID makes the id that the order will have, a UUIDv7 that no other order has; nil = any.
	NewOrderID func(sale, user string) (string, error)
}

// Result is the outcome of a grab. The numbers are the `code` of the answer.
type Result int

// The outcomes of a grab.
const (
	Success Result = codeSuccess
	Already Result = codeAlready
	SoldOut Result = codeSoldOut
	NoTurn  Result = codeNoTurn
	NotOpen Result = codeNotOpen
)

// String is the `result` of the answer.
func (r Result) String() string {
	switch r {
	case Success:
		return "success"
	case Already:
		return "already"
	case SoldOut:
		return "sold_out"
	case NoTurn:
		return "no_turn"
	case NotOpen:
		return "not_open"
	}
	return fmt.Sprintf("Result(%d)", int(r))
}

// Grabbed is the answer to a grab.
type Grabbed struct {
	Result Result
	Order  *Order     // of Success and Already. Its status is Reserved: the database may know more
	Replay bool       // the request had succeeded before, and nothing was taken now
	Ended  bool       // of a Replay: the order was released since, and the database knows how
	Stock  StockState // of SoldOut: what becomes of the item
	Left   int64      // of SoldOut: units left of the item, fewer than were asked for
	State  State      // of the sale

	Allowance *Allowance // of the request; nil = no limit is on, or none was asked because this node knew the answer
}

// grabCall is a request with the id that its order will have. The node makes the id, never the shopper; a repeat of the
// call carries it again.
type grabCall struct {
	GrabRequest
	order string
}

// Grab takes stock for a user, all units or none, and writes the order to the outbox, in one step. Concurrent grabs of
// a sale share calls to Redis, and when nothing is left most need none; see latch.
//
// Errors: NoSuchItem, Invalid for a quantity above the sale's limit, Limited, and Unavailable while Redis is away or the
// sale recovers. After Unavailable the outcome is unknown, and the same request id settles it. It blocks on Redis, at
// most a few seconds.
func (q *Queue) Grab(ctx context.Context, req GrabRequest) (Grabbed, error) {
	if g, known := q.latched(&req); known {
		return g, nil
	}
	if req.NewOrderID == nil {
		req.NewOrderID = anyOrderID
	}
	id, err := req.NewOrderID(req.Sale, req.User)
	if err != nil {
		return Grabbed{}, err
	}
	return q.lane(req.Sale).grabs.do(ctx, grabCall{GrabRequest: req, order: id})
}

func anyOrderID(string, string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an order id: %w", err)
	}
	return id.String(), nil
}

func (q *Queue) grabBatch(ctx context.Context, sale string, calls []grabCall) ([]Grabbed, []error) {
	q.metrics.batch.Observe(float64(len(calls)))
	k := keysOf(sale)
	names := []string{k.meta, k.stock, k.seats, k.turns, k.winners, k.past, k.outbox, k.away, k.draw}
	spans := q.follow(trace.GrabScript, len(calls), func(i int) string { return calls[i].Trace })
	limits := q.limits.Load()
	args := append(limits.args(), limits.Outbox, spans.contexts())
	for _, c := range calls {
		names = limits.keys(names, k, c.User, c.Address)
		args = append(args, c.User, c.Item, c.Qty, c.RequestID, c.order)
	}
	grabbed, errs := make([]Grabbed, len(calls)), make([]error, len(calls))
	defer spans.end(errs)
	fault.Point("grab.asked")
	v, err := q.run(ctx, "grab", names, args)
	fault.Point("grab.taken")
	if err != nil {
		// The answer was lost, or the call was. The request ids make a second one safe: what the first did is found.
		v, err = q.run(ctx, "grab", names, args)
	}
	if err != nil {
		return grabbed, fill(errs, fmt.Errorf("grab %d in sale %s: %w", len(calls), sale, err))
	}
	r := &reply{script: "grab"}
	rows := r.list(v, 0)
	if len(rows) == 0 {
		return grabbed, fill(errs, q.absent(ctx, sale))
	}
	rows = r.list(v, 1+len(calls))
	head, left := r.list(rows[0], 3), limits.allowances(r, rows, len(calls))
	state := State(r.text(head[1]))
	for i, c := range calls {
		g := Grabbed{State: state, Stock: StockState(r.text(head[2])), Allowance: left.of(i)}
		row := r.list(rows[1+i], 1)
		switch code := r.int(row[0]); code {
		case codeSuccess:
			row = r.list(row, 3)
			g.Result, g.Order = Success, r.mark(sale, c.User, r.text(row[1]))
			g.Replay, g.Ended = r.int(row[2]) > 0, r.int(row[2]) == 2
			if g.Order != nil && g.Order.ID == c.order {
				g.Replay = false // our own first call, whose answer was lost
			}
		case codeAlready:
			row = r.list(row, 2)
			g.Result, g.Order = Already, r.mark(sale, c.User, r.text(row[1]))
		case codeSoldOut:
			row = r.list(row, 3)
			g.Result, g.Left, g.Stock = SoldOut, r.int(row[1]), StockState(r.text(row[2]))
		case codeNoTurn, codeNotOpen:
			g.Result = Result(code)
		case codeLimited:
			errs[i] = limits.refusal(r, row)
		case codeNoItem:
			errs[i] = &Error{Code: NoSuchItem, Message: fmt.Sprintf("the sale %q has no item %q", sale, c.Item)}
		case codeRecovering:
			errs[i] = errNotHere(sale)
		case codeQty:
			row = r.list(row, 2)
			errs[i] = &Error{Code: Invalid, Message: fmt.Sprintf(
				"qty must be from 1 to %d in this sale, not %d", r.int(row[1]), c.Qty)}
		default:
			r.fail("a known code was expected", code)
		}
		grabbed[i] = g
	}
	if r.err != nil {
		return grabbed, fill(errs, r.err)
	}
	return grabbed, errs
}
