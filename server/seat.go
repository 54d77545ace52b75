package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
	"sluice/trace"
)

// A tick comes within some 20 ms of a kick; freshTimeout is when one is not to be expected any more.
const (
	freshInterval = 10 * time.Millisecond
	freshTimeout  = 2 * time.Second
)

// pollSlowest is how seldom somebody without a socket asks, at most.
const pollSlowest = 10 * time.Second

// seatRequest is the optional body of POST …/seat.
type seatRequest struct {
	Seat string `json:"seat"` // a seat token: ask for that seat, and for no new one

	// What a sale may ask for; clients may send them to any.
	Code      string `json:"code"`
	Challenge string `json:"challenge"`
}

// joinSeat is POST /sales/{sale}/seat: join, or return the seat already held.
func (s *Server) joinSeat(c *echo.Context) error {
	ctx, sale := c.Request().Context(), c.Param("sale")
	who, err := s.current().identities.Request(c.Request())
	if err != nil {
		return err
	}
	var body seatRequest
	if err := readJSON(c, &body); err != nil {
		return err
	}
	req := queue.JoinRequest{Sale: sale, User: who.User, Address: addressOf(c), Poll: 2 * pollSlowest, Peer: clientOf(c), Code: codeOf(body.Code)}
	if body.Seat != "" {
		held, err := s.current().identities.ParseSeat(body.Seat)
		if err != nil || held.Sale != sale || held.User != who.User {
			return badRequest("the seat token is not of this user in this sale; leave it out to join anew")
		}
		req.Resume, req.Epoch, req.Code = held.Ticket, held.Epoch, held.Code
	}
	// Before anything is done for a sale it must be one; and a seat that could not be described is not taken.
	snap, err := s.snapshot(ctx, sale)
	if err != nil {
		return err
	}
	req.Leaf = s.leaf(snap.Sale, who.User)
	span := s.opts.Tracer.Begin(trace.Join)
	span.Set(trace.Sale, sale)
	req.Trace = span.Context()
	seat, err := s.join(ctx, req, snap.Sale, body.Challenge)
	span.End(string(queue.CodeOf(err)))
	if err != nil {
		s.countLimited(err)
		return fmt.Errorf("join sale %s: %w", sale, err)
	}
	return s.answerSeat(c, sale, seat)
}

// showSeat is GET /sales/{sale}/seat: the state of the caller now.
func (s *Server) showSeat(c *echo.Context) error {
	ctx, sale := c.Request().Context(), c.Param("sale")
	who, err := s.current().identities.Request(c.Request())
	if err != nil {
		return err
	}
	if _, err := s.snapshot(ctx, sale); err != nil {
		return err
	}
	seat, err := s.line.Join(ctx, queue.JoinRequest{
		Sale: sale, User: who.User, Address: addressOf(c), Resume: queue.ResumeAny, Poll: 2 * pollSlowest,
	})
	if err != nil {
		s.countLimited(err)
		return fmt.Errorf("look at a seat of sale %s: %w", sale, err)
	}
	return s.answerSeat(c, sale, seat)
}

// leaveSeat is DELETE /sales/{sale}/seat. Leaving twice is as good as once.
func (s *Server) leaveSeat(c *echo.Context) error {
	ctx, sale := c.Request().Context(), c.Param("sale")
	who, err := s.caller(c)
	if err != nil {
		return err
	}
	if _, err := s.settings(ctx, sale); err != nil {
		return err
	}
	seat, err := s.line.Look(ctx, sale, who.User)
	if err != nil {
		return fmt.Errorf("look at a seat of sale %s: %w", sale, err)
	}
	// Only this very seat is left: a repetition that arrives late must not end one taken since.
	if seat.Ticket > 0 {
		if err := s.line.Leave(ctx, sale, who.User, seat.Ticket); err != nil {
			return fmt.Errorf("leave sale %s: %w", sale, err)
		}
	}
	return c.NoContent(http.StatusNoContent)
}

// answerSeat writes the state object: the newest state frame, with the seat token and when to ask again.
func (s *Server) answerSeat(c *echo.Context, sale string, seat queue.Seat) error {
	ctx := c.Request().Context()
	showAllowance(c, seat.Allowance)
	snap, err := s.snapshotAfter(ctx, sale, seat.At)
	if err != nil {
		return err
	}
	if seat.Order != nil {
		order := s.presentOrder(ctx, *seat.Order)
		seat.Order = &order
	}
	body := s.passes.stateFrame(snap, seat).Bytes()
	if len(body) < 2 || body[len(body)-1] != '}' {
		return errors.New("write the state of a seat: it is no object")
	}
	body = body[:len(body)-1]
	if seat.Ticket > 0 {
		token, err := s.current().identities.MintSeat(SeatToken{Sale: sale, User: seat.User, Ticket: seat.Ticket, Epoch: seat.Epoch, Code: seat.Code})
		if err != nil {
			return err
		}
		body = append(append(append(body, `,"seat":"`...), token...), '"') // base64url and a point: nothing to escape
	}
	poll := pollAfter(snap, seat)
	if seat.Status == queue.Waiting || seat.Status == queue.Turn {
		// Somebody of the seat is there until the answer after the next one is missing.
		if err := s.line.Tell(ctx, sale, []queue.Presence{{Ticket: seat.Ticket, Poll: 2 * poll}}); err != nil {
			return fmt.Errorf("note a poll of sale %s: %w", sale, err)
		}
	}
	body = append(body, `,"poll_after_ms":`...)
	body = strconv.AppendInt(body, poll.Milliseconds(), 10)
	body = append(body, '}')
	return c.JSONBlob(http.StatusOK, body)
}

// snapshotAfter waits for a snapshot of a tick that began after the moment at, by Redis time. The one at hand may be
// older than what the caller was told by another node, and then a place in the line would seem to go back.
func (s *Server) snapshotAfter(ctx context.Context, sale string, at int64) (*queue.Snapshot, error) {
	snap, err := s.snapshot(ctx, sale)
	if err != nil || snap.At > at {
		return snap, err
	}
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	again := time.NewTicker(freshInterval)
	defer again.Stop()
	for s.opts.Snapshots.Kick(sale); ; {
		select {
		case <-ctx.Done():
			return nil, &queue.Error{
				Code: queue.Unavailable, Message: "the line cannot be read just now; your place is kept, try again in a moment",
				Err: ctx.Err(),
			}
		case <-again.C:
		}
		if snap, err = s.snapshot(ctx, sale); err != nil || snap.At > at {
			return snap, err
		}
	}
}

// pollAfter is when it is worth asking again: the further from the head, the later. Who has nothing to wait for still
// gets an answer, since a client may ask for the state of a sale that has not begun.
func pollAfter(snap *queue.Snapshot, seat queue.Seat) time.Duration {
	switch seat.Status {
	case queue.Turn, queue.Buyer:
		return time.Second
	case queue.NoSeat, queue.Missed, queue.Absent:
		return pollSlowest
	}
	if snap.State == queue.Lobby || snap.State == queue.Scheduled {
		until := time.Duration(snap.Sale.OpensAt.UnixMilli()-snap.At) * time.Millisecond
		return min(max(until/4, time.Second), pollSlowest).Round(time.Millisecond)
	}
	switch ahead := snap.Ahead(seat.Number) + snap.RecalledBefore(seat.Number); {
	case ahead <= 100:
		return time.Second
	case ahead <= 1000:
		return 2 * time.Second
	case ahead <= 10_000:
		return 5 * time.Second
	}
	return pollSlowest
}
