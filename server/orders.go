package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// readTimeout bounds one reading of the database: a database that does not answer must not hold requests without end.
const readTimeout = 5 * time.Second

// orderView is an order as its owner sees it. Times are ms since the epoch.
type orderView struct {
	ID        string            `json:"id"`
	Sale      string            `json:"sale"`
	Item      string            `json:"item"`
	Qty       int64             `json:"qty"`
	Status    queue.OrderStatus `json:"status"`
	CreatedAt int64             `json:"created_at,omitempty"`
	PayBy     int64             `json:"pay_by,omitempty"` // absent = the order needs no payment
	PaidAt    int64             `json:"paid_at,omitempty"`
}

func viewOfOrder(o queue.Order) orderView {
	return orderView{
		ID:        o.ID,
		Sale:      o.Sale,
		Item:      o.Item,
		Qty:       o.Qty,
		Status:    o.Status,
		CreatedAt: o.CreatedAt,
		PayBy:     o.PayBy,
		PaidAt:    o.PaidAt,
	}
}

// listOrders is GET /orders: the caller's orders, the newest first, in one sale with ?sale=.
func (s *Server) listOrders(c *echo.Context) error {
	who, err := s.caller(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	sale := c.QueryParam("sale")
	if sale != "" {
		if err := s.anySale(ctx, sale); err != nil {
			return err
		}
	}
	// Marks first: an order whose row is written in between is then found twice, and not never.
	marked, err := s.marked(ctx, who.User, sale)
	if err != nil {
		return err
	}
	orders, err := s.opts.Orders.OrdersOf(ctx, who.User, sale)
	if err != nil {
		return err
	}
	views := make([]orderView, 0, len(marked)+len(orders))
	for _, order := range marked {
		if !slices.ContainsFunc(orders, func(row queue.Order) bool { return row.ID == order.ID }) {
			views = append(views, viewOfOrder(order))
		}
	}
	for _, order := range orders {
		views = append(views, viewOfOrder(order))
	}
	slices.SortStableFunc(views, func(a, b orderView) int { return int(min(max(b.CreatedAt-a.CreatedAt, -1), 1)) })
	return c.JSON(http.StatusOK, struct {
		Orders []orderView `json:"orders"`
	}{views})
}

// showOrder is GET /orders/{order}. Somebody else's order does not exist. ?sale= says where to look for an order which
// has no row yet; without it all sales are searched.
func (s *Server) showOrder(c *echo.Context) error {
	who, err := s.caller(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	order, err := s.orderOf(ctx, who.User, c.Param("order"), c.QueryParam("sale"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, viewOfOrder(order))
}

// orderOf finds an order of a user by its row or, before that exists, by its mark.
func (s *Server) orderOf(ctx context.Context, user, id, sale string) (queue.Order, error) {
	missing := &queue.Error{Code: queue.NoSuchOrder, Message: "you have no such order"}
	if uuid.Validate(id) != nil || len(id) != 36 { // the one form that ids have, of those that parse
		return queue.Order{}, missing
	}
	order, err := s.opts.Orders.Order(ctx, id)
	if err == nil {
		if order.User != user {
			return queue.Order{}, missing
		}
		return order, nil
	}
	if queue.CodeOf(err) != queue.NoSuchOrder {
		return queue.Order{}, err
	}
	if sale != "" {
		if err := s.anySale(ctx, sale); err != nil {
			return queue.Order{}, err
		}
	}
	marked, err := s.marked(ctx, user, sale)
	if err != nil {
		return queue.Order{}, err
	}
	for _, order := range marked {
		if order.ID == id {
			return order, nil
		}
	}
	// The row may have been written, and its order released, between the two looks.
	order, err = s.opts.Orders.Order(ctx, id)
	if queue.CodeOf(err) == queue.NoSuchOrder || (err == nil && order.User != user) {
		return queue.Order{}, missing
	}
	return order, err
}

// anySale is nil for a sale that this node, Redis or the database knows: orders outlive their sale's keys in Redis.
func (s *Server) anySale(ctx context.Context, sale string) error {
	_, err := s.settings(ctx, sale)
	if queue.CodeOf(err) == queue.NoSuchSale && queue.ValidID(sale) {
		_, err = s.opts.Sales.Sale(ctx, sale)
	}
	return err
}

// marked are the live orders that Redis has of a user, in one sale or, when sale is "", in all that this node knows and
// in which something can have been grabbed. A user has at most one in each.
func (s *Server) marked(ctx context.Context, user, sale string) ([]queue.Order, error) {
	var sales []string
	if sale != "" {
		if s.opts.Snapshots.Snapshot(sale) != nil {
			sales = append(sales, sale)
		}
	} else {
		for _, snap := range s.opts.Snapshots.All() {
			if snap != nil && snap.State != queue.Scheduled && snap.State != queue.Lobby {
				sales = append(sales, snap.Sale.ID)
			}
		}
	}
	var orders []queue.Order
	for _, id := range sales {
		seat, err := s.line.Look(ctx, id, user)
		if queue.IsOver(err) {
			continue // every order in it has its row
		}
		if err != nil {
			return nil, fmt.Errorf("look for an order in sale %s: %w", id, err)
		}
		if seat.Order != nil {
			orders = append(orders, *seat.Order)
		}
	}
	return orders, nil
}
