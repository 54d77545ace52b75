package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/queue"
)

// FindOrders returns the orders of a sale that a filter lets through, the newest first by id.
func (s *Store) FindOrders(ctx context.Context, f queue.OrderFilter) ([]queue.Order, error) {
	if f.Begins == "" {
		return s.findOrders(ctx, f, "")
	}
	// One query with an OR would leave the databases no index that serves both.
	byID, err := s.findOrders(ctx, f, "o.id")
	if err != nil {
		return nil, err
	}
	byUser, err := s.findOrders(ctx, f, "o.user_id")
	if err != nil {
		return nil, err
	}
	orders := slices.Concat(byID, byUser)
	slices.SortFunc(orders, func(a, b queue.Order) int { return strings.Compare(b.ID, a.ID) })
	orders = slices.CompactFunc(orders, func(a, b queue.Order) bool { return a.ID == b.ID })
	return orders[:min(len(orders), f.Limit)], nil
}

// findOrders is FindOrders by the beginning of one column, unless that is "".
func (s *Store) findOrders(ctx context.Context, f queue.OrderFilter, column string) ([]queue.Order, error) {
	index := s.dialect.bySale
	where, args := []string{"o.sale_id = ?"}, []any{f.Sale}
	and := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if f.Before != "" {
		and("o.id < ?", f.Before)
	}
	if f.Status != "" {
		and("o.status = ?", string(f.Status))
	}
	if column != "" {
		// LIKE would not tell capitals from others in SQLite; an order of bytes is what all columns have.
		and(column+" >= ?", f.Begins)
		if end := behind(f.Begins); end != "" {
			and(column+" < ?", end)
		}
	}
	if column == "o.user_id" {
		index = "" // the one that begins with sale and user
	}
	var rows []orderRow
	query := "SELECT " + orderColumns + " FROM orders o " + index + " WHERE " + strings.Join(where, " AND ") + " ORDER BY o.id DESC LIMIT ?"
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind(query), append(args, f.Limit)...); err != nil {
		return nil, fmt.Errorf("find orders of sale %s: %w", f.Sale, err)
	}
	return ordersOf(rows), nil
}

// behind is the least text that comes after all that begin so, "" when there is none. The bytes of UTF-8 have the order of
// its characters, so it ends with another character, and PostgreSQL, which takes nothing else, takes it.
func behind(beginning string) string {
	chars := []rune(beginning)
	for i := len(chars) - 1; i >= 0; i-- {
		next := chars[i] + 1
		if next == 0xD800 {
			next = 0xE000 // between them are no characters
		}
		if next <= utf8.MaxRune {
			return string(append(chars[:i], next))
		}
	}
	return ""
}

// Sold returns how many units of each item of a sale are sold, as the database counts along.
func (s *Store) Sold(ctx context.Context, sale string) (map[string]int64, error) {
	var rows []struct {
		Item string `db:"item_id"`
		Sold int64  `db:"sold"`
	}
	if err := s.db.SelectContext(ctx, &rows, s.db.Rebind("SELECT item_id, sold FROM items WHERE sale_id = ?"), sale); err != nil {
		return nil, fmt.Errorf("read what is sold in sale %s: %w", sale, err)
	}
	sold := make(map[string]int64, len(rows))
	for _, row := range rows {
		sold[row.Item] = row.Sold
	}
	return sold, nil
}
