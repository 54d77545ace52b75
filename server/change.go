package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// How a change of a sale reaches Redis and the database
//
// Redis decides what may change while a sale runs, and what a grab may take; the database refuses an order that would
// bring what is sold above its total, and is where Redis is rebuilt from. So at every moment the total in the database
// must be at least the one in Redis: then every grab that Redis grants finds room for its row.
//
//  1. raise:  the database gets every total that grows and every item that is new. Its other settings stay.
//  2. apply:  Redis checks the change and makes it in one step. It refuses a total below what is taken.
//  3. settle: the database gets what Redis now has, which lowers what was lowered. In Redis all taken units fit under
//     the new total already, so those whose row is yet to come will fit in the database as well.
//
// A crash between two steps leaves the database with room to spare and Redis with the old or the new settings, both
// whole; applying the file again ends it. A refusal in step 2 is followed by step 3, which takes the raise back. A sale
// that Redis does not have, or has not put right yet, is rebuilt before step 2 from the orders that the database has of
// it, none for a new one: installing it as it is would put stock that is sold on sale again.
//
// Changes through one node wait for each other. Of changes through two nodes at once Redis orders step 2, and settle
// goes on until what it wrote is what Redis has, so both end with the later one in both places.

const (
	// changeTimeout bounds one change, the rebuilding of a sale from its orders included.
	changeTimeout = time.Minute
	// restorePage is how many orders are read at once to rebuild a sale.
	restorePage = 1000
	// settleRounds bounds how often settle follows changes that others make meanwhile.
	settleRounds = 5
)

// Change is an entry of the audit log.
type Change struct {
	At      int64  // ms since the epoch
	Who     string // whose token it was; there is one so far, "admin"
	Address string // from where
	Action  string // apply, open, pause, resume, close, recover, line, extend, stock, archive, purge
	Sale    string
	Before  *queue.Sale // nil = there was none
	After   *queue.Sale
}

// applySale is PUT /admin/sales/{sale}: a sale file, YAML or JSON.
func (s *Server) applySale(c *echo.Context) error {
	file, err := readSaleFile(c)
	if err != nil {
		return err
	}
	id := c.Param("sale")
	if file.ID() != id {
		return invalid("the file is of sale %q, the address of %q", file.ID(), clip(id))
	}
	switch dry := c.QueryParam("dry_run"); {
	case dry == "true":
		return s.dryRun(c, file)
	case dry != "false" && c.QueryParams().Has("dry_run"): // a mistyped one must change nothing either
		return invalid("dry_run must be true or false, not %q", clip(dry))
	}
	ctx, cancel := changeContext(c)
	defer cancel()
	s.changing.Lock()
	defer s.changing.Unlock()

	if err := s.notArchived(ctx, id); err != nil {
		return err
	}
	stored, err := found(s.opts.Sales.Sale(ctx, id))
	if err != nil {
		return err
	}
	before, err := found(s.line.Sale(ctx, id))
	if err != nil {
		return err
	}
	sale, err := file.Resolve(s.now(), cmp.Or(before, stored))
	if err != nil {
		return unfit(err)
	}
	if err := s.commit(ctx, &sale); err != nil {
		return err
	}
	after, err := s.apply(ctx, sale, stored, before)
	if err != nil {
		return err
	}
	s.record(c, "apply", id, cmp.Or(before, stored), &after)
	_, _ = s.snapshot(ctx, id) // for the figures of a new sale
	return c.JSON(http.StatusOK, s.viewForAdmin(after, ""))
}

// changeContext is for a change: once begun it is brought to its end, also when the operator's connection drops.
func changeContext(c *echo.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.Request().Context()), changeTimeout)
}

// readSaleFile reads and parses the body. What is wrong with it is Invalid, in the words of the parser, which name the
// line and the field.
func readSaleFile(c *echo.Context) (*queue.SaleFile, error) {
	if kind := c.Request().Header.Get(echo.HeaderContentType); kind != "" {
		media, _, err := mime.ParseMediaType(kind)
		if err != nil || !(strings.HasSuffix(media, "json") || strings.HasSuffix(media, "yaml") || media == echo.MIMETextPlain) {
			return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType,
				"send a sale file, with Content-Type: application/yaml or application/json")
		}
	}
	body, err := readBody(c, maxSaleFile)
	if err != nil {
		return nil, err
	}
	file, err := queue.ParseSale(body)
	if err != nil {
		return nil, unfit(err)
	}
	return file, nil
}

// unfit makes an error about a sale file one that its author can be told about.
func unfit(err error) error {
	var known *queue.Error
	if errors.As(err, &known) {
		return err
	}
	return invalid("%s", err)
}

// found makes "no such sale" a nil sale.
func found(sale queue.Sale, err error) (*queue.Sale, error) {
	if queue.CodeOf(err) == queue.NoSuchSale {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &sale, nil
}

// rebuild makes a sale ready in Redis that is missing there, or that is not put right after a loss.
func (s *Server) rebuild(ctx context.Context, sale queue.Sale) error {
	_, ready, err := s.line.Installed(ctx, sale.ID)
	if err != nil || ready {
		return err
	}
	reach, err := s.opts.Sales.Reach(ctx, sale.ID)
	if err != nil {
		return err
	}
	return s.line.Restore(ctx, sale, reach, func(yield func([]queue.Order) error) error {
		return s.opts.Sales.EachOrder(ctx, sale.ID, restorePage, yield)
	})
}

// apply is steps 1 to 3 above. stored and inRedis are the sale as each of them has it, nil where it does not.
func (s *Server) apply(ctx context.Context, sale queue.Sale, stored, inRedis *queue.Sale) (queue.Sale, error) {
	room, more := raised(sale, stored, inRedis)
	if more {
		if err := s.opts.Sales.SaveSale(ctx, room); err != nil {
			return queue.Sale{}, err
		}
	}
	if err := s.rebuild(ctx, room); err != nil {
		return queue.Sale{}, err
	}
	refused := s.line.Apply(ctx, sale)
	if refused != nil && queue.CodeOf(refused) == queue.Unavailable {
		return queue.Sale{}, refused // whether it was made is unknown; so room must stay
	}
	after, err := s.settle(ctx, sale.ID)
	if refused != nil {
		if err != nil {
			s.log.WarnContext(ctx, "the database keeps room for a change that was refused", "sale", sale.ID, "error", err)
		}
		return queue.Sale{}, refused
	}
	return after, err
}

// raised is what the database needs before Redis may have sale: the settings it has, with every total at least what it
// is in Redis and what it is to be. more says whether anything has to be saved for that.
func raised(sale queue.Sale, stored, inRedis *queue.Sale) (room queue.Sale, more bool) {
	room = *cmp.Or(stored, inRedis, &sale)
	room.Items = slices.Clone(room.Items)
	more = stored == nil
	for _, other := range []*queue.Sale{inRedis, &sale} {
		if other == nil {
			continue
		}
		for _, item := range other.Items {
			i := slices.IndexFunc(room.Items, func(kept queue.Item) bool { return kept.ID == item.ID })
			switch {
			case i < 0:
				room.Items, more = append(room.Items, item), true
			case item.Stock > room.Items[i].Stock:
				room.Items[i].Stock, more = item.Stock, true
			}
		}
	}
	return room, more
}

// settle saves what Redis has, until that is what was saved.
func (s *Server) settle(ctx context.Context, id string) (queue.Sale, error) {
	var saved queue.Sale
	for range settleRounds {
		sale, err := s.line.Sale(ctx, id)
		if err != nil {
			return queue.Sale{}, err
		}
		if same(sale, saved) {
			return sale, nil
		}
		if err := s.opts.Sales.SaveSale(ctx, sale); err != nil {
			return queue.Sale{}, err
		}
		saved = sale
	}
	return queue.Sale{}, &queue.Error{Code: queue.Conflict, Message: "the sale is being changed by somebody else; try again"}
}

// same says whether two sales have the same settings: whether they are written alike, which is what is stored of them.
func same(a, b queue.Sale) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// changeSale is POST /admin/sales/{sale}/{open|pause|resume|close}: Redis acts at once, by its own clock, and the
// database follows. Asking again ends what a crash left half done.
func (s *Server) changeSale(action string, becomes queue.State, act func(line, context.Context, string) (queue.Sale, error)) echo.HandlerFunc {
	return func(c *echo.Context) error {
		ctx, cancel := changeContext(c)
		defer cancel()
		s.changing.Lock()
		defer s.changing.Unlock()

		id := c.Param("sale")
		before, err := s.fromRedis(ctx, id)
		if err != nil {
			return err
		}
		after, refused := act(s.line, ctx, id)
		s.registry.Kick(id) // all who wait here are to know at once
		if refused != nil && queue.CodeOf(refused) != queue.Conflict {
			return refused
		}
		settled, err := s.settle(ctx, id)
		switch {
		case refused != nil:
			return refused // as when it has happened already; then it was good to settle
		case err == nil:
			after = settled
		case !same(before, after):
			return err
		default:
			// A pause is in no settings. It must be possible while the database is down, of all times.
			s.log.WarnContext(ctx, "the database could not follow", "action", action, "sale", id, "error", err)
		}
		s.record(c, action, id, &before, &after)
		return c.JSON(http.StatusOK, s.viewForAdmin(after, becomes))
	}
}

// recoverEvery is how often recoverSale looks whether it is done.
const recoverEvery = 50 * time.Millisecond

// recoverSale is POST /admin/sales/{sale}/recover: the sale is put right from its orders, as after a loss. It returns when
// it is granted again.
func (s *Server) recoverSale(c *echo.Context) error {
	ctx, cancel := changeContext(c)
	defer cancel()
	s.changing.Lock()
	defer s.changing.Unlock()
	id := c.Param("sale")
	sale, err := s.fromRedis(ctx, id)
	if err != nil {
		return err
	}
	if err := s.line.Recover(ctx, id); err != nil {
		return err
	}
	s.record(c, "recover", id, &sale, &sale)
	ticker := time.NewTicker(recoverEvery)
	defer ticker.Stop()
	for {
		if _, ready, err := s.line.Installed(ctx, id); err == nil && ready {
			break
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return &queue.Error{Code: queue.Unavailable, Message: "the sale is not put right yet; nothing is granted until it is", RetryAfter: time.Second}
		}
	}
	_, _ = s.snapshot(ctx, id)
	return c.JSON(http.StatusOK, s.viewForAdmin(sale, ""))
}

// record writes a change that was made to the log and the audit log. A failure there does not undo the change, so it is
// not told to the caller as one.
func (s *Server) record(c *echo.Context, action, sale string, before, after *queue.Sale) {
	ctx := context.WithoutCancel(c.Request().Context())
	hidden := func(sale *queue.Sale) *queue.Sale {
		if sale == nil {
			return nil
		}
		shown := sale.Hidden() // codes are secrets, and the log is for everybody who looks after sales
		return &shown
	}
	change := Change{
		At:      s.now().UnixMilli(),
		Who:     "admin",
		Address: c.RealIP(),
		Action:  action,
		Sale:    sale,
		Before:  hidden(before),
		After:   hidden(after),
	}
	attrs := []any{
		slog.String("action", action), slog.String("sale", sale), slog.String("address", change.Address),
		slog.String("request", c.Response().Header().Get(echo.HeaderXRequestID)),
	}
	s.log.InfoContext(ctx, "sale changed", attrs...)
	if s.opts.AuditLog == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := s.opts.AuditLog.Log(ctx, change); err != nil {
		s.log.ErrorContext(ctx, "a change is missing from the audit log", append(attrs, "error", err)...)
	}
}
