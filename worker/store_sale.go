package worker

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"sluice/queue"
)

// SaveSale stores the settings of a sale and the totals of its items; saving the same settings again changes nothing.
// A total below what is sold, or the removal of an item of which something is sold, is a *queue.Error Conflict, and
// then nothing is stored; so is a sale that is archived.
func (s *Store) SaveSale(ctx context.Context, sale queue.Sale) error {
	settings, err := json.Marshal(sale)
	if err != nil {
		return fmt.Errorf("save sale %s: %w", sale.ID, err)
	}
	err = s.write(ctx, func(tx *sqlx.Tx) error {
		if err := saveSettings(ctx, tx, sale, string(settings)); err != nil {
			return err
		}
		// After the row of the sale is locked: whoever archives locks it first.
		if archived, err := isArchived(ctx, tx, sale.ID); err != nil {
			return err
		} else if archived {
			return queue.ErrArchived(sale.ID)
		}
		return saveItems(ctx, tx, sale)
	})
	if err != nil {
		return fmt.Errorf("save sale %s: %w", sale.ID, err)
	}
	return nil
}

func saveSettings(ctx context.Context, tx *sqlx.Tx, sale queue.Sale, settings string) error {
	updated, err := affected(tx.ExecContext(ctx, tx.Rebind(
		"UPDATE sales SET settings = ?, order_limit = ?, updated_at = ? WHERE id = ?"),
		settings, sale.Limit, now(), sale.ID))
	if err != nil || updated > 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind(
		"INSERT INTO sales (id, settings, order_limit, created_at, updated_at) VALUES (?, ?, ?, ?, ?)"),
		sale.ID, settings, sale.Limit, now(), now())
	return err
}

// saveItems makes the rows of a sale's items match its settings. A row is touched only where something changes: while
// the sale runs the order writers queue up for it. Rows are taken in the order of their key, as the order writer does.
func saveItems(ctx context.Context, tx *sqlx.Tx, sale queue.Sale) error {
	var rows []struct {
		Item  string `db:"item_id"`
		Total int64  `db:"total"`
	}
	if err := tx.SelectContext(ctx, &rows, tx.Rebind(
		"SELECT item_id, total FROM items WHERE sale_id = ? ORDER BY item_id"), sale.ID); err != nil {
		return err
	}
	totals := make(map[string]int64, len(rows))
	for _, row := range rows {
		totals[row.Item] = row.Total
		if _, kept := sale.Item(row.Item); kept {
			continue
		}
		deleted, err := affected(tx.ExecContext(ctx, tx.Rebind(
			"DELETE FROM items WHERE sale_id = ? AND item_id = ? AND sold = 0"), sale.ID, row.Item))
		if err != nil {
			return err
		}
		if deleted == 0 {
			return &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf(
				"item %s cannot be removed: some of it is sold", row.Item)}
		}
	}
	items := slices.SortedFunc(slices.Values(sale.Items), func(a, b queue.Item) int { return cmp.Compare(a.ID, b.ID) })
	for _, item := range items {
		if total, known := totals[item.ID]; !known {
			if _, err := tx.ExecContext(ctx, tx.Rebind(
				"INSERT INTO items (sale_id, item_id, total) VALUES (?, ?, ?)"), sale.ID, item.ID, item.Stock); err != nil {
				return err
			}
		} else if total != item.Stock {
			updated, err := affected(tx.ExecContext(ctx, tx.Rebind(
				"UPDATE items SET total = ?, version = version + 1 WHERE sale_id = ? AND item_id = ? AND sold <= ?"),
				item.Stock, sale.ID, item.ID, item.Stock))
			if err != nil {
				return err
			}
			if updated == 0 {
				return &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf(
					"the stock of item %s cannot be lowered to %d: more is sold", item.ID, item.Stock)}
			}
		}
	}
	return nil
}

// Sales returns the settings of all sales that are not archived, by id: those that Redis is to have.
func (s *Store) Sales(ctx context.Context) ([]queue.Sale, error) {
	var rows []string
	if err := s.db.SelectContext(ctx, &rows, "SELECT settings FROM sales s "+
		"WHERE NOT EXISTS (SELECT 1 FROM archives a WHERE a.sale_id = s.id) ORDER BY id"); err != nil {
		return nil, fmt.Errorf("read the sales: %w", err)
	}
	sales := make([]queue.Sale, len(rows))
	for i, settings := range rows {
		if err := json.Unmarshal([]byte(settings), &sales[i]); err != nil {
			return nil, fmt.Errorf("read the sales: %w", err)
		}
	}
	return sales, nil
}

// Sale returns the settings of one sale, archived or not, or a *queue.Error NoSuchSale.
func (s *Store) Sale(ctx context.Context, id string) (queue.Sale, error) {
	var sale queue.Sale
	var settings string
	err := s.db.GetContext(ctx, &settings, s.db.Rebind("SELECT settings FROM sales WHERE id = ?"), id)
	if errors.Is(err, sql.ErrNoRows) {
		return sale, noSuchSale(id)
	}
	if err == nil {
		err = json.Unmarshal([]byte(settings), &sale)
	}
	if err != nil {
		return sale, fmt.Errorf("read sale %s: %w", id, err)
	}
	return sale, nil
}

func noSuchSale(id string) error {
	return &queue.Error{Code: queue.NoSuchSale, Message: fmt.Sprintf("there is no sale %q", id)}
}

// affected is the number of rows that a statement matched.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
