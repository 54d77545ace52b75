package worker

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// orderColumns are the columns of an orderRow.
const orderColumns = "o.id, o.sale_id, o.item_id, o.user_id, o.qty, o.request_id, o.status, o.reason, " +
	"o.created_at, o.expires_at, o.paid_at"

// orderRow is an order as the table has it.
type orderRow struct {
	ID        string `db:"id"`
	Sale      string `db:"sale_id"`
	Item      string `db:"item_id"`
	User      string `db:"user_id"`
	Qty       int64  `db:"qty"`
	RequestID string `db:"request_id"`
	Status    string `db:"status"`
	Reason    string `db:"reason"`
	CreatedAt int64  `db:"created_at"`
	ExpiresAt int64  `db:"expires_at"`
	PaidAt    int64  `db:"paid_at"`
}

func (r orderRow) order() queue.Order {
	return queue.Order{
		ID:        r.ID,
		Sale:      r.Sale,
		Item:      r.Item,
		User:      r.User,
		Qty:       r.Qty,
		RequestID: r.RequestID,
		Status:    queue.OrderStatus(r.Status),
		CreatedAt: r.CreatedAt,
		PayBy:     r.ExpiresAt,
		PaidAt:    r.PaidAt,
	}
}

func ordersOf(rows []orderRow) []queue.Order {
	orders := make([]queue.Order, len(rows))
	for i, row := range rows {
		orders[i] = row.order()
	}
	return orders
}

// Order returns one order, or a *queue.Error NoSuchOrder.
func (s *Store) Order(ctx context.Context, id string) (queue.Order, error) {
	order, err := readOrder(ctx, s.db, id)
	if err != nil {
		return order, fmt.Errorf("read order %s: %w", id, err)
	}
	return order, nil
}

func readOrder(ctx context.Context, db sqlx.ExtContext, id string) (queue.Order, error) {
	var row orderRow
	err := sqlx.GetContext(ctx, db, &row, sqlx.Rebind(sqlx.BindType(db.DriverName()),
		"SELECT "+orderColumns+" FROM orders o WHERE o.id = ?"), id)
	if errors.Is(err, sql.ErrNoRows) {
		return queue.Order{}, &queue.Error{Code: queue.NoSuchOrder, Message: fmt.Sprintf("there is no order %q", id)}
	}
	return row.order(), err
}

// OrdersOf returns the orders of a user in a sale, or in all sales when sale is "", the newest first.
func (s *Store) OrdersOf(ctx context.Context, user, sale string) ([]queue.Order, error) {
	query, args := "SELECT "+orderColumns+" FROM orders o WHERE o.user_id = ?", []any{user}
	if sale != "" {
		query, args = query+" AND o.sale_id = ?", append(args, sale)
	}
	var rows []orderRow
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(query+" ORDER BY o.created_at DESC, o.id DESC"), args...); err != nil {
		return nil, fmt.Errorf("read the orders of a user: %w", err)
	}
	return ordersOf(rows), nil
}

// EachOrder calls fn with all orders of a sale in the order of their ids, at most page at a time. Orders written
// meanwhile may or may not be among them. No connection is held while fn runs, so fn may use the Store. An error of fn
// ends the walk and is returned as it is.
func (s *Store) EachOrder(ctx context.Context, sale string, page int, fn func([]queue.Order) error) error {
	// Left alone, MariaDB begins each page at the first order of the sale.
	query := s.db.Rebind("SELECT " + orderColumns + " FROM orders o " + s.dialect.bySale +
		" WHERE o.sale_id = ? AND o.id > ? ORDER BY o.id LIMIT ?")
	for after := ""; ; {
		var rows []orderRow
		if err := s.db.SelectContext(ctx, &rows, query, sale, after, page); err != nil {
			return fmt.Errorf("read the orders of sale %s: %w", sale, err)
		}
		if len(rows) == 0 {
			return nil
		}
		if err := fn(ordersOf(rows)); err != nil {
			return err
		}
		if len(rows) < page {
			return nil
		}
		after = rows[len(rows)-1].ID
	}
}
