package worker

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"sluice/fault"
	"sluice/queue"
	"sluice/words"
)

// Why the database refuses a grab that Redis let through. Redis and the database differ only after Redis has lost
// something, and then the database decides.
const (
	RejectedLimit   = "limit"    // more units than one order may have
	RejectedAlready = "already"  // the user has another live order in the sale
	RejectedSoldOut = "sold_out" // not enough units are left
	RejectedDropped = "dropped"  // it could not be written, and an operator gave up on it
	RejectedLost    = "lost"     // Redis forgot it before anybody else knew of it

	RejectedArchived = "archived" // the sale is archived, and its books are closed
)

// Written is what became of one order given to [Store.WriteOrders].
type Written struct {
	Order  queue.Order // as it is stored
	Known  bool        // it was stored before this call
	Reason string      // why it is rejected, one of the constants above; "" when it is not
}

// WriteOrders stores orders and counts their units as sold, all in one transaction, and says for each what became of
// it. An order that is stored already stays as it is, so a batch may be written again after any failure. A new one is
// stored as confirmed; one that may not be had is stored as rejected, for good, with a pending [Move] that gives its
// units back in Redis. Orders are judged one after the other in the order of CreatedAt and ID.
//
// It waits for other writers of the same items, and repeats itself when it collides with them. On any error nothing is
// stored. For an error that [IsPermanent], at least one of the orders can never be stored: a sale or an item is not
// there, or a value does not fit its column; parts of the batch may succeed on their own.
func (s *Store) WriteOrders(ctx context.Context, orders []queue.Order) ([]Written, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	batch := make(map[string]queue.Order, len(orders))
	for _, order := range orders {
		batch[order.ID] = order
	}
	ids := slices.Sorted(maps.Keys(batch))
	var written map[string]Written
	careful := false
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		var err error
		written, err = s.writeBatch(ctx, tx, batch, ids, careful)
		// A user's other live order is so rare that it is looked for only after a unique key has found it.
		careful = careful || isUniqueViolation(err)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", words.Count(len(batch), "order"), err)
	}
	results := make([]Written, len(orders))
	for i, order := range orders {
		results[i] = written[order.ID]
	}
	return results, nil
}

// Reject stores an order as rejected, for good, so that it can never be accepted later, with a pending [Move] that gives
// its units back in Redis. An order that is stored already stays as it is. It returns the order as it is stored. Errors: as
// WriteOrders.
func (s *Store) Reject(ctx context.Context, order queue.Order, reason string) (queue.Order, error) {
	var stored queue.Order
	err := s.write(ctx, func(tx *sqlx.Tx) error {
		known, err := s.known(ctx, tx, []string{order.ID})
		if err != nil {
			return err
		}
		if w, found := known[order.ID]; found {
			stored = w.Order
			return nil
		}
		stored = order
		stored.Status = queue.Rejected
		return s.insertOrders(ctx, tx, []queue.Order{stored}, map[string]Written{order.ID: {Order: stored, Reason: reason}})
	})
	if err != nil {
		return stored, fmt.Errorf("reject order %s: %w", order.ID, err)
	}
	return stored, nil
}

// writeBatch is one attempt at a batch. Rows are locked in the same order by all writers: orders by id, then items by
// key. The rows of hot items come last so that they are locked for the commit only.
func (s *Store) writeBatch(ctx context.Context, tx *sqlx.Tx, batch map[string]queue.Order, ids []string, careful bool,
) (map[string]Written, error) {
	written, err := s.known(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	var fresh []queue.Order
	for _, id := range ids {
		if _, known := written[id]; !known {
			fresh = append(fresh, batch[id])
		}
	}
	if len(fresh) == 0 {
		return written, nil
	}
	fault.Point("store.read")
	shelf, err := s.shelf(ctx, tx, fresh)
	if err != nil {
		return nil, err
	}
	buyers := map[buyer]bool{}
	if careful || scarce(fresh, shelf) {
		if buyers, err = s.buyers(ctx, tx, fresh); err != nil {
			return nil, err
		}
	}
	sold := judge(fresh, shelf, buyers, written)
	if err := s.insertOrders(ctx, tx, fresh, written); err != nil {
		return nil, err
	}
	fault.Point("store.inserted")
	err = sell(ctx, tx, sold)
	fault.Point("store.sold")
	return written, err
}

// product is an item of a sale.
type product struct{ sale, item string }

// stock is what is left of a product, and how much of it one order may have, both in units; and whether its sale is archived.
type stock struct {
	left, limit int64
	archived    bool
}

// buyer is a user in a sale.
type buyer struct{ sale, user string }

// scarce says whether not all of the orders can have their units, so that some will be refused. The reason why has to
// be the true one.
func scarce(orders []queue.Order, shelf map[product]stock) bool {
	wanted := map[product]int64{}
	for _, order := range orders {
		p := product{order.Sale, order.Item}
		wanted[p] += order.Qty
		if wanted[p] > shelf[p].left {
			return true
		}
	}
	return false
}

// judge decides about new orders, puts the verdicts into written, and returns the units sold of each product.
func judge(fresh []queue.Order, shelf map[product]stock, buyers map[buyer]bool, written map[string]Written) map[product]int64 {
	sold := map[product]int64{}
	for _, order := range slices.SortedFunc(slices.Values(fresh), func(a, b queue.Order) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}) {
		p, b := product{order.Sale, order.Item}, buyer{order.Sale, order.User}
		verdict := Written{Order: order}
		switch {
		case shelf[p].archived:
			verdict.Reason = RejectedArchived
		case order.Qty > shelf[p].limit:
			verdict.Reason = RejectedLimit
		case buyers[b]:
			verdict.Reason = RejectedAlready
		case order.Qty > shelf[p].left-sold[p]:
			verdict.Reason = RejectedSoldOut
		}
		if verdict.Reason == "" {
			verdict.Order.Status = queue.Confirmed
			buyers[b] = true
			sold[p] += order.Qty
		} else {
			verdict.Order.Status = queue.Rejected
		}
		written[order.ID] = verdict
	}
	return sold
}

// known returns those of the orders that are stored already.
func (s *Store) known(ctx context.Context, tx *sqlx.Tx, ids []string) (map[string]Written, error) {
	known := make(map[string]Written, len(ids))
	err := inChunks(ids, s.dialect.maxParams, func(ids []string) error {
		query, args, err := sqlx.In("SELECT "+orderColumns+" FROM orders o WHERE o.id IN (?)", ids)
		if err != nil {
			return err
		}
		var rows []orderRow
		if err := tx.SelectContext(ctx, &rows, tx.Rebind(query), args...); err != nil {
			return err
		}
		for _, row := range rows {
			known[row.ID] = Written{Order: row.order(), Known: true, Reason: row.Reason}
		}
		return nil
	})
	return known, err
}

// shelf returns what is left of the products that the orders are about. What it says may be outdated at once; sell
// notices. A sale or item that is not there is a *queue.Error NoSuchSale or NoSuchItem.
func (s *Store) shelf(ctx context.Context, tx *sqlx.Tx, orders []queue.Order) (map[product]stock, error) {
	sales := map[string]bool{}
	for _, order := range orders {
		sales[order.Sale] = false
	}
	shelf := map[product]stock{}
	err := inChunks(slices.Sorted(maps.Keys(sales)), s.dialect.maxParams, func(ids []string) error {
		query, args, err := sqlx.In("SELECT i.sale_id, i.item_id, i.total - i.sold AS units, s.order_limit, "+
			"CASE WHEN a.sale_id IS NULL THEN 0 ELSE 1 END AS archived FROM items i JOIN sales s ON s.id = i.sale_id "+
			"LEFT JOIN archives a ON a.sale_id = i.sale_id WHERE i.sale_id IN (?)", ids)
		if err != nil {
			return err
		}
		var rows []struct {
			Sale  string `db:"sale_id"`
			Item  string `db:"item_id"`
			Units int64  `db:"units"`
			Limit int64  `db:"order_limit"`

			Archived bool `db:"archived"`
		}
		if err := tx.SelectContext(ctx, &rows, tx.Rebind(query), args...); err != nil {
			return err
		}
		for _, row := range rows {
			sales[row.Sale] = true
			shelf[product{row.Sale, row.Item}] = stock{left: row.Units, limit: row.Limit, archived: row.Archived}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, order := range orders {
		if !sales[order.Sale] {
			return nil, noSuchSale(order.Sale)
		}
		if _, found := shelf[product{order.Sale, order.Item}]; !found {
			return nil, &queue.Error{Code: queue.NoSuchItem, Message: fmt.Sprintf(
				"there is no item %q in sale %q", order.Item, order.Sale)}
		}
	}
	return shelf, nil
}

// buyers returns those who have a live order already, of the users that the orders are of.
func (s *Store) buyers(ctx context.Context, tx *sqlx.Tx, orders []queue.Order) (map[buyer]bool, error) {
	users := map[string][]string{}
	for _, order := range orders {
		users[order.Sale] = append(users[order.Sale], order.User)
	}
	buyers := map[buyer]bool{}
	for sale, users := range users {
		err := inChunks(users, s.dialect.maxParams-1, func(users []string) error {
			query, args, err := sqlx.In("SELECT user_id FROM orders WHERE sale_id = ? AND live = 1 AND user_id IN (?)", sale, users)
			if err != nil {
				return err
			}
			var found []string
			if err := tx.SelectContext(ctx, &found, tx.Rebind(query), args...); err != nil {
				return err
			}
			for _, user := range found {
				buyers[buyer{sale, user}] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return buyers, nil
}

// insertOrders stores new orders, which are in the order of their ids, as they were judged.
func (s *Store) insertOrders(ctx context.Context, tx *sqlx.Tx, fresh []queue.Order, judged map[string]Written) error {
	rows := make([][]any, len(fresh))
	var rejected []queue.Order
	for i, order := range fresh {
		w := judged[order.ID]
		o := w.Order
		rows[i] = []any{o.ID, o.Sale, o.Item, o.User, o.Qty, o.RequestID, string(o.Status), live(o.Status), w.Reason,
			o.CreatedAt, o.PayBy, o.PaidAt, now()}
		if o.Status == queue.Rejected {
			rejected = append(rejected, o)
		}
	}
	if err := s.insert(ctx, tx, "orders (id, sale_id, item_id, user_id, qty, request_id, status, live, reason, "+
		"created_at, expires_at, paid_at, updated_at)", rows); err != nil {
		return err
	}
	return s.insertMoves(ctx, tx, moveReject, rejected)
}

// sell counts units as sold. Where another transaction has sold them since shelf looked, it is errOvertaken.
func sell(ctx context.Context, tx *sqlx.Tx, sold map[product]int64) error {
	for _, p := range inOrder(sold) {
		updated, err := affected(tx.ExecContext(ctx, tx.Rebind(
			"UPDATE items SET sold = sold + ?, version = version + 1 WHERE sale_id = ? AND item_id = ? AND sold + ? <= total"),
			sold[p], p.sale, p.item, sold[p]))
		if err != nil {
			return err
		}
		if updated == 0 {
			return errOvertaken
		}
	}
	return nil
}

// insert stores rows with as few statements as the database allows. into names the table and its columns.
func (s *Store) insert(ctx context.Context, tx *sqlx.Tx, into string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	columns := len(rows[0])
	values := "(?" + strings.Repeat(", ?", columns-1) + ")"
	return inChunks(rows, s.dialect.maxParams/columns, func(rows [][]any) error {
		query := "INSERT INTO " + into + " VALUES " + values + strings.Repeat(", "+values, len(rows)-1)
		_, err := tx.ExecContext(ctx, tx.Rebind(query), slices.Concat(rows...)...)
		return err
	})
}

// inChunks calls fn with parts of list, in order, each at most size long.
func inChunks[T any](list []T, size int, fn func([]T) error) error {
	for part := range slices.Chunk(list, size) {
		if err := fn(part); err != nil {
			return err
		}
	}
	return nil
}
