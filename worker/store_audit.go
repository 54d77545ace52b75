package worker

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// StoreAudit is what the database says about a sale at one moment. It is sound when every item is, and nobody is in
// the lists.
type StoreAudit struct {
	Items     []ItemAudit
	Doubles   []string // users with more than one live order, at most 100 of them
	OverLimit []string // live orders of more units than one order may have, at most 100 of them
}

// ItemAudit is the account of one item, in units.
type ItemAudit struct {
	Item  string `db:"item_id"`
	Total int64  `db:"total"`
	Sold  int64  `db:"sold"` // as counted along
	Live  int64  `db:"live"` // of the live orders, added up
}

// Sound says whether the database holds what it promises: for every item the units of its live orders are what is
// sold, which is no more than there is; and no user has two live orders, or one above the limit.
func (a StoreAudit) Sound() bool {
	for _, item := range a.Items {
		if item.Sold != item.Live || item.Sold > item.Total {
			return false
		}
	}
	return len(a.Doubles) == 0 && len(a.OverLimit) == 0
}

// Audit adds up a sale, all of it as of one moment. It reads every live order of the sale. A sale that does not exist
// is a *queue.Error NoSuchSale.
func (s *Store) Audit(ctx context.Context, sale string) (StoreAudit, error) {
	var audit StoreAudit
	err := transact(ctx, s.db, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func(tx *sqlx.Tx) error {
		if err := tx.SelectContext(ctx, &audit.Items, tx.Rebind(
			"SELECT i.item_id, i.total, i.sold, COALESCE(SUM(o.qty), 0) AS live FROM items i "+
				"LEFT JOIN orders o ON o.sale_id = i.sale_id AND o.item_id = i.item_id AND o.live = 1 "+
				"WHERE i.sale_id = ? GROUP BY i.item_id, i.total, i.sold ORDER BY i.item_id"), sale); err != nil {
			return err
		}
		if len(audit.Items) == 0 {
			return noSuchSale(sale)
		}
		if err := tx.SelectContext(ctx, &audit.Doubles, tx.Rebind(
			"SELECT user_id FROM orders WHERE sale_id = ? AND live = 1 "+
				"GROUP BY user_id HAVING COUNT(*) > 1 ORDER BY user_id LIMIT 100"), sale); err != nil {
			return err
		}
		return tx.SelectContext(ctx, &audit.OverLimit, tx.Rebind(
			"SELECT o.id FROM orders o JOIN sales s ON s.id = o.sale_id "+
				"WHERE o.sale_id = ? AND o.live = 1 AND o.qty > s.order_limit ORDER BY o.id LIMIT 100"), sale)
	})
	if err != nil {
		return StoreAudit{}, fmt.Errorf("audit sale %s: %w", sale, err)
	}
	return audit, nil
}
