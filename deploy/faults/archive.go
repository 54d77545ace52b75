package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// archive ends the sale and has it archived by processes that die over it, and checks that nothing of it was lost, that nothing
// is left of it in Redis, and that nothing brings it back.
func (c *schedule) archive(ctx context.Context) error {
	if err := c.operate(ctx, http.MethodPost, "/close", ""); err != nil {
		return err
	}
	before, err := c.rows(ctx)
	if err != nil {
		return err
	}
	c.fleet.rouse()
	for range 3 { // whoever has heard that it is done asks again, until all have died who are to
		if err := c.operate(ctx, http.MethodPost, "/archive", ""); err != nil {
			return err
		}
	}
	c.archived = true
	if err := c.gone(ctx, settling); err != nil {
		return err
	}
	if _, _, err := c.verify(ctx); err != nil {
		return fmt.Errorf("after it was archived: %w", err)
	}
	if after, err := c.rows(ctx); err != nil || !maps.Equal(before, after) {
		return errors.Join(errors.New("the orders changed while the sale was archived"), err)
	}
	if err := c.stillKnown(ctx, before); err != nil {
		return err
	}
	if c.rng.IntN(2) == 0 { // its mark is lost as well
		if err := c.services.redis.FlushAll(ctx).Err(); err != nil {
			return err
		}
		wait(ctx, restored)
	}
	if c.purges {
		if err := c.purge(ctx, before); err != nil {
			return err
		}
	}
	return c.gone(ctx, settling)
}

// restored is longer than it takes until somebody brings back a sale that Redis has lost.
const restored = 1500 * time.Millisecond

// row is what must stay of an order.
type row struct {
	user, status string
	qty          int
}

// rows are the orders of the sale, by id.
func (c *schedule) rows(ctx context.Context) (map[string]row, error) {
	found, err := c.services.db.QueryContext(ctx, "SELECT id, user_id, status, qty FROM "+c.name+".orders")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	rows := map[string]row{}
	for found.Next() {
		var id string
		var order row
		if err := found.Scan(&id, &order.user, &order.status, &order.qty); err != nil {
			return nil, err
		}
		rows[id] = order
	}
	return rows, found.Err()
}

// gone waits until Redis has nothing of the sale but the mark that keeps it out.
func (c *schedule) gone(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	prefix := "sluice:{" + c.shoppers.sale + "}:"
	for {
		left, err := c.services.redis.Keys(ctx, prefix+"*").Result()
		left = slices.DeleteFunc(left, func(key string) bool { return key == prefix+"archived" })
		listed := false
		if err == nil {
			listed, err = c.services.redis.SIsMember(ctx, "sluice:sales", c.shoppers.sale).Result()
		}
		if err == nil && len(left) == 0 && !listed {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s after it was archived Redis has of the sale: %v, listed: %v, %w", within, left, listed, err)
		}
		wait(ctx, 100*time.Millisecond)
	}
}

// stillKnown asks for some of the orders, and for one more unit.
func (c *schedule) stillKnown(ctx context.Context, orders map[string]row) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ids := slices.Sorted(maps.Keys(orders))
	for _, id := range ids[:min(len(ids), 5)] {
		order := orders[id]
		if a := c.shoppers.insist(ctx, c.rng, order.user, http.MethodGet, "/orders/"+id, nil); a == nil || a.Status != any(order.status) {
			return fmt.Errorf("the order %s of %s is %s, and after the archiving answered with %+v", id, order.user, order.status, a)
		}
	}
	a := c.shoppers.insist(ctx, c.rng, "latecomer", http.MethodPost, "/sales/"+c.shoppers.sale+"/grab", struct{}{})
	if a == nil || a.Result != "not_open" {
		return fmt.Errorf("a grab in the archived sale was answered with %+v", a)
	}
	return nil
}

// purge has the users of the orders replaced, and checks that the books still add up: one user became one pseudonym.
func (c *schedule) purge(ctx context.Context, before map[string]row) error {
	if err := c.operate(ctx, http.MethodPost, "/archive?purge_users=true", ""); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, purging)
	defer cancel()
	for left := 1; left > 0; {
		if err := c.services.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+c.name+".archives WHERE purged_at = 0").Scan(&left); err != nil {
			return fmt.Errorf("the users were not purged within %s: %w", purging, err)
		}
		wait(ctx, 100*time.Millisecond)
	}
	after, err := c.rows(ctx)
	if err != nil {
		return err
	}
	if len(after) != len(before) {
		return fmt.Errorf("%d orders became %d when their users were purged", len(before), len(after))
	}
	names := map[string]string{}
	for id, order := range after {
		was := before[id]
		if !strings.HasPrefix(order.user, "purged-") || order.status != was.status || order.qty != was.qty {
			return fmt.Errorf("the order %s was %+v, and is %+v after its user was purged", id, was, order)
		}
		if name, known := names[was.user]; known && name != order.user {
			return fmt.Errorf("%s became %s and %s", was.user, name, order.user)
		}
		names[was.user] = order.user
	}
	audit, err := c.audit(ctx)
	if err != nil {
		return err
	}
	if !audit.Balanced {
		return errors.New("the audit does not hold after the users were purged: " + strings.Join(audit.Problems, "; "))
	}
	return nil
}

// purging is how long it may take until the users are purged: the archivist that dies over it keeps the others away for a while.
const purging = 90 * time.Second
