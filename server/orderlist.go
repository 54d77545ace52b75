package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// maxSearch is how long what is searched for may be, in bytes: as long as the longest user id.
const maxSearch = 128

// adminOrder is an order as an operator sees it. Times are ms since the epoch.
type adminOrder struct {
	ID        string            `json:"id"`
	Item      string            `json:"item"`
	User      string            `json:"user"`
	Qty       int64             `json:"qty"`
	Status    queue.OrderStatus `json:"status"`
	CreatedAt int64             `json:"created_at"`
	PayBy     int64             `json:"pay_by,omitempty"` // absent = the order needs no payment
	PaidAt    int64             `json:"paid_at,omitempty"`
}

// findOrders is GET /admin/sales/{sale}/orders: orders that have a row, the newest first.
func (s *Server) findOrders(c *echo.Context) error {
	filter, err := orderFilter(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	if err := s.storedSale(ctx, filter.Sale); err != nil {
		return err
	}
	limit := filter.Limit
	filter.Limit++ // to know whether there are more
	orders, err := s.opts.Orders.FindOrders(ctx, filter)
	if err != nil {
		return err
	}
	page := struct {
		Orders []adminOrder `json:"orders"`
		Next   string       `json:"next"` // the before of the next page; "" = there is none
	}{Orders: []adminOrder{}}
	if len(orders) > limit {
		orders, page.Next = orders[:limit], orders[limit-1].ID
	}
	for _, o := range orders {
		page.Orders = append(page.Orders, adminOrder{
			ID: o.ID, Item: o.Item, User: o.User, Qty: o.Qty, Status: o.Status, CreatedAt: o.CreatedAt, PayBy: o.PayBy, PaidAt: o.PaidAt,
		})
	}
	return c.JSON(http.StatusOK, page)
}

// orderFilter reads what is asked for, and refuses what cannot be.
func orderFilter(c *echo.Context) (queue.OrderFilter, error) {
	f := queue.OrderFilter{
		Sale: c.Param("sale"), Begins: c.QueryParam("q"), Status: queue.OrderStatus(c.QueryParam("status")), Before: c.QueryParam("before"),
	}
	if len(f.Begins) > maxSearch || !utf8.ValidString(f.Begins) || strings.ContainsFunc(f.Begins, unicode.IsControl) {
		return f, invalid("q must be the beginning of an order's id or of a user's: at most %d bytes of text", maxSearch)
	}
	statuses := []queue.OrderStatus{queue.Reserved, queue.Confirmed, queue.Paid, queue.Cancelled, queue.Expired, queue.Rejected}
	if f.Status != "" && !slices.Contains(statuses, f.Status) {
		return f, invalid("status must be one of %s, not %q", joined(statuses), clip(string(f.Status)))
	}
	if f.Before != "" && (uuid.Validate(f.Before) != nil || len(f.Before) != 36) {
		return f, invalid("before must be the next of the page before, the id of an order, not %q", clip(f.Before))
	}
	var err error
	f.Limit, err = pageLimit(c)
	return f, err
}

func joined(statuses []queue.OrderStatus) string {
	words := make([]string, len(statuses))
	for i, status := range statuses {
		words[i] = string(status)
	}
	return strings.Join(words, ", ")
}
