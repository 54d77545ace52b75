package server

import (
	"cmp"
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// dryRun is PUT /admin/sales/{sale}?dry_run=true: it checks a file as applySale does, as far as that can be known without
// changing anything, and answers with the sale that would be.
func (s *Server) dryRun(c *echo.Context, file *queue.SaleFile) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	id := file.ID()
	if err := s.notArchived(ctx, id); err != nil {
		return err
	}
	stored, err := found(s.opts.Sales.Sale(ctx, id))
	if err != nil {
		return err
	}
	inRedis, err := found(s.line.Sale(ctx, id))
	if err != nil {
		return err
	}
	sale, err := file.Resolve(s.now(), cmp.Or(inRedis, stored))
	if err != nil {
		return unfit(err)
	}
	if err := s.committed(ctx, &sale); err != nil {
		return err
	}
	switch {
	case inRedis != nil:
		err = s.line.Check(ctx, sale)
	case stored != nil: // Redis has lost it, and applying would bring it back first
		var sold map[string]int64
		if sold, err = s.opts.Sales.Sold(ctx, id); err == nil {
			err = stored.MayBecome(&sale, s.now(), sold)
		}
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.viewIf(sale))
}

// committed notes the commitment of a lottery that has one already. Unlike commit it makes none.
func (s *Server) committed(ctx context.Context, sale *queue.Sale) error {
	sale.Commitment = ""
	if sale.Sorted() && s.opts.Draws == nil {
		return errNoDraws()
	}
	if sale.Line.Order != queue.Lottery {
		return nil
	}
	draw, there, err := s.opts.Draws.DrawOf(ctx, sale.ID)
	if err == nil && there {
		commitment := queue.Commitment(draw.Secret)
		sale.Commitment = hex.EncodeToString(commitment[:])
	}
	return err
}

// viewIf is the sale as its operator would see it with other settings.
func (s *Server) viewIf(sale queue.Sale) adminView {
	snap := s.opts.Snapshots.Snapshot(sale.ID)
	view := s.viewForAdmin(sale, stateIf(snap, sale, s.now()))
	if snap == nil {
		return view
	}
	for i := range view.Items {
		if before, ok := snap.Sale.Item(view.Items[i].ID); ok && view.Items[i].Left != nil {
			*view.Items[i].Left += view.Items[i].Stock - before.Stock
		}
	}
	return view
}

// stateIf is the state that a sale would have: the present one, unless the times say something else than before.
func stateIf(snap *queue.Snapshot, sale queue.Sale, now time.Time) queue.State {
	then := stateAt(sale, now)
	if snap != nil && stateAt(*snap.Sale, now) == then {
		return snap.Told()
	}
	return then
}
