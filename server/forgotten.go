package server

import (
	"context"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
)

// forgetAge is how old an order must be before it counts as forgotten when nobody knows it: by then its mark and its row
// have met, if there ever was a mark.
const forgetAge = 5 * time.Second

// fate is what became of an order that its shopper was told of and that is not the one of their seat, as that was read. It
// is false while that cannot be known.
//
// Redis may lose what it has not written to disk or to a replica, and with it an order whose shopper was told of success
// and of which nobody else had heard. Such an order is stored as rejected before its shopper is told so: if it turns up
// after all, in the broker or with a master that comes back, it can only be rejected.
func (s *Server) fate(ctx context.Context, order queue.Order, seat queue.Seat) (queue.Order, bool) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	row, err := s.opts.Orders.Order(ctx, order.ID)
	switch {
	case err == nil:
		return row, row.User == order.User && row.Sale == order.Sale
	case queue.CodeOf(err) != queue.NoSuchOrder || s.opts.Forget == nil:
		return order, false
	case seat.State == queue.Recovering || seat.At-order.CreatedAt < forgetAge.Milliseconds():
		return order, false
	}
	row, err = s.opts.Forget(ctx, order)
	if err != nil {
		s.log.Warn("a forgotten order cannot be rejected yet", "sale", order.Sale, "order", order.ID, "error", err)
		return order, false
	}
	s.log.Warn("an order that its shopper was told of is nowhere: it is rejected", "sale", order.Sale, "order", order.ID)
	return row, true
}

// named is what a shopper must hear of the order that a hello names: nil when it is the order of the seat, or none of
// theirs, or nothing is known yet. An id that was not made for this user is as good as none: nobody can have somebody else's
// order rejected before its row is written, or fill the database with orders that never were. Of an order that is nowhere the
// item is not known any more; its row says the first one of the sale and one unit, which never counted as sold.
func (s *Server) named(ctx context.Context, user string, seat queue.Seat, id string, snap *queue.Snapshot) *queue.Order {
	parsed, err := uuid.Parse(id)
	if err != nil || len(id) != 36 || parsed.Version() != 7 || seat.Order != nil && seat.Order.ID == id {
		return nil // what is no id of ours names nothing
	}
	if !s.current().identities.wasTold(parsed, snap.Sale.ID, user) {
		return nil
	}
	seconds, nanos := parsed.Time().UnixTime()
	made := seconds*1000 + nanos/1e6
	if made < snap.Sale.OpensAt.Add(-time.Minute).UnixMilli() { // the clocks of nodes differ by less
		return nil
	}
	order, known := s.fate(ctx, queue.Order{
		ID: id, Sale: snap.Sale.ID, Item: snap.Sale.Items[0].ID, User: user, Qty: 1, CreatedAt: made,
	}, seat)
	if !known {
		return nil
	}
	return &order
}
