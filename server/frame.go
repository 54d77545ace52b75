package server

import (
	"encoding/json"
	"time"

	"sluice/hub"
	"sluice/queue"
)

// The frames of the protocol, as the server sends them. Times are ms since the epoch, by Redis time where a frame tells
// of the sale.

type welcomeFrame struct {
	Type    string   `json:"type"` // welcome
	At      int64    `json:"at"`
	Sale    saleView `json:"sale"`
	User    string   `json:"user"`
	Seat    string   `json:"seat,omitempty"` // seat token; absent without a seat
	Number  int64    `json:"number,omitempty"`
	Epoch   int64    `json:"epoch"`
	Node    string   `json:"node"`
	Payment string   `json:"payment"` // how orders are paid here
}

type lobbyFrame struct {
	Type    string          `json:"type"` // lobby
	At      int64           `json:"at"`
	Entries int64           `json:"entries"`
	OpensAt int64           `json:"opens_at"`
	Order   queue.LineOrder `json:"order"`
	Drawing bool            `json:"drawing,omitempty"` // the sale has opened, and its lottery is being drawn
}

type queuedFrame struct {
	Type     string           `json:"type"` // queued
	At       int64            `json:"at"`
	Number   int64            `json:"number"`
	Ahead    int64            `json:"ahead"`
	Total    int64            `json:"total"`
	Rate     float64          `json:"rate"`
	Recalled int64            `json:"recalled"`
	ETA      int64            `json:"eta_ms,omitempty"`
	ETAMax   int64            `json:"eta_max_ms,omitempty"`
	Stock    queue.StockState `json:"stock"`
	Chance   string           `json:"chance"`
	Reason   string           `json:"reason,omitempty"` // why ahead or eta jumped
}

type turnFrame struct {
	Type  string      `json:"type"` // turn
	At    int64       `json:"at"`
	Until int64       `json:"until"`
	Limit int64       `json:"limit"`
	Items []itemStock `json:"items"`
	Pass  string      `json:"pass,omitempty"`
}

type itemStock struct {
	ID    string `json:"id"`
	Stock int64  `json:"stock"`
}

// orderFrame is success (with the id of the request), already and order.
type orderFrame struct {
	Type  string    `json:"type"`
	At    int64     `json:"at"`
	ID    string    `json:"id,omitempty"`
	Order orderView `json:"order"`
	Pass  string    `json:"pass,omitempty"` // of success, and of an order as the state of a seat
}

type soldOutFrame struct {
	Type  string           `json:"type"` // sold_out
	At    int64            `json:"at"`
	ID    string           `json:"id,omitempty"`   // the request that it answers; absent when it is news
	Item  string           `json:"item,omitempty"` // absent = all
	Stock queue.StockState `json:"stock"`
	Left  int64            `json:"left,omitempty"`
}

// stateFrame is no_turn, not_open, paused, resumed, closed, missed and none: frames that say little more than their name.
type stateFrame struct {
	Type  string      `json:"type"`
	At    int64       `json:"at"`
	ID    string      `json:"id,omitempty"`
	State queue.State `json:"state,omitempty"`
	Why   string      `json:"why,omitempty"`
}

type limitedFrame struct {
	Type       string `json:"type"` // limited
	At         int64  `json:"at"`
	ID         string `json:"id,omitempty"`
	RetryAfter int64  `json:"retry_after_ms"`
	Limit      int64  `json:"limit"`
	Remaining  int64  `json:"remaining"`
	Reset      int64  `json:"reset"`
}

type errorFrame struct {
	Type       string     `json:"type"` // error
	At         int64      `json:"at"`
	ID         string     `json:"id,omitempty"`
	Code       queue.Code `json:"code"`
	Msg        string     `json:"msg"`
	RetryAfter int64      `json:"retry_after_ms,omitempty"`
}

type movingFrame struct {
	Type    string `json:"type"` // moving
	At      int64  `json:"at"`
	RetryIn int64  `json:"retry_in_ms"`
}

// Moving is the frame that tells a shopper to come back, to another node, after that time.
func Moving(retryIn time.Duration) *hub.Frame {
	return hub.NewFrame(encode(movingFrame{Type: "moving", At: time.Now().UnixMilli(), RetryIn: retryIn.Milliseconds()}))
}

// encode writes a frame. The types above always can be written, so there is no error to return.
func encode(frame any) []byte {
	data, err := json.Marshal(frame)
	if err != nil {
		panic("server: a frame cannot be written: " + err.Error())
	}
	return data
}

// stateOf is the newest state frame of a seat: everything that somebody who comes back needs to know. Without a line
// there are no seats, and who watches an open sale has a turn until it closes.
func stateOf(snap *queue.Snapshot, seat queue.Seat) any {
	at := max(snap.At, seat.At)
	switch {
	case seat.Status == queue.Buyer && seat.Order != nil:
		return orderFrame{Type: "order", At: at, Order: viewOfOrder(*seat.Order)}
	case snap.State == queue.Closed:
		return stateFrame{Type: "closed", At: at, Why: "ended"}
	case snap.State == queue.Recovering && seat.Status != queue.Missed && seat.Status != queue.Absent:
		return pausedOf(snap, at)
	case seat.Status == queue.Missed:
		return stateFrame{Type: "missed", At: at, Why: "expired"}
	case seat.Status == queue.Absent:
		return stateFrame{Type: "missed", At: at, Why: "absent"}
	case snap.Sale.Line.Order != queue.Off && seat.Status == queue.NoSeat:
		if snap.Stock == queue.Gone {
			return soldOutFrame{Type: "sold_out", At: at, Stock: queue.Gone}
		}
		return stateFrame{Type: "none", At: at}
	case snap.State == queue.Scheduled || snap.State == queue.Lobby:
		return lobbyOf(snap)
	case snap.Stock == queue.Gone, snap.Stock == queue.Held && seat.Status != queue.Waiting:
		return soldOutFrame{Type: "sold_out", At: at, Stock: snap.Stock}
	case seat.Status == queue.Turn:
		return turnOf(snap, snap.Wall(seat.Deadline))
	case seat.Status == queue.Waiting:
		return queuedOf(snap, seat.Number)
	case snap.State == queue.Open:
		return turnOf(snap, snap.Sale.ClosesAt.UnixMilli())
	}
	return pausedOf(snap, at)
}

func pausedOf(snap *queue.Snapshot, at int64) stateFrame {
	why := "operator"
	if snap.State == queue.Recovering {
		why = "recovering"
	}
	return stateFrame{Type: "paused", At: at, Why: why}
}

func lobbyOf(snap *queue.Snapshot) lobbyFrame {
	return lobbyFrame{
		Type: "lobby", At: snap.At, Entries: snap.Waiting(), OpensAt: snap.Sale.OpensAt.UnixMilli(), Order: snap.Sale.Line.Order,
		Drawing: snap.Undrawn(),
	}
}

func queuedOf(snap *queue.Snapshot, number int64) queuedFrame {
	f := queuedFrame{
		Type: "queued", At: snap.At, Number: number, Ahead: snap.Ahead(number), Total: snap.Waiting(),
		Rate: snap.Rate, Recalled: snap.RecalledBefore(number), Stock: snap.Stock, Chance: snap.Chance(number),
	}
	if eta, most, known := snap.ETA(number); known {
		f.ETA, f.ETAMax = max(1, eta.Milliseconds()), most.Round(time.Millisecond).Milliseconds()
	}
	return f
}

func turnOf(snap *queue.Snapshot, until int64) turnFrame {
	f := turnFrame{Type: "turn", At: snap.At, Until: until, Limit: snap.Sale.Limit, Items: make([]itemStock, len(snap.Sale.Items))}
	for i, item := range snap.Sale.Items {
		f.Items[i] = itemStock{ID: item.ID, Stock: snap.Items[item.ID]}
	}
	return f
}
