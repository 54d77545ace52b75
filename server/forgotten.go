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

// named is what a shopper must hear of the order that a hello names: nil when it is the order of the seat, or none of
// theirs, or nothing is known yet.
//
// Redis may lose what it has not written to disk or to a replica, and with it an order whose shopper was told of success
// and of which nobody else had heard. Such an order is stored as rejected before its shopper is told so: if it turns up
// after all, in the broker or with a master that comes back, it can only be rejected. Its item is not known any more; the
// row says the first one of the sale and one unit, which never counted as sold.
func (v *visit) named(ctx context.Context, user string, held queue.Seat, id string, snap *queue.Snapshot) (*queue.Order, error) {
	parsed, err := uuid.Parse(id)
	if err != nil || len(id) != 36 || parsed.Version() != 7 || held.Order != nil && held.Order.ID == id {
		return nil, nil //nolint:nilerr // what is no id of ours names nothing
	}
	order, err := v.server.opts.Orders.Order(ctx, id)
	switch {
	case err == nil && order.User == user && order.Sale == v.sale:
		return &order, nil
	case err == nil:
		return nil, nil
	case queue.CodeOf(err) != queue.NoSuchOrder:
		return nil, err
	}
	seconds, nanos := parsed.Time().UnixTime()
	made := seconds*1000 + nanos/1e6
	if held.State == queue.Recovering || v.server.opts.Forget == nil ||
		made < snap.Sale.OpensAt.UnixMilli()-int64(time.Minute/time.Millisecond) || held.At-made < forgetAge.Milliseconds() {
		return nil, nil
	}
	order, err = v.server.opts.Forget(ctx, queue.Order{
		ID: id, Sale: v.sale, Item: snap.Sale.Items[0].ID, User: user, Qty: 1, CreatedAt: made,
	})
	if err != nil {
		return nil, err
	}
	v.server.log.Warn("an order that its shopper was told of is nowhere: it is rejected", "sale", v.sale, "order", id)
	return &order, nil
}
