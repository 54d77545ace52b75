package server

import (
	"context"
	"fmt"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// liveEvery is how often an operator who watches a sale gets a frame.
const liveEvery = time.Second

// watchSale is GET /admin/sales/{sale}/live: Server-Sent Events, a frame at once and then one a second, until the client
// goes, the node drains or the token is not that of operators any more. Whatever is down meanwhile, the frames go on.
func (s *Server) watchSale(c *echo.Context) error {
	over, ok := s.streams.begin()
	if !ok {
		return &queue.Error{Code: queue.Unavailable, Message: "this node is about to end; ask again, for another one", RetryAfter: time.Second}
	}
	ctx, id := c.Request().Context(), c.Param("sale")
	if err := s.exists(ctx, id); err != nil {
		return err
	}
	token, _ := bearerOf(c.Request().Header.Get(echo.HeaderAuthorization)) // which adminOnly has seen
	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // nginx would collect frames
	stream := newStream(c)
	ticker := time.NewTicker(liveEvery)
	defer ticker.Stop()
	for {
		// Who does not take a frame has gone, which is no failure.
		if _, err := fmt.Fprintf(stream, "data: %s\n\n", encode(s.liveFrame(ctx, id))); err != nil {
			return nil
		}
		if err := stream.flush(); err != nil {
			return nil
		}
		select {
		case <-ticker.C:
			if !s.current().admin.is(token) {
				return nil
			}
		case <-over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// exists is nil for a sale that this node, the database or Redis has. Either of the two may be down.
func (s *Server) exists(ctx context.Context, id string) error {
	if !queue.ValidID(id) {
		return noSuchSale(id)
	}
	if s.opts.Snapshots.Snapshot(id) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	_, stored := s.opts.Sales.Sale(ctx, id)
	if stored == nil {
		return nil
	}
	_, err := s.line.Sale(ctx, id)
	if queue.CodeOf(err) == queue.NoSuchSale {
		return stored // "no such sale", or why that is not known
	}
	return err
}
