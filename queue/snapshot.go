package queue

import (
	"time"
)

// State is the state of a sale. It follows from the settings and Redis time alone and is stored nowhere, so that no
// two parts of the system can disagree about it.
type State string

// The states of a sale.
const (
	Scheduled  State = "scheduled"
	Lobby      State = "lobby"
	Open       State = "open"
	Paused     State = "paused"
	Closed     State = "closed"
	Recovering State = "recovering"
)

// StockState says whether a sale, or one item of it, can still be had.
type StockState string

// The states of stock.
const (
	Available StockState = "available"
	Held      StockState = "held" // none left, but unpaid holds may return
	Gone      StockState = "gone" // none left and none can return
)

// Snapshot is a sale as one tick saw it. It never changes.
type Snapshot struct {
	Sale    *Sale
	At      int64 // Redis time, ms since the epoch
	State   State
	Stock   StockState
	Items   map[string]int64 // units left of each item
	Held    int64            // units of orders that are not paid yet
	Stopped int64            // ms by which sale time is behind Redis time
	Version int64            // of the settings
	Epoch   int64
	Served  int64 // the cursor: numbers up to here were called or passed
	Issued  int64 // the highest number given
	Turns   int64 // turns outstanding
	Granted int64 // turns given in all
	Left    int64 // seats given up in all

	// Rate is how many turns a second were given lately; 0 when none were.
	Rate float64

	Drawn  bool // of a lobby that is put in order: the numbers are known
	Frozen bool // of such a lobby: nobody else takes part
	Paused bool // whatever State says: a sale can be paused before it opens

	gone   *numberSet // of the line from the cursor on
	recall *numberSet // those to be called before the line, and some who came late after a loss, behind the cursor
}

// Stands says whether the line is as it was in an earlier snapshot of the same node: nobody's place has changed since.
func (s *Snapshot) Stands(before *Snapshot) bool {
	return s.Epoch == before.Epoch && s.Served == before.Served && s.Left == before.Left && s.Drawn == before.Drawn &&
		s.gone == before.gone && s.recall == before.recall
}

// Undrawn says that a sale has opened and its lobby is to be put in order now.
func (s *Snapshot) Undrawn() bool { return s.opened() && !s.Paused }

// Told is the state as people are told it. A lobby that is put in order lasts until that is done; where nothing but a pause keeps that
// from being made, they are told of the pause.
func (s *Snapshot) Told() State {
	if s.opened() && s.Paused {
		return Paused
	}
	return s.State
}

// opened says that a sale has opened whose lobby is not in order yet.
func (s *Snapshot) opened() bool {
	return s.Sale.Sorted() && !s.Drawn && s.State == Lobby && s.At >= s.Sale.OpensAt.UnixMilli()
}

// Units is what is left of all items together.
func (s *Snapshot) Units() int64 {
	var n int64
	for _, left := range s.Items {
		n += left
	}
	return n
}

// Waiting is how many seats wait to be called; in the lobby of a lottery, how many take part.
func (s *Snapshot) Waiting() int64 {
	return s.Recalled() + s.Ahead(s.Issued+1)
}

// Recalled is how many seats are called before the line.
func (s *Snapshot) Recalled() int64 { return s.RecalledBefore(s.Served + 1) }

// RecalledBefore is how many seats that are called before the line have a lower number than one of those.
func (s *Snapshot) RecalledBefore(number int64) int64 {
	return s.recall.between(0, min(number, s.Served+1))
}

// IsRecalled says whether a number is called before the line.
func (s *Snapshot) IsRecalled(number int64) bool { return number <= s.Served && s.recall.has(number) }

// Ahead is how many seats between the cursor and the number have not left. It never rises while a seat lives, because
// the cursor only moves on and a number given up stays given up.
func (s *Snapshot) Ahead(number int64) int64 {
	return max(0, number-1-s.Served-s.gone.between(s.Served, number))
}

// HasLeft says whether a number above the cursor was given up.
func (s *Snapshot) HasLeft(number int64) bool { return s.gone.has(number) }

// Wall is the moment, in ms since the epoch, at which a deadline in sale time is met if the sale is not stopped again.
func (s *Snapshot) Wall(deadline int64) int64 { return deadline + s.Stopped }

// ETA is how long a seat with that number waits for its turn at the rate of the last minute, and how long it may well
// take. It is unknown while no turns are given.
func (s *Snapshot) ETA(number int64) (eta, most time.Duration, known bool) {
	if s.Rate <= 0 {
		return 0, 0, false
	}
	seconds := float64(s.RecalledBefore(number)+s.Ahead(number)+1) / s.Rate
	eta = time.Duration(seconds * float64(time.Second))
	return eta, eta + eta/2 + time.Second, true
}

// Chance says how likely a seat is to meet stock when it is called: likely when fewer are ahead than there are units,
// possible while the turns given for the stock left reach it, else unlikely.
func (s *Snapshot) Chance(number int64) string {
	ahead, units := s.Ahead(number), s.Units()
	switch {
	case ahead < units:
		return "likely"
	case float64(ahead) < s.Sale.Line.Ratio*float64(units):
		return "possible"
	}
	return "unlikely"
}
