package worker

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// Move is a movement of stock that the database has committed and Redis may not know of yet: the units of an order
// that is no longer live, or never was. It is written in the transaction that changes the order, and is pending until
// [Store.MoveDone], so a crash in between is finished by whoever looks next.
type Move struct {
	ID    int64 // ascending
	Kind  string
	Order queue.Order // as it is now
}

// moveReject is the kind of a move whose order was refused by the database. The other kinds are named as the status
// that the order was moved to.
const moveReject = "reject"

// Moves returns pending moves with an id above after, at most max, in the order of their ids.
func (s *Store) Moves(ctx context.Context, after int64, max int) ([]Move, error) {
	var rows []struct {
		orderRow
		MoveID int64  `db:"move_id"`
		Kind   string `db:"kind"`
	}
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(
		"SELECT m.id AS move_id, m.kind, "+orderColumns+" FROM stock_moves m JOIN orders o ON o.id = m.order_id "+
			"WHERE m.done = 0 AND m.id > ? ORDER BY m.id LIMIT ?"), after, max); err != nil {
		return nil, fmt.Errorf("read the pending stock moves: %w", err)
	}
	moves := make([]Move, len(rows))
	for i, row := range rows {
		moves[i] = Move{ID: row.MoveID, Kind: row.Kind, Order: row.order()}
	}
	return moves, nil
}

// Pending says whether Redis may not have heard yet what became of an order.
func (s *Store) Pending(ctx context.Context, orderID string) (bool, error) {
	var n int64
	if err := s.db.GetContext(ctx, &n, s.db.Rebind("SELECT COUNT(*) FROM stock_moves WHERE done = 0 AND order_id = ?"), orderID); err != nil {
		return false, fmt.Errorf("look for a pending move of order %s: %w", orderID, err)
	}
	return n > 0, nil
}

// MoveDone marks the moves of these orders as done: Redis has been told. Orders without a pending move are ignored.
func (s *Store) MoveDone(ctx context.Context, orderIDs []string) error {
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		return inChunks(orderIDs, s.dialect.maxParams, func(ids []string) error {
			query, args, err := sqlx.In("UPDATE stock_moves SET done = 1 WHERE done = 0 AND order_id IN (?)", ids)
			if err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, tx.Rebind(query), args...)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("mark stock moves as done: %w", err)
	}
	return nil
}

func (s *Store) insertMoves(ctx context.Context, tx *sqlx.Tx, kind string, orders []queue.Order) error {
	rows := make([][]any, len(orders))
	for i, o := range orders {
		rows[i] = []any{o.Sale, o.Item, o.ID, o.Qty, kind, now()}
	}
	return s.insert(ctx, tx, "stock_moves (sale_id, item_id, order_id, qty, kind, created_at)", rows)
}
