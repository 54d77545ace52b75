package queue

// SeatStatus is where a user stands in a sale.
type SeatStatus int

// What a seat can be.
const (
	NoSeat  SeatStatus = iota // never joined, or left
	Waiting                   // in the line, not yet called
	Turn                      // called: may grab until Seat.Until
	Missed                    // called, and the turn ran out unused
	Buyer                     // holds a live order; Seat.Order is it
)

// Seat is a user's place in the line of a sale as Redis had it at one moment.
type Seat struct {
	User   string
	Number int64 // from 1; 0 without a seat, and in a sale without a line
	Epoch  int64
	Status SeatStatus
	Until  int64  // of a Turn: when it ends as things stand, ms since the epoch
	Order  *Order // of a Buyer: the live order

	// Of a Turn: when it ends in sale time, in ms. Until is this plus Snapshot.Stopped, which grows while the sale is
	// paused.
	Deadline int64

	// Of the sale, at that moment.
	State   State
	Stock   StockState
	Stopped int64 // ms by which sale time is behind Redis time
	At      int64 // Redis time, ms since the epoch
}

// JoinRequest asks for a seat.
type JoinRequest struct {
	Sale    string
	User    string
	Address string // client address, for the address limit; "" = not limited
	Resume  int64  // the number of the seat token that the caller holds; such a call never takes a new seat. 0 = none
	Epoch   int64  // of that token: a number of the epoch before this one is taken back
	Called  bool   // the seat is known to have had a turn, and is to have one again
}
