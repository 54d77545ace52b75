package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/fault"
	"sluice/queue"
	"sluice/trace"
)

// maxRequestID is how long a request id may be, in bytes.
const maxRequestID = 64

// grabRequest is the body of a grab; all of it may be left out where a sale has one item.
type grabRequest struct {
	Item      string `json:"item"`
	Qty       int64  `json:"qty"`
	RequestID string `json:"request_id"`
}

// grabAnswer is the result of a grab, whatever it is. Its fields depend on the result; code and result never lie apart.
type grabAnswer struct {
	Code   queue.Result     `json:"code"`
	Result string           `json:"result"`
	Msg    string           `json:"msg"`
	Order  *orderView       `json:"order,omitempty"` // of success and already
	Stock  queue.StockState `json:"stock,omitempty"` // of sold_out
	Left   int64            `json:"left,omitempty"`  // of sold_out, when fewer are left than were asked for
	State  queue.State      `json:"state,omitempty"` // of not_open
}

// postGrab is POST /sales/{sale}/grab and POST /seckill/{sale}.
//
// A repetition is recognised by its request_id. Where the caller gives none, the node makes one for this call alone, so
// the repetition is a new grab: if the first one took stock, it is answered `already`, with that order. That is the same
// truth under another name, and takes nothing. An id made from the user instead would answer `success` to everything
// that user ever asks, and after a cancelled order there could be no second one.
func (s *Server) postGrab(c *echo.Context) error {
	ctx := c.Request().Context()
	who, err := s.current().identities.Request(c.Request())
	if err != nil {
		return err
	}
	body := grabRequest{Qty: 1}
	if err := readJSON(c, &body); err != nil {
		return err
	}
	req := queue.GrabRequest{
		Sale:      c.Param("sale"),
		User:      who.User,
		Address:   addressOf(c),
		Item:      body.Item,
		Qty:       body.Qty,
		RequestID: body.RequestID,
	}
	if req.RequestID == "" {
		req.RequestID = s.requests.next()
	}
	grabbed, err := s.grab(ctx, req)
	if err != nil {
		return err
	}
	fault.Point("grab.answering")
	showAllowance(c, grabbed.Allowance)
	l := s.languageOf(c.Request())
	if grabbed.Result == queue.SoldOut && grabbed.Stock != queue.Available {
		return c.JSONBlob(http.StatusOK, s.refusals[soldOut{grabbed.Stock, l}]) // nearly all of a flood hear this
	}
	return c.JSON(http.StatusOK, answerOf(grabbed, l))
}

// grab is a grab from any client, socket or not: it is checked against the sale's settings, so that nonsense costs Redis
// nothing, made, counted, and returned when it may be told. Its Trace is what it is linked to. An error after which the outcome is unknown is Unavailable.
func (s *Server) grab(ctx context.Context, req queue.GrabRequest) (queue.Grabbed, error) {
	sale, err := s.settings(ctx, req.Sale)
	if queue.IsOver(err) {
		return s.grabLate(ctx, req)
	}
	if err != nil {
		return queue.Grabbed{}, err
	}
	if err := checkGrab(sale, &req); err != nil {
		return queue.Grabbed{}, err
	}
	span := s.opts.Tracer.Begin(trace.Grab, req.Trace)
	if !span.On() {
		req.Trace = ""
		return s.take(ctx, req)
	}
	span.Set(trace.Sale, req.Sale)
	span.Set(trace.Item, req.Item)
	span.Set(trace.Request, req.RequestID)
	req.Trace = span.Context()
	grabbed, err := s.take(ctx, req)
	if err == nil {
		span.Set(trace.Result, grabbed.Result.String())
	}
	if grabbed.Order != nil {
		span.Set(trace.Order, grabbed.Order.ID)
	}
	span.End(string(queue.CodeOf(err)))
	return grabbed, err
}

// take is a grab that the settings allow.
func (s *Server) take(ctx context.Context, req queue.GrabRequest) (queue.Grabbed, error) {
	req.NewOrderID = s.newOrderID
	began := time.Now()
	grabbed, err := s.line.Grab(ctx, req)
	if queue.IsOver(err) {
		return s.grabLate(ctx, req)
	}
	if err != nil {
		s.countLimited(err)
		s.counted.grabFailed(req.Sale, err)
		return queue.Grabbed{}, fmt.Errorf("grab in sale %s: %w", req.Sale, err)
	}
	if grabbed.Result == queue.Success && !grabbed.Ended && grabbed.Order != nil && s.opts.AwaitRow != nil {
		if err := s.awaitRow(ctx, *grabbed.Order); err != nil {
			return queue.Grabbed{}, err
		}
	}
	if grabbed.Replay && grabbed.Order != nil {
		order, err := s.replayed(ctx, grabbed)
		if err != nil {
			return queue.Grabbed{}, err
		}
		grabbed.Order = &order
	}
	s.counted.grabbed.Observe(time.Since(began).Seconds())
	s.counted.grab(req.Sale, grabbed.Result)
	return grabbed, nil
}

// replayed is the order of a repeated request in its present status. That is a reading of the database, which only those
// pay for who won and ask again; the many who hear `already` get the order as its mark has it.
func (s *Server) replayed(ctx context.Context, grabbed queue.Grabbed) (queue.Order, error) {
	if !grabbed.Ended {
		return s.presentOrder(ctx, *grabbed.Order), nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	order, err := s.opts.Orders.Order(ctx, grabbed.Order.ID)
	if queue.CodeOf(err) == queue.NoSuchOrder {
		// Its stock went back and no row came of it: it was never accepted.
		order, err = *grabbed.Order, nil
		order.Status = queue.Rejected
	}
	return order, err
}

// rowTimeout is how long a grab waits for its row before it is answered 503, which the same request id settles later.
const rowTimeout = 5 * time.Second

func (s *Server) awaitRow(ctx context.Context, order queue.Order) error {
	ctx, cancel := context.WithTimeout(ctx, rowTimeout)
	defer cancel()
	if err := s.opts.AwaitRow(ctx, order); err != nil {
		s.counted.grabFailed(order.Sale, err)
		return fmt.Errorf("wait for the row of order %s: %w", order.ID, err)
	}
	return nil
}

// checkGrab refuses what the sale's settings alone rule out, and names the item of a sale that has one.
func checkGrab(sale *queue.Sale, req *queue.GrabRequest) error {
	switch {
	case req.Item == "" && len(sale.Items) == 1:
		req.Item = sale.Items[0].ID
	case req.Item == "":
		return invalid("say which item: this sale has %d", len(sale.Items))
	default:
		if _, ok := sale.Item(req.Item); !ok {
			return &queue.Error{Code: queue.NoSuchItem, Message: fmt.Sprintf("this sale has no item %q", clip(req.Item))}
		}
	}
	if req.Qty < 1 || req.Qty > sale.Limit {
		return invalid("qty must be between 1 and %d, the limit of one order; it is %d", sale.Limit, req.Qty)
	}
	if !validRequestID(req.RequestID) {
		return invalid("request_id must be 1 to %d printable ASCII characters", maxRequestID)
	}
	return nil
}

func validRequestID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' })
}

// soldOut is somebody's answer when nothing is left: what becomes of the stock, in a language.
type soldOut struct {
	stock    queue.StockState
	language lang
}

// newRefusals encodes the answers to grabs when nothing is left.
func newRefusals() map[soldOut][]byte {
	bodies := map[soldOut][]byte{}
	for _, stock := range []queue.StockState{queue.Held, queue.Gone} {
		for _, l := range []lang{english, chinese} {
			bodies[soldOut{stock, l}] = append(encode(answerOf(queue.Grabbed{Result: queue.SoldOut, Stock: stock}, l)), '\n')
		}
	}
	return bodies
}

// answerOf is the body that tells the outcome.
func answerOf(g queue.Grabbed, l lang) grabAnswer {
	answer := grabAnswer{Code: g.Result, Result: g.Result.String(), Msg: messageOf(g, l)}
	switch g.Result {
	case queue.Success, queue.Already:
		if g.Order != nil {
			view := viewOfOrder(*g.Order)
			answer.Order = &view
		}
	case queue.SoldOut:
		answer.Stock = g.Stock
		if g.Stock == queue.Available {
			answer.Left = g.Left
		}
	case queue.NotOpen:
		answer.State = g.State
	}
	return answer
}
