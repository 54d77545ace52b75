package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// bearer is the admin token, as its hash: comparing hashes takes the same time whatever was sent, its length included.
type bearer struct {
	set  bool
	hash [sha256.Size]byte
}

func newBearer(token string) bearer {
	return bearer{set: token != "", hash: sha256.Sum256([]byte(token))}
}

func (b bearer) is(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return b.set && subtle.ConstantTimeCompare(hash[:], b.hash[:]) == 1
}

// adminOnly lets through whoever has the admin token and asks for nothing in the query but those parameters.
func (s *Server) adminOnly(params ...string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			admin := s.current().admin
			if !admin.set {
				return &queue.Error{
					Code:    queue.Forbidden,
					Message: "the admin API is off: set --admin-token to turn it on",
				}
			}
			token, ok := bearerOf(c.Request().Header.Get(echo.HeaderAuthorization))
			switch {
			case !ok || token == "":
				return unauthenticated("this needs the admin token as a bearer token")
			case !admin.is(token):
				return s.wrongToken(c)
			}
			if err := onlyParams(c.Request().URL.RawQuery, params); err != nil {
				return err
			}
			return next(c)
		}
	}
}

// wrongToken answers somebody with another token, and says so in the log.
func (s *Server) wrongToken(c *echo.Context) error {
	now := s.now()
	wait, limit, ok := s.attempts.fail(addressOf(c), now)
	if !ok {
		s.counted.refused("admin")
		return &queue.Error{
			Code: queue.Limited, RetryAfter: wait, Limit: limit, Reset: now.Add(wait),
			Message: "too many wrong admin tokens; the right one is still taken",
		}
	}
	s.log.Warn("a wrong admin token", "address", c.RealIP(), "path", c.Request().URL.Path)
	return unauthenticated("this is not the admin token")
}

// onlyParams refuses a query with anything else in it, or with something twice. What is left out in silence may be the
// filter, or the word that a change is only to be tried.
func onlyParams(query string, params []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return &queue.Error{Code: queue.BadRequest, Message: "the query of this address cannot be read"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(params, name) && len(params) == 0:
			return invalid("%q cannot be asked here: this takes no parameters", clip(name))
		case !slices.Contains(params, name):
			return invalid("%q cannot be asked here, only %s", clip(name), strings.Join(params, ", "))
		case len(values[name]) > 1:
			return invalid("%s is there %d times", name, len(values[name]))
		}
	}
	return nil
}

// adminView is a sale as its operator sees it: the settings as in a sale file, and what is going on. Live figures are
// absent where this node does not have the sale.
type adminView struct {
	ID       string           `json:"id"`
	Title    wireText         `json:"title,omitempty"`
	Items    []adminItem      `json:"items"`
	Currency string           `json:"currency,omitempty"`
	OpensAt  time.Time        `json:"opens_at"`
	ClosesAt time.Time        `json:"closes_at"`
	Lobby    queue.Duration   `json:"lobby"`
	Limit    int64            `json:"limit"`
	Line     queue.Line       `json:"line"`
	Hold     queue.Duration   `json:"hold"`
	Access   queue.Access     `json:"access,omitzero"` // of the codes, only how many there are
	State    queue.State      `json:"state,omitempty"`
	Stock    queue.StockState `json:"stock,omitempty"`
	Waiting  *int64           `json:"waiting,omitempty"`
	Turns    *int64           `json:"turns,omitempty"`
	Served   *int64           `json:"served,omitempty"` // the cursor
	Issued   *int64           `json:"issued,omitempty"` // the last number given
	Epoch    *int64           `json:"epoch,omitempty"`
	Rate     *float64         `json:"rate,omitempty"`     // turns given a second, as seen lately
	Archived *queue.Archive   `json:"archived,omitempty"` // absent = it is not
}

// adminItem is an item with its total and what is left of it.
type adminItem struct {
	ID    string   `json:"id"`
	Title wireText `json:"title,omitempty"`
	Stock int64    `json:"stock"` // in total
	Price int64    `json:"price,omitempty"`
	Left  *int64   `json:"left,omitempty"`
}

// viewForAdmin joins settings with the newest snapshot. state, unless it is "", is known better than by the snapshot.
func (s *Server) viewForAdmin(sale queue.Sale, state queue.State) adminView {
	view := adminView{
		ID:       sale.ID,
		Title:    wireText(sale.Title),
		Items:    make([]adminItem, len(sale.Items)),
		Currency: sale.Currency,
		OpensAt:  sale.OpensAt,
		ClosesAt: sale.ClosesAt,
		Lobby:    sale.Lobby,
		Limit:    sale.Limit,
		Line:     sale.Line,
		Hold:     sale.Hold,
		Access:   sale.Hidden().Access,
		State:    state,
	}
	snap := s.opts.Snapshots.Snapshot(sale.ID)
	for i, item := range sale.Items {
		view.Items[i] = adminItem{ID: item.ID, Title: wireText(item.Title), Stock: item.Stock, Price: item.Price}
		if snap == nil {
			continue
		}
		if left, ok := snap.Items[item.ID]; ok {
			view.Items[i].Left = &left
		}
	}
	if snap == nil {
		view.State = cmp.Or(view.State, stateAt(sale, s.now()))
		return view
	}
	view.State = cmp.Or(view.State, snap.Told())
	view.Stock = snap.Stock
	waiting := snap.Waiting()
	view.Waiting, view.Turns = &waiting, &snap.Turns
	view.Served, view.Issued = &snap.Served, &snap.Issued
	view.Epoch, view.Rate = &snap.Epoch, &snap.Rate
	return view
}

// stateAt is the state that a sale's times alone give, for a sale that this node has not read yet.
func stateAt(sale queue.Sale, now time.Time) queue.State {
	switch {
	case !now.Before(sale.ClosesAt):
		return queue.Closed
	case !now.Before(sale.OpensAt):
		return queue.Open
	case sale.Line.Order != queue.Off && (sale.Lobby == 0 || !now.Before(sale.OpensAt.Add(-time.Duration(sale.Lobby)))):
		return queue.Lobby
	}
	return queue.Scheduled
}

// adminSales is GET /admin/sales: those that are not archived, or with ?archived=true the others.
func (s *Server) adminSales(c *echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	archived, err := boolParam(c, "archived")
	if err != nil {
		return err
	}
	if archived {
		return s.archivedSales(ctx, c)
	}
	incomplete := ""
	sales, err := s.opts.Sales.Sales(ctx)
	if err != nil {
		// What is running is in Redis, and whoever runs it wants to see it now more than ever.
		if sales = s.salesInRedis(); len(sales) == 0 {
			return err
		}
		s.logFailure(c, err)
		incomplete = "the database does not give its sales: these are those that Redis knows, and there may be others"
	}
	views := make([]adminView, len(sales))
	for i, sale := range sales {
		views[i] = s.viewForAdmin(sale, "")
	}
	slices.SortFunc(views, func(a, b adminView) int { return cmp.Compare(a.ID, b.ID) })
	return c.JSON(http.StatusOK, struct {
		Sales      []adminView `json:"sales"`
		Incomplete string      `json:"incomplete,omitempty"` // why there may be others
	}{views, incomplete})
}

// salesInRedis are the settings of the sales that this node follows in Redis. It asks nobody.
func (s *Server) salesInRedis() []queue.Sale {
	var sales []queue.Sale
	for _, snap := range s.opts.Snapshots.All() {
		sales = append(sales, *snap.Sale)
	}
	return sales
}

// adminSale is GET /admin/sales/{sale}.
func (s *Server) adminSale(c *echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readTimeout)
	defer cancel()
	id := c.Param("sale")
	if !queue.ValidID(id) {
		return noSuchSale(id)
	}
	sale, err := s.opts.Sales.Sale(ctx, id)
	if err != nil {
		return err
	}
	archive, err := s.opts.Sales.Archive(ctx, id)
	if err != nil {
		return err
	}
	if archive != nil {
		return c.JSON(http.StatusOK, s.viewOfArchived(sale, archive))
	}
	// A sale that was just applied is read first, so that its figures are there. Without Redis the settings still are.
	_, _ = s.snapshot(ctx, id)
	return c.JSON(http.StatusOK, s.viewForAdmin(sale, ""))
}

// auditSale is GET /admin/sales/{sale}/audit. It reads every order of the sale.
func (s *Server) auditSale(c *echo.Context) error {
	id := c.Param("sale")
	switch {
	case !queue.ValidID(id):
		return noSuchSale(id)
	case s.opts.Auditor == nil:
		return &queue.Error{Code: queue.Unavailable, Message: "this node has no database to audit"}
	}
	audit, err := s.opts.Auditor.Audit(c.Request().Context(), id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, audit)
}
