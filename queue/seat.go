package queue

import (
	"net/netip"
	"time"
)

// SeatStatus is where a user stands in a sale.
type SeatStatus int

// What a seat can be.
const (
	NoSeat  SeatStatus = iota // never joined, or left
	Waiting                   // in the line, not yet called
	Turn                      // called: may grab until Seat.Until
	Missed                    // called, and the turn ran out unused
	Buyer                     // holds a live order; Seat.Order is it
	Absent                    // away for longer than the grace
)

// Seat is a user's place in the line of a sale as Redis had it at one moment.
type Seat struct {
	User   string
	Ticket int64 // names the seat for good, from 1 in the order of arrival; 0 without a seat, and in a sale without a line
	Number int64 // the place in the line, from 1; 0 without one, and in the lobby of a lottery
	Epoch  int64
	Status SeatStatus
	Until  int64  // of a Turn: when it ends as things stand, ms since the epoch
	Order  *Order // of a Buyer: the live order

	// Of one who is Waiting: is called before the line, because the cursor passed the seat while nobody was there, or the
	// stock was used up during its turn.
	Recalled bool

	// Of a Turn: when it ends in sale time, in ms. Until is this plus Snapshot.Stopped, which grows while the sale is
	// paused.
	Deadline int64

	// What the seat was taken with, as far as Join knows it; kept so that Reclaim can say it again.
	Code    string // the code that the user has used; "" = none
	Address string // the address limit's address of the last request

	// Of the sale, at that moment.
	State   State
	Stock   StockState
	Stopped int64 // ms by which sale time is behind Redis time
	At      int64 // Redis time, ms since the epoch

	Allowance *Allowance // of the request that Join answered; nil = no limit is on, or none was asked
}

// JoinRequest asks for a seat.
type JoinRequest struct {
	Sale    string
	User    string
	Address string // client address, for the limit of requests and that of seats; "" = not limited
	Resume  int64  // the ticket of the seat token that the caller holds; such a call never takes a new seat. 0 = none
	Epoch   int64  // of that token: a ticket of the epoch before this one is taken back
	Called  bool   // the seat is known to have had a turn, and is to have one again
	Leaf    []byte // the entry, 32 bytes, should it be one of a lottery
	Trace   string // what this is a part of, see package trace; "" = nobody follows it

	// What a new seat may depend on; see Access.
	Peer   netip.Addr // the client's own address, for the lists; the zero value is on none
	Code   string
	Solved bool // a call before this one was refused for the want of a challenge alone, and that is solved since

	// Who asks is here: over a connection of this node, until Tell says otherwise, or by a poll that is good for so long.
	// Of a seat that neither is ever said of, nobody goes away.
	Connected bool
	Poll      time.Duration
}

// ResumeAny resumes whatever seat the user holds.
const ResumeAny = -1
