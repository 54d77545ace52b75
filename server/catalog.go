package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice/queue"
)

const (
	// catalogAge is how old the list of stored sales may be: asking for sales that do not exist costs the database one
	// reading in that time, however many ask.
	catalogAge = time.Second
	// catalogTimeout bounds that reading, for which others wait.
	catalogTimeout = 2 * time.Second
)

// catalog tells whether a sale that Redis does not have exists nevertheless. A Redis that lost its data must not make
// anybody believe that their sale was never there.
type catalog struct {
	store SaleStore
	now   func() time.Time

	mu       sync.Mutex
	at       time.Time
	ids      map[string]bool
	archives map[string]bool
}

func newCatalog(store SaleStore, now func() time.Time) *catalog {
	return &catalog{store: store, now: now}
}

// has says whether Redis ought to have the sale, because the database has it and it is not archived, as of a second ago at
// most. It may block on the database.
func (c *catalog) has(ctx context.Context, id string) (bool, error) {
	there, _, err := c.look(ctx, id)
	return there, err
}

// look says also whether the sale is archived.
func (c *catalog) look(ctx context.Context, id string) (there, archived bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || c.now().Sub(c.at) >= catalogAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), catalogTimeout) // others wait for it too
		defer cancel()
		archives, err := c.store.Archives(ctx)
		var sales []queue.Sale
		if err == nil { // after the archives: a sale that is archived in between is then in both, and in none never
			sales, err = c.store.Sales(ctx)
		}
		if err != nil {
			return false, false, fmt.Errorf("look for sale %s: %w", id, err)
		}
		c.archives = make(map[string]bool, len(archives))
		for _, archive := range archives {
			c.archives[archive.Sale] = true
		}
		c.ids = make(map[string]bool, len(sales))
		for _, sale := range sales {
			c.ids[sale.ID] = true
		}
		c.at = c.now()
	}
	return c.ids[id], c.archives[id], nil
}

// fromRedis are the settings of a sale as Redis has them: a *queue.Error NoSuchSale when there is no such sale, or none any more, and
// Unavailable when there is one and Redis has lost it.
func (s *Server) fromRedis(ctx context.Context, id string) (queue.Sale, error) {
	if !queue.ValidID(id) {
		return queue.Sale{}, noSuchSale(id)
	}
	sale, err := s.line.Sale(ctx, id)
	if queue.CodeOf(err) != queue.NoSuchSale || queue.IsOver(err) {
		return sale, err
	}
	lost, archived, broken := s.catalog.look(ctx, id)
	switch {
	case broken != nil:
		return queue.Sale{}, broken
	case archived:
		return queue.Sale{}, queue.ErrOver(id)
	case lost:
		return queue.Sale{}, &queue.Error{Code: queue.Unavailable, Message: "the sale is being put right; try again in a moment"}
	}
	return queue.Sale{}, err
}

// storedSale is nil for a sale that the database has.
func (s *Server) storedSale(ctx context.Context, id string) error {
	if !queue.ValidID(id) {
		return noSuchSale(id)
	}
	_, err := s.opts.Sales.Sale(ctx, id)
	return err
}
