package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sluice/trace"
)

// Join gives the user a seat, or returns the one held. With Resume it only returns what is held: Missed or NoSeat tell
// somebody who came back too late. In a sale without a line the status is NoSeat, and grabs need none.
//
// Errors: Conflict when the sale's state or stock admits nobody (the seat's State and Stock say which), Forbidden with the
// Reason when its access rules keep the user out, Limited, and Unavailable while Redis is away or the sale recovers. After
// all but the last nothing has changed. It blocks on Redis, at most a few seconds.
func (q *Queue) Join(ctx context.Context, req JoinRequest) (Seat, error) {
	return q.lane(req.Sale).joins.do(ctx, req)
}

// JoinLater is Join for a caller who does not wait: then is called with the outcome, from another goroutine, which it must not
// hold up. A join that Redis could not be asked for within that time fails with Unavailable, and has taken nothing.
func (q *Queue) JoinLater(req JoinRequest, within time.Duration, then func(Seat, error)) {
	q.lane(req.Sale).joins.start(request[JoinRequest, Seat]{arg: req, by: time.Now().Add(within), then: func(seat Seat, err error) {
		if errors.Is(err, errLate) {
			err = &Error{Code: Unavailable, Message: "the line cannot be reached; nothing was taken, try again in a moment", RetryAfter: time.Second, Err: err}
		}
		then(seat, err)
	}})
}

func (q *Queue) joinBatch(ctx context.Context, sale string, reqs []JoinRequest) ([]Seat, []error) {
	spans := q.follow(trace.JoinScript, len(reqs), func(i int) string { return reqs[i].Trace })
	seats, errs := q.joinAt(ctx, sale, 0, reqs)
	spans.end(errs)
	return seats, errs
}

// judgeRounds bounds how often joins are judged again because the settings changed meanwhile.
const judgeRounds = 4

// joinAt is joinBatch for a caller who knows how far the cursor was before a loss; 0 = does not. Requests that were judged by
// settings that do not hold any more have not been decided, and are judged again.
func (q *Queue) joinAt(ctx context.Context, sale string, served int64, reqs []JoinRequest) ([]Seat, []error) {
	by := q.lane(sale).rules.Load()
	seats, errs := q.joinBy(ctx, sale, served, reqs, by, false)
	for range judgeRounds {
		var again []int
		for i, err := range errs {
			if errors.Is(err, errOldRules) {
				again = append(again, i)
			}
		}
		if len(again) == 0 {
			break
		}
		by, err := q.readRules(ctx, sale)
		part := make([]JoinRequest, len(again))
		for j, i := range again {
			part[j] = reqs[i]
		}
		partSeats, partErrs := make([]Seat, len(again)), make([]error, len(again))
		if err == nil {
			q.lane(sale).rules.Store(by)
			partSeats, partErrs = q.joinBy(ctx, sale, served, part, by, true)
		} else {
			fill(partErrs, err)
		}
		for j, i := range again {
			seats[i], errs[i] = partSeats[j], partErrs[j]
		}
	}
	return seats, errs
}

// joinBy makes one call, judged by those rules; nil = by none. counted says that the limits have counted these requests.
func (q *Queue) joinBy(ctx context.Context, sale string, served int64, reqs []JoinRequest, by *rules, counted bool) ([]Seat, []error) {
	k := keysOf(sale)
	names := []string{k.meta, k.seats, k.turns, k.winners, k.stock, k.gone, k.away, k.recall, k.draw, k.conn, k.lost, k.leaves, k.news, k.dropout,
		k.codes, k.used, k.coded, k.address, k.ranks}
	limits := q.limits.Load()
	args := append(limits.args(), served, q.node, by.settings())
	for _, req := range reqs {
		names = limits.keys(names, k, req.User, req.Address)
		args = append(args, req.User, req.Resume, req.Epoch, flag(req.Called), here(req.Connected, req.Poll), req.Leaf,
			req.Code, req.Address, flag(!by.admit(req.User, req.Peer)), flag(req.Solved), flag(req.Solved || counted))
	}
	seats, errs := make([]Seat, len(reqs)), make([]error, len(reqs))
	v, err := q.run(ctx, "join", names, args)
	if err != nil {
		return seats, fill(errs, err)
	}
	r := &reply{script: "join"}
	rows := r.list(v, 0)
	if len(rows) == 0 {
		return seats, fill(errs, q.absent(ctx, sale))
	}
	rows = r.list(v, 1+len(reqs))
	head, left := r.seatHead(rows[0]), limits.allowances(r, rows, len(reqs))
	for i, req := range reqs {
		seat := head
		seat.Allowance = left.of(i)
		seat.User, seat.Address = req.User, req.Address
		row := r.list(rows[1+i], 1)
		switch code := r.int(row[0]); code {
		case codeLimited:
			errs[i] = limits.refusal(r, row)
		case codeNotOpen:
			errs[i] = &Error{Code: Conflict, Message: fmt.Sprintf("the sale %q cannot be joined: it is %s", sale, seat.State)}
		case codeSoldOut:
			errs[i] = &Error{Code: Conflict, Message: fmt.Sprintf("the sale %q is sold out and nothing can return", sale)}
		case codeBarred:
			errs[i] = Barred(Reason(r.text(r.list(row, 2)[1])))
		case codeOldRules:
			errs[i] = &Error{Code: Unavailable, Message: "the rules of the sale are changing; nothing was taken, try again in a moment", RetryAfter: time.Second, Err: errOldRules}
		default:
			row = r.list(row, 7)
			r.place(&seat, sale, row)
			seat.Code = r.text(row[6])
			if seat.State == Recovering && seat.Status != Buyer && seat.Status != Waiting && seat.Status != Turn {
				errs[i] = errNotHere(sale)
			}
		}
		seats[i] = seat
	}
	if r.err != nil {
		return seats, fill(errs, r.err)
	}
	return seats, errs
}

// Reclaim gives seats of the epoch before back their numbers, for a node whose shoppers are still there when Redis has
// lost them, and turns to those who had one; served is the cursor as the node knew it. Numbers that somebody has taken
// back are left alone, so it may be repeated. Errors: Unavailable.
func (q *Queue) Reclaim(ctx context.Context, sale string, served int64, seats []Seat) error {
	for page := range slices.Chunk(seats, gatherMost) {
		reqs := make([]JoinRequest, len(page))
		for i, seat := range page {
			reqs[i] = JoinRequest{
				Sale: sale, User: seat.User, Resume: seat.Ticket, Epoch: seat.Epoch, Called: seat.Status == Turn, Connected: true,
				Code: seat.Code, Address: seat.Address,
			}
		}
		if _, errs := q.joinAt(ctx, sale, served, reqs); CodeOf(errs[0]) == Unavailable || IsOver(errs[0]) {
			return errs[0]
		}
	}
	return nil
}

// Look says where a user stands, and changes nothing. Errors: Unavailable.
func (q *Queue) Look(ctx context.Context, sale, user string) (Seat, error) {
	return q.lane(sale).looks.do(ctx, user)
}

func (q *Queue) lookBatch(ctx context.Context, sale string, users []string) ([]Seat, []error) {
	seats, err := q.LookMany(ctx, sale, users)
	errs := make([]error, len(users))
	if err != nil {
		return make([]Seat, len(users)), fill(errs, err)
	}
	return seats, errs
}

// LookMany is Look for many users in few calls; the seats come in the order of the users.
func (q *Queue) LookMany(ctx context.Context, sale string, users []string) ([]Seat, error) {
	const page = 500
	k := keysOf(sale)
	seats := make([]Seat, 0, len(users))
	for start := 0; start < len(users); start += page {
		part := users[start:min(start+page, len(users))]
		args := make([]any, len(part))
		for i, user := range part {
			args[i] = user
		}
		v, err := q.run(ctx, "look", []string{k.meta, k.seats, k.turns, k.winners, k.stock, k.gone, k.away, k.recall, k.draw}, args)
		if err != nil {
			return nil, err
		}
		r := &reply{script: "look"}
		rows := r.list(v, 0)
		if len(rows) == 0 {
			return nil, q.absent(ctx, sale)
		}
		rows = r.list(v, 1+len(part))
		head := r.seatHead(rows[0])
		for i, user := range part {
			seat := head
			seat.User = user
			r.place(&seat, sale, r.list(rows[1+i], 6))
			seats = append(seats, seat)
		}
		if r.err != nil {
			return nil, r.err
		}
	}
	return seats, nil
}

// Leave gives up the user's seat with that ticket; a seat that is not theirs any more is left alone, so a repeat does
// no harm. An order stays. Errors: Unavailable.
func (q *Queue) Leave(ctx context.Context, sale, user string, ticket int64) error {
	k := keysOf(sale)
	v, err := q.run(ctx, "leave", []string{
		k.meta, k.seats, k.turns, k.gone, k.news, k.away, k.recall, k.draw, k.conn, k.dropout, k.leavers,
	}, []any{user, strconv.FormatInt(ticket, 10)})
	if err != nil {
		return err
	}
	r := &reply{script: "leave"}
	if r.int(v) < 0 {
		return q.absent(ctx, sale)
	}
	return r.err
}

// Codes of the entries that the scripts reply; where they overlap with Result they mean the same.
const (
	codeSuccess    = 0
	codeAlready    = -1
	codeSoldOut    = -2
	codeNoTurn     = -3
	codeNotOpen    = -4
	codeLimited    = -5
	codeNoItem     = -6
	codeRecovering = -7
	codeQty        = -8
	codeBarred     = -9
	codeOldRules   = -10
)

// flag is a truth as a script reads it.
func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// seatHead reads what join and look say of the sale.
func (r *reply) seatHead(v any) Seat {
	row := r.list(v, 5)
	return Seat{
		At: r.int(row[0]), State: State(r.text(row[1])), Stock: StockState(r.text(row[2])),
		Epoch: r.int(row[3]), Stopped: r.int(row[4]),
	}
}

// place reads what join and look say of a user.
func (r *reply) place(seat *Seat, sale string, v []any) {
	row := r.list(v, 6)
	seat.Status, seat.Ticket, seat.Number = SeatStatus(r.int(row[0])), r.int(row[1]), r.int(row[2])
	seat.Recalled = r.int(row[5]) == 1
	if deadline := r.int(row[3]); deadline > 0 {
		seat.Deadline = deadline
		seat.Until = deadline + seat.Stopped
	}
	if seat.Status == Buyer {
		seat.Order = r.mark(sale, seat.User, r.text(row[4]))
	}
}

// fill gives every request of a call the same error. What a script did is unknown when its answer was lost.
func fill(errs []error, err error) []error {
	var e *Error
	if !errors.As(err, &e) {
		err = &Error{
			Code:       Unavailable,
			Message:    "the line cannot be reached just now; your place is kept, try again in a moment",
			RetryAfter: time.Second,
			Err:        err,
		}
	}
	for i := range errs {
		errs[i] = err
	}
	return errs
}
