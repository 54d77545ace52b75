package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// An archived sale is in no room and not in Redis. Its settings and orders are in the database, and what anybody asks about
// it is answered from there: it is closed, its orders are what they are, and there is no seat in it. A node may have its room
// for a moment longer; what that would ask of Redis is answered with queue.ErrOver, and then like everywhere else.

// notArchived is nil for a sale that may be changed. It asks the database, since a change must not bring a sale back.
func (s *Server) notArchived(ctx context.Context, id string) error {
	if !queue.ValidID(id) {
		return nil // whoever looks for it says so
	}
	archive, err := s.opts.Sales.Archive(ctx, id)
	if err == nil && archive != nil {
		err = queue.ErrArchived(id)
	}
	return err
}

// lastOf is the last that there is to know of an archived sale.
func (s *Server) lastOf(ctx context.Context, id string) (*queue.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sale, err := s.opts.Sales.Sale(ctx, id)
	if err != nil {
		return nil, err
	}
	sold, err := s.opts.Sales.Sold(ctx, id)
	if err != nil {
		return nil, err
	}
	snap := &queue.Snapshot{Sale: &sale, State: queue.Closed, Stock: queue.Gone, Items: map[string]int64{}}
	for _, item := range sale.Items {
		snap.Items[item.ID] = item.Stock - sold[item.ID]
		if snap.Items[item.ID] > 0 {
			snap.Stock = queue.Available
		}
	}
	return snap, nil
}

// grabLate is a grab in an archived sale. An answer already given still comes first, from the order that it made; everybody
// else hears that the sale is closed. Since it costs a reading of the database, it counts against the limits.
func (s *Server) grabLate(ctx context.Context, req queue.GrabRequest) (queue.Grabbed, error) {
	left, err := s.line.Allow(ctx, req.User, req.Address)
	if err != nil {
		s.countLimited(err)
		return queue.Grabbed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	orders, err := s.opts.Orders.OrdersOf(ctx, req.User, req.Sale)
	if err != nil {
		return queue.Grabbed{}, err
	}
	for _, order := range orders {
		if order.RequestID == req.RequestID {
			return queue.Grabbed{Result: queue.Success, Order: &order, Replay: true, Ended: !order.Status.Live(), Allowance: left}, nil
		}
	}
	for _, order := range orders {
		if order.Status.Live() {
			return queue.Grabbed{Result: queue.Already, Order: &order, Allowance: left}, nil
		}
	}
	return queue.Grabbed{Result: queue.NotOpen, State: queue.Closed, Allowance: left}, nil
}

// archiveSale is POST /admin/sales/{sale}/archive: a sale that is over is taken out of Redis, and with ?purge_users=true its
// orders lose their users, a while later.
func (s *Server) archiveSale(c *echo.Context) error {
	purge, err := boolParam(c, "purge_users")
	if err != nil {
		return err
	}
	id := c.Param("sale")
	switch {
	case !queue.ValidID(id):
		return noSuchSale(id)
	case s.opts.Archivist == nil:
		return &queue.Error{Code: queue.Unavailable, Message: "this node has no database to archive to"}
	}
	ctx, cancel := changeContext(c)
	defer cancel()
	s.changing.Lock()
	defer s.changing.Unlock()

	before, err := s.opts.Sales.Archive(ctx, id)
	if err != nil {
		return err
	}
	if err := s.opts.Archivist.Archive(ctx, id, purge); err != nil {
		return err
	}
	// What changed, once: whoever repeats this has changed nothing. The settings, which may name users, are those before.
	if before == nil || before.Done == 0 {
		s.record(c, "archive", id, nil, nil)
	}
	if purge && (before == nil || !before.Purge) {
		s.record(c, "purge", id, nil, nil)
	}
	s.opts.Snapshots.Kick(id) // so that this node does not list it any more
	sale, err := s.opts.Sales.Sale(ctx, id)
	if err != nil {
		return err
	}
	archive, err := s.opts.Sales.Archive(ctx, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.viewOfArchived(sale, archive))
}

// archivedSales is GET /admin/sales?archived=true.
func (s *Server) archivedSales(ctx context.Context, c *echo.Context) error {
	archives, err := s.opts.Sales.Archives(ctx)
	if err != nil {
		return err
	}
	views := make([]adminView, len(archives))
	for i := range archives {
		sale, err := s.opts.Sales.Sale(ctx, archives[i].Sale)
		if err != nil {
			return err
		}
		views[i] = s.viewOfArchived(sale, &archives[i])
	}
	return c.JSON(http.StatusOK, struct {
		Sales []adminView `json:"sales"`
	}{views})
}

// viewOfArchived is an archived sale as its operator sees it.
func (s *Server) viewOfArchived(sale queue.Sale, archive *queue.Archive) adminView {
	view := s.viewForAdmin(sale, queue.Closed)
	view.Archived = archive
	return view
}

// boolParam is a parameter that is true or false, false when it is not there.
func boolParam(c *echo.Context, name string) (bool, error) {
	switch value := c.QueryParam(name); {
	case value == "true":
		return true, nil
	case value != "false" && c.QueryParams().Has(name): // a mistyped one must change nothing
		return false, invalid("%s must be true or false, not %q", name, clip(value))
	}
	return false, nil
}
