package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"sluice/fault"
	"sluice/queue"
)

// Transition moves an order forward from one status to another, if it still is in the first one, and returns it as it
// then is. Of two callers that race, one succeeds; the other one gets a *queue.Error Conflict and the order as the first
// one left it. at is Redis time in milliseconds, and becomes PaidAt of an order that is paid. A [Move] stays behind, so
// that Redis learns of it: an order that stops being live gives its units back, here and there, and one that is paid
// keeps them for good.
func (s *Store) Transition(ctx context.Context, id string, from, to queue.OrderStatus, at int64) (queue.Order, error) {
	var order queue.Order
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		var err error
		order, err = s.transition(ctx, tx, id, from, to, at)
		return err
	})
	if err != nil {
		return order, fmt.Errorf("move order %s to %s: %w", id, to, err)
	}
	return order, nil
}

func (s *Store) transition(ctx context.Context, tx *sqlx.Tx, id string, from, to queue.OrderStatus, at int64) (queue.Order, error) {
	paidAt := int64(0)
	if to == queue.Paid {
		paidAt = at
	}
	moved, err := affected(tx.ExecContext(ctx, tx.Rebind(
		"UPDATE orders SET status = ?, live = ?, paid_at = CASE WHEN paid_at = 0 THEN ? ELSE paid_at END, updated_at = ? "+
			"WHERE id = ? AND status = ?"), string(to), live(to), paidAt, now(), id, string(from)))
	if err != nil {
		return queue.Order{}, err
	}
	fault.Point("order.moved")
	order, err := readOrder(ctx, tx, id)
	if err != nil {
		return order, err
	}
	if moved == 0 {
		return order, &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf("the order is %s, not %s", order.Status, from)}
	}
	return order, s.moved(ctx, tx, []queue.Order{order})
}

// moved counts the units of orders, all in their new status, that are not live any more as unsold, and leaves the moves
// that tell Redis.
func (s *Store) moved(ctx context.Context, tx *sqlx.Tx, orders []queue.Order) error {
	back := map[product]int64{}
	for _, order := range orders {
		if !order.Status.Live() {
			back[product{order.Sale, order.Item}] += order.Qty
		}
	}
	for _, p := range inOrder(back) {
		if _, err := tx.ExecContext(ctx, tx.Rebind(
			"UPDATE items SET sold = sold - ?, version = version + 1 WHERE sale_id = ? AND item_id = ?"),
			back[p], p.sale, p.item); err != nil {
			return err
		}
	}
	fault.Point("order.unsold")
	err := s.insertMoves(ctx, tx, string(orders[0].Status), orders)
	fault.Point("order.noted")
	return err
}

// Expire ends confirmed orders whose hold is over at a moment by Redis time, at most max, those that are overdue longest
// first, and returns them. Paying tests the status only, so an order that is paid in the same moment is either paid or
// expired. Orders that another transaction is working on are left for the next call.
func (s *Store) Expire(ctx context.Context, at int64, max int) ([]queue.Order, error) {
	var expired []queue.Order
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		var rows []orderRow
		if err := tx.SelectContext(ctx, &rows, tx.Rebind("SELECT "+orderColumns+" FROM orders o "+
			"WHERE o.status = ? AND o.expires_at > 0 AND o.expires_at <= ? ORDER BY o.expires_at LIMIT ?"+s.dialect.skipLocked),
			string(queue.Confirmed), at, max); err != nil {
			return err
		}
		if expired = ordersOf(rows); len(expired) == 0 {
			return nil
		}
		fault.Point("expire.locked")
		ids := make([]string, len(expired))
		for i := range expired {
			expired[i].Status = queue.Expired
			ids[i] = expired[i].ID
		}
		if err := inChunks(ids, s.dialect.maxParams-3, func(ids []string) error {
			query, args, err := sqlx.In("UPDATE orders SET status = ?, live = NULL, updated_at = ? WHERE status = ? AND id IN (?)",
				string(queue.Expired), now(), string(queue.Confirmed), ids)
			if err != nil {
				return err
			}
			updated, err := affected(tx.ExecContext(ctx, tx.Rebind(query), args...))
			if err == nil && updated != int64(len(ids)) {
				err = errOvertaken
			}
			return err
		}); err != nil {
			return err
		}
		return s.moved(ctx, tx, expired)
	})
	if err != nil {
		return nil, fmt.Errorf("expire orders: %w", err)
	}
	return expired, nil
}

// Overdue counts confirmed orders whose hold was over at a moment by Redis time.
func (s *Store) Overdue(ctx context.Context, at int64) (int64, error) {
	var n int64
	if err := s.db.GetContext(ctx, &n, s.db.Rebind(
		"SELECT COUNT(*) FROM orders WHERE status = ? AND expires_at > 0 AND expires_at <= ?"), string(queue.Confirmed), at); err != nil {
		return 0, fmt.Errorf("count the overdue orders: %w", err)
	}
	return n, nil
}

// inOrder are the keys of a map in the order in which all transactions take the rows of items.
func inOrder[V any](m map[product]V) []product {
	products := make([]product, 0, len(m))
	for p := range m {
		products = append(products, p)
	}
	slices.SortFunc(products, func(a, b product) int {
		return cmp.Or(cmp.Compare(a.sale, b.sale), cmp.Compare(a.item, b.item))
	})
	return products
}

// live is the value of the column of that name. A unique key over a sale, a user and this column allows one row with
// a 1 in it, and any number of rows without.
func live(status queue.OrderStatus) *int64 {
	if !status.Live() {
		return nil
	}
	one := int64(1)
	return &one
}
