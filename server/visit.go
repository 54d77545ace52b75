package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"sluice/hub"
	"sluice/queue"
	"sluice/trace"
)

// visit is a conversation over one socket: the hub calls it with what the shopper sent, one frame at a time.
type visit struct {
	server   *Server
	sale     string
	address  string
	peer     netip.Addr
	language lang
	caller   *caller // its connection; nil when that came through no gate
	refuse   refusal

	// Set by a hello that was accepted.
	user string
	room *room

	unheard string // who said a hello whose outcome is not known: the line may take them for here
}

// helloFrame is the first frame of a shopper, and the one that takes a new seat after a missed turn.
type helloFrame struct {
	Type      string `json:"type"`
	Token     string `json:"token"`
	Seat      string `json:"seat"`
	Order     string `json:"order"`
	Code      string `json:"code"`
	Challenge string `json:"challenge"`
}

// clientFrame is any later one.
type clientFrame struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Item string `json:"item"`
	Qty  *int64 `json:"qty"`
}

// Hello joins the line or resumes the seat held.
func (v *visit) Hello(session *hub.Session, msg []byte) {
	if v.refuse.code != 0 {
		return
	}
	v.hello(session, msg)
}

// hello may come at any time: the first one may have met trouble, a seat may be gone and another wanted, and a page that
// slept asks where it stands.
func (v *visit) hello(session *hub.Session, msg []byte) {
	session.ExpectHello()
	var hello helloFrame
	if err := decodeFrame(msg, &hello); err != nil || hello.Type != "hello" {
		session.Close(closeBadMessage, "bad message: the first frame must be a hello with a token")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	user, err := v.server.current().identities.Token(ctx, hello.Token)
	if queue.CodeOf(err) == queue.Unavailable {
		v.fail(session, "", err) // to be sent away for good takes a token that is known to be bad
		return
	}
	if err != nil {
		session.Close(closeBadToken, reason(err))
		return
	}
	if v.user != "" && v.user != user {
		session.Close(closeBadToken, "another user on the same connection: open a new one")
		return
	}
	req := queue.JoinRequest{Sale: v.sale, User: user, Address: v.address, Connected: true, Peer: v.peer, Code: codeOf(hello.Code)}
	if hello.Seat != "" {
		held, err := v.server.current().identities.ParseSeat(hello.Seat)
		if err != nil || held.Sale != v.sale || held.User != user {
			session.Close(closeBadToken, "the seat token is not of this user in this sale")
			return
		}
		req.Resume, req.Epoch, req.Code = held.Ticket, held.Epoch, held.Code
	}
	room, snap, err := v.server.roomOf(ctx, v.sale)
	if err != nil {
		v.fail(session, "", err)
		return
	}
	req.Leaf = v.server.leaf(snap.Sale, user)
	// Thousands may say hello in the same second: they wait for Redis without a goroutine each.
	later := session.Later()
	span := v.server.opts.Tracer.Begin(trace.Join)
	span.Set(trace.Sale, v.sale)
	span.Set(trace.Session, session.ID())
	req.Trace = span.Context()
	v.server.joinLater(req, snap.Sale, hello.Challenge, callTimeout, func(held queue.Seat, err error) {
		rest := func() {
			v.joined(session, hello, req, room, snap, held, err)
			span.End(string(queue.CodeOf(err)))
		}
		if held.Order != nil || hello.Order != "" {
			go later(rest) // it asks the database
		} else {
			later(rest)
		}
	})
}

// joined ends a hello whose join was answered.
func (v *visit) joined(session *hub.Session, hello helloFrame, req queue.JoinRequest, room *room, snap *queue.Snapshot, held queue.Seat, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	user := req.User
	switch queue.CodeOf(err) {
	case "", queue.Conflict: // nobody is admitted: the state frame says why
	case queue.Forbidden:
		session.Close(closeNotAllowed, string(reasonOf(err)))
		return
	default:
		v.unheard = user
		v.server.countLimited(err)
		v.fail(session, "", err)
		return
	}
	if held.Order != nil {
		present := v.server.presentOrder(ctx, *held.Order)
		held.Order = &present
	}
	first := v.user == ""
	if first {
		if err := session.Bind(v.sale, user); err != nil {
			session.Close(closeTooManyTabs, fmt.Sprintf("too many connections for this seat: at most %d", v.server.current().ConnsSeat))
			return
		}
	}
	welcome := welcomeFrame{
		Type: "welcome", At: max(held.At, snap.At), Sale: viewOf(snap), User: user, Number: held.Number, Epoch: snap.Epoch,
		Node: v.server.opts.Node, Payment: v.server.payment(),
	}
	if held.Ticket > 0 {
		token, err := v.server.current().identities.MintSeat(SeatToken{Sale: v.sale, User: user, Ticket: held.Ticket, Epoch: held.Epoch, Code: held.Code})
		if err != nil {
			v.fail(session, "", err)
			return
		}
		welcome.Seat = token
	}
	if req.Resume > 0 && req.Epoch < held.Epoch {
		session.SendWithNext(hub.NewFrame(encode(stateFrame{Type: "stale", At: welcome.At})))
	}
	session.SendWithNext(hub.NewFrame(encode(welcome))) // the first state is a tick away
	v.user, v.room = user, room
	v.caller.speaks()
	if held.User == "" {
		held.User = user
	}
	if req.Resume > 0 && held.Status == queue.NoSeat && snap.Sale.Line.Order != queue.Off {
		held.Status = queue.Absent // the seat was given up elsewhere, or is not known any more
	}
	room.enter(session, held, snap.Told(), v.server.named(ctx, user, held, hello.Order, snap), req.Trace)
}

// Message answers a later frame.
func (v *visit) Message(session *hub.Session, msg []byte) {
	if v.refuse.code != 0 {
		return
	}
	var frame clientFrame
	if err := decodeFrame(msg, &frame); err != nil {
		session.Close(closeBadMessage, reason(err))
		return
	}
	switch {
	case frame.Type == "hello":
		v.hello(session, msg)
	case len(msg) > longest:
		session.Close(closeBadMessage, fmt.Sprintf("bad message: only a hello may be longer than %d bytes", longest))
	case v.room == nil:
		session.Close(closeBadMessage, "bad message: say hello first")
	case frame.Type == "grab":
		v.grab(session, frame)
	case frame.Type == "leave":
		v.leave(session)
	default:
		session.Close(closeBadMessage, fmt.Sprintf("bad message: %q is no type of frame; there are hello, grab and leave", clip(frame.Type)))
	}
}

// Closed forgets the session. The seat stays its user's.
func (v *visit) Closed(session *hub.Session) {
	switch {
	case v.room != nil:
		v.room.exit(session, v.user)
	case v.unheard != "":
		v.server.forget(v.sale, v.unheard)
	}
}

func (v *visit) grab(session *hub.Session, frame clientFrame) {
	req := queue.GrabRequest{
		Sale: v.sale, User: v.user, Address: v.address, Item: frame.Item, Qty: 1, RequestID: frame.ID,
	}
	if frame.Qty != nil {
		req.Qty = *frame.Qty
	}
	if v.server.opts.Tracer != nil {
		req.Trace = v.room.followed(v.user)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	began := time.Now()
	g, err := v.server.grab(ctx, req)
	v.logGrab(session, req, g, err, began)
	if err != nil {
		v.fail(session, frame.ID, err)
		return
	}
	at := v.server.now().UnixMilli()
	snap := v.server.opts.Snapshots.Snapshot(v.sale)
	if snap != nil {
		at = snap.At
	}
	switch g.Result {
	case queue.Success, queue.Already:
		order := v.room.bought(*g.Order, session)
		answer := orderFrame{Type: g.Result.String(), At: max(at, order.CreatedAt), ID: frame.ID, Order: viewOfOrder(order)}
		if g.Result != queue.Success || snap == nil {
			session.Send(hub.NewFrame(encode(answer)))
			return
		}
		held := v.room.held(v.user)
		held.Status, held.Order = queue.Buyer, &order
		session.Send(v.server.passes.frame(answer, snap, held))
	case queue.SoldOut:
		session.Send(hub.NewFrame(encode(soldOutFrame{
			Type: "sold_out", At: at, ID: frame.ID, Item: req.Item, Stock: g.Stock, Left: g.Left,
		})))
	default:
		session.Send(hub.NewFrame(encode(stateFrame{Type: g.Result.String(), At: at, ID: frame.ID, State: g.State})))
	}
}

// logGrab writes the line that a grab over HTTP has as a request: at debug level, because a grab takes less time than that.
func (v *visit) logGrab(session *hub.Session, req queue.GrabRequest, g queue.Grabbed, err error, began time.Time) {
	ctx := context.Background()
	if !v.server.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request", clip(req.RequestID)), slog.String("session", session.ID()), slog.String("sale", v.sale),
	}
	if err != nil {
		attrs = append(attrs, slog.String("code", string(queue.CodeOf(err))))
	} else {
		attrs = append(attrs, slog.String("result", g.Result.String()))
	}
	if g.Order != nil {
		attrs = append(attrs, slog.String("order", g.Order.ID))
	}
	v.server.log.LogAttrs(ctx, slog.LevelDebug, "grab", append(attrs, slog.Duration("took", time.Since(began)))...)
}

func (v *visit) leave(session *hub.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	// Who has no seat has left as well: whoever asks for it twice hears the same.
	if ticket := v.room.held(v.user).Ticket; ticket > 0 {
		if err := v.server.line.Leave(ctx, v.sale, v.user, ticket); err != nil {
			v.fail(session, "", err)
			return
		}
		v.room.watch.Kick() // the other tabs are to know
	}
	session.Close(closeLeft, "you have left the line")
}

// fail tells a shopper what went wrong, without closing: they keep their place.
func (v *visit) fail(session *hub.Session, id string, err error) {
	at := v.server.now()
	var e *queue.Error
	if !errors.As(err, &e) {
		e = &queue.Error{Code: queue.Unavailable, Message: "something went wrong here; nothing is known to be taken, try again in a moment", RetryAfter: time.Second}
	}
	switch e.Code {
	case queue.Limited:
		session.Send(hub.NewFrame(encode(limitedFrame{
			Type: "limited", At: at.UnixMilli(), ID: id, RetryAfter: retryAfter(e.RetryAfter),
			Limit: e.Limit, Remaining: e.Remaining, Reset: e.Reset.UnixMilli(),
		})))
		return
	case queue.NoSuchSale:
		session.Close(closeNoSale, "no such sale")
		return
	}
	frame := errorFrame{Type: "error", At: at.UnixMilli(), ID: id, Code: e.Code, Msg: e.Message}
	if e.Code == queue.Unavailable {
		frame.RetryAfter = retryAfter(e.RetryAfter)
		if dropped, ok := v.server.failures.take(); ok {
			v.server.log.Error("a shopper's frame could not be answered",
				"request", clip(id), "session", session.ID(), "sale", v.sale, "error", err, "not_logged_before", dropped)
		}
	}
	session.Send(hub.NewFrame(encode(frame)))
}

// roomOf returns the room of a sale with its newest snapshot.
func (s *Server) roomOf(ctx context.Context, sale string) (*room, *queue.Snapshot, error) {
	snap, err := s.snapshot(ctx, sale)
	if err != nil {
		return nil, nil, err
	}
	if r := s.registry.room(sale); r != nil {
		return r, snap, nil
	}
	return nil, nil, noSuchSale(sale) // archived this very moment
}

// presentOrder is the order as the database has it, or as given while it has no row, or cannot be asked.
func (s *Server) presentOrder(ctx context.Context, order queue.Order) queue.Order {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if row, err := s.opts.Orders.Order(ctx, order.ID); err == nil && row.User == order.User {
		return row
	}
	return order
}

// decodeFrame reads one JSON object and nothing behind it.
func decodeFrame(msg []byte, frame any) error {
	d := json.NewDecoder(bytes.NewReader(msg))
	if err := d.Decode(frame); err != nil {
		return errors.New("bad message: it must be one JSON object with the fields of the protocol")
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("bad message: one frame must be one JSON object")
	}
	if field := twice(msg); field != "" {
		return fmt.Errorf("bad message: the field %q is there twice", clip(field))
	}
	return nil
}

// reason is an error as a close frame can carry it: at most 123 bytes.
func reason(err error) string {
	text := err.Error()
	if len(text) > 123 {
		text = strings.ToValidUTF8(text[:123], "")
	}
	return text
}
