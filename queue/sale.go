package queue

import (
	"time"
)

// MainItem is the item of a sale that sells one thing and does not name it.
const MainItem = "main"

// LineOrder says how the lobby is put in order when a sale opens.
type LineOrder string

// The orders of a line.
const (
	FIFO    LineOrder = "fifo"    // by arrival
	Lottery LineOrder = "lottery" // by a draw, see Draw; who comes later follows by arrival
	Off     LineOrder = "off"     // no waiting room: grabs go straight to stock
)

// Text is a sentence in several languages, by language tag ("en", "zh"). A text given as one string has the key "".
type Text map[string]string

// Sale is the settings of one flash sale: what a sale file says, with every relative time resolved.
type Sale struct {
	ID       string    `json:"id"`
	Title    Text      `json:"title,omitempty"`
	Items    []Item    `json:"items"`
	Currency string    `json:"currency,omitempty"`
	OpensAt  time.Time `json:"opens_at"`
	ClosesAt time.Time `json:"closes_at"`
	Lobby    Duration  `json:"lobby"` // joining is possible this long before OpensAt; 0 = from apply
	Limit    int64     `json:"limit"` // units one order may have
	Line     Line      `json:"line"`
	Hold     Duration  `json:"hold"` // how long an order may stay unpaid; 0 = orders need no payment
	Access   Access    `json:"access,omitzero"`

	// Commitment is of a lottery the SHA-256 of its secret, in hex. It is no part of a sale file.
	Commitment string `json:"commitment,omitempty"`
}

// Item is something sold in a sale, with its own stock.
type Item struct {
	ID    string `json:"id"`
	Title Text   `json:"title,omitempty"`
	Stock int64  `json:"stock"`           // units in total, not units left
	Price int64  `json:"price,omitempty"` // in minor units of the sale's currency; 0 = not shown
}

// Line is the admission policy of a sale.
type Line struct {
	Order  LineOrder `json:"order"`
	Rate   int64     `json:"rate"`   // turns given in any second, at most; 0 = bounded by Active and Ratio only
	Active int64     `json:"active"` // turns outstanding at once, at most; 0 = no cap
	Ratio  float64   `json:"ratio"`  // outstanding turns stay ≤ Ratio × stock left; 0 = no cap
	Turn   Duration  `json:"turn"`   // how long a turn lasts
	Grace  Duration  `json:"grace"`  // how long a seat is kept after its last connection drops
}

// figures are what decides how fast the line moves.
func (l Line) figures() [3]float64 { return [3]float64{float64(l.Rate), float64(l.Active), l.Ratio} }

// SamePace says whether two lines move as fast as one another, as far as their settings go.
func (l Line) SamePace(other Line) bool { return l.figures() == other.figures() }

// Sorted says that the lobby is put in order when the sale opens, so that its seats have no numbers before: by a draw, or by
// the priority of codes.
func (s *Sale) Sorted() bool {
	return s.Line.Order == Lottery || s.Line.Order == FIFO && s.Access.Prioritised()
}

// Item returns the item with that id.
func (s *Sale) Item(id string) (Item, bool) {
	for _, item := range s.Items {
		if item.ID == id {
			return item, true
		}
	}
	return Item{}, false
}

// Units is the stock of all items together.
func (s *Sale) Units() int64 {
	var n int64
	for _, item := range s.Items {
		n += item.Stock
	}
	return n
}
