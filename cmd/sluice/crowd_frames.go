package main

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
)

// frame is what a shopper reads of any frame of the server. Fields whose type depends on the type of frame stay raw.
type frame struct {
	Type         string          `json:"type"`
	At           int64           `json:"at"` // ms since the epoch
	ID           string          `json:"id"` // request id
	Seat         string          `json:"seat"`
	Number       int64           `json:"number"`
	Epoch        int64           `json:"epoch"`
	Ahead        *int64          `json:"ahead"`
	Item         string          `json:"item"`
	State        string          `json:"state"`
	Code         string          `json:"code"`
	RetryAfterMS int64           `json:"retry_after_ms"`
	RetryInMS    int64           `json:"retry_in_ms"`
	Order        json.RawMessage `json:"order"` // an order, but of a lobby the order of its line
	Items        []frameItem     `json:"items"`
	Sale         json.RawMessage `json:"sale"`
}

// frameItem is an item in a turn, with what is left of it.
type frameItem struct {
	ID    string `json:"id"`
	Stock *int64 `json:"stock"`
}

// order is the order that the frame carries; its id is empty when there is none.
func (f *frame) order() wireOrder {
	var order wireOrder
	if json.Unmarshal(f.Order, &order) != nil {
		return wireOrder{}
	}
	return order
}

// handle does what a page does with a frame, and says whether the visit is over.
func (s *shopper) handle(f *frame, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outcome != outcomePending {
		return true
	}
	if f.At > 0 {
		s.crowd.times.turns.saw(f.At, now)
	}
	switch f.Type {
	case "welcome":
		s.welcome(f)
	case "stale": // welcome says what became of the seat
	case "moving":
		s.comeBack(time.Duration(f.RetryInMS) * time.Millisecond)
	case "limited", "error":
		s.refused(f)
	default:
		s.reached(f, now)
		s.state(f, now)
	}
	return s.outcome != outcomePending
}

// welcome keeps the seat for the next connection.
func (s *shopper) welcome(f *frame) {
	s.welcomed, s.limited = true, nil
	s.seat = firstOf(f.Seat, s.seat)
	if s.number > 0 && f.Number > 0 && f.Number != s.number {
		s.crowd.counters.moved.Add(1)
	}
	if f.Number != s.number || f.Epoch != s.epoch {
		s.number, s.epoch, s.ahead = f.Number, f.Epoch, -1
	}
	if s.crowd.opts.Item == "" {
		var sale struct {
			Items []frameItem `json:"items"`
		}
		if json.Unmarshal(f.Sale, &sale) == nil && len(sale.Items) > 0 {
			s.items = itemIDs(sale.Items)
		}
	}
}

// reached notes the first state frame of the visit: from here on the shopper is in the sale.
func (s *shopper) reached(f *frame, now time.Time) {
	if s.joined {
		return
	}
	s.joined = true
	s.crowd.counters.joined.Add(1)
	s.crowd.times.join.add(now.Sub(s.dialled))
	if s.leaves {
		// Somebody leaves while waiting, or at the latest instead of taking the turn.
		s.later(rand.N(max(s.crowd.opts.Ramp, time.Second)), s.leave)
	}
}

// state handles a frame that says where the shopper stands.
func (s *shopper) state(f *frame, now time.Time) {
	switch f.Type {
	case "lobby":
		s.wait()
	case "queued":
		s.wait()
		s.place(f)
	case "turn":
		s.turn(f, now)
	case "resumed":
		if s.phase == phaseTurn {
			s.plan()
		}
	case "success":
		s.told(f.order(), now)
	case "already":
		s.already(f.order(), now)
	case "order":
		s.changed(f.order(), now)
	case "sold_out":
		s.none = s.none || f.Item == ""
		s.over(f, now, func() { s.soldOut(f.Item) })
	case "missed":
		s.over(f, now, func() { s.end(outcomeMissed) })
	case "closed":
		s.over(f, now, func() { s.end(outcomeClosed) })
	case "not_open":
		if f.State == "closed" {
			s.over(f, now, func() { s.end(outcomeNotOpen) })
		} else if s.isAnswer(f) {
			s.answered(now) // paused, or too early: the turn is told again when the clock goes on
		}
	case "no_turn":
		if s.isAnswer(f) {
			s.answered(now)
			s.wait()
		}
	}
}

// wait is the shopper in the lobby or the line.
func (s *shopper) wait() {
	if s.phase != phaseWaiting && s.order == "" {
		s.enter(phaseWaiting)
	}
}

// place checks the promise that nobody's place in the line becomes worse.
func (s *shopper) place(f *frame) {
	if f.Ahead == nil {
		return
	}
	if s.ahead >= 0 && *f.Ahead > s.ahead {
		s.crowd.counters.aheadRose.Add(1)
	}
	s.ahead = *f.Ahead
}

// turn is the shopper's turn to grab, also when it is only told again.
func (s *shopper) turn(f *frame, now time.Time) {
	if s.order != "" {
		return
	}
	if !s.admitted {
		s.admitted = true
		s.crowd.counters.admitted.Add(1)
		if f.At > 0 {
			s.crowd.times.turns.add(f.At, now)
		}
	}
	s.enter(phaseTurn)
	s.none = false
	if s.leaves {
		s.leave()
		return
	}
	if s.crowd.opts.Item == "" && len(f.Items) > 0 {
		s.items = itemIDs(f.Items)
		s.gone = nil
		for _, item := range f.Items {
			if item.Stock != nil && *item.Stock <= 0 {
				s.gone = append(s.gone, item.ID)
			}
		}
	}
	if s.request != "" && !s.sent {
		s.grab() // the answer was lost with the last connection: the same id gets it
		return
	}
	s.plan()
}

// plan makes the shopper grab after the time that a person needs to find the button.
func (s *shopper) plan() {
	if s.planned || s.request != "" || s.order != "" {
		return
	}
	s.planned = true
	var delay time.Duration
	if longest := s.crowd.opts.GrabDelay; longest > 0 {
		delay = rand.N(longest)
	}
	s.later(delay, func() {
		if s.request != "" || s.order != "" {
			return
		}
		s.request, s.repeated, s.sentAt = uuid.NewString(), false, time.Now()
		s.item = ""
		if wanted := s.wanted(); len(wanted) > 0 {
			s.item = wanted[rand.IntN(len(wanted))]
		}
		s.grab()
	})
}

// grab sends the pending grab, for the first time or again.
func (s *shopper) grab() {
	s.planned, s.sent, s.limited = true, true, nil
	_ = s.write(struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Item string `json:"item,omitempty"`
		Qty  int64  `json:"qty"`
	}{"grab", s.request, s.item, s.crowd.opts.Qty}) // a failure ends the connection, and the next one repeats the grab
}

// wanted are the items that the shopper would take and that may still be had.
func (s *shopper) wanted() []string {
	return slices.DeleteFunc(slices.Clone(s.items), func(item string) bool { return slices.Contains(s.gone, item) })
}

// isAnswer says whether f answers the pending grab by its id.
func (s *shopper) isAnswer(f *frame) bool {
	return s.request != "" && f.ID == s.request
}

// answered ends the pending grab, if there is one.
func (s *shopper) answered(now time.Time) {
	if s.request != "" {
		s.crowd.times.grab.add(now.Sub(s.sentAt))
	}
	s.request, s.planned, s.sent, s.doubt, s.limited = "", false, false, false, nil
}

// over handles news that end the sale for this shopper: ending does so. While the shopper's own grab is under way, news for
// everyone may overtake its answer, so the shopper waits a little and then believes them. An order stands whatever the news.
func (s *shopper) over(f *frame, now time.Time, ending func()) {
	switch {
	case s.order != "":
	case s.request == "" || !s.sent || s.isAnswer(f):
		if s.isAnswer(f) {
			s.answered(now)
		}
		ending()
	case !s.doubt:
		s.doubt = true
		request := s.request
		s.later(s.crowd.opts.Settle, func() {
			if s.request == request && s.doubt {
				s.answered(now)
				ending()
			}
		})
	}
}

// soldOut strikes an item off, or all of them; who wants another one that may be left tries again. That nothing at all is left
// may have come before the answer about one item.
func (s *shopper) soldOut(item string) {
	if item != "" && !s.none {
		s.gone = append(s.gone, item)
		if len(s.items) > 0 && len(s.wanted()) > 0 {
			if s.phase == phaseTurn {
				s.plan()
			}
			return
		}
	}
	s.end(outcomeSoldOut)
}

// told is the news that the shopper has an order.
func (s *shopper) told(order wireOrder, now time.Time) {
	if order.ID == "" {
		s.fail("success without an order")
		return
	}
	if s.crowd.ledger.told(s.user, order) == 2 && s.order != order.ID {
		s.crowd.counters.duplicates.Add(1)
	}
	s.answered(now)
	if s.order == "" {
		s.order, s.boughtAt = order.ID, now
		s.enter(phaseBuying)
		s.settle(order, now, false)
		return
	}
	s.settle(order, now, true)
}

// settle ends the visit once the order is certain. later says that the shopper knew of it before, so that the time from
// there to its confirmation means something.
func (s *shopper) settle(order wireOrder, now time.Time, later bool) {
	switch order.Status {
	case "confirmed", "paid":
		if later {
			s.crowd.times.confirm.add(now.Sub(s.boughtAt))
		}
		s.end(outcomeSuccess)
	case "rejected", "cancelled", "expired":
		s.end(outcomeUndone)
	}
}

// already is the answer to a grab of somebody who has an order. It may be the shopper's own, whose news were lost.
func (s *shopper) already(order wireOrder, now time.Time) {
	if order.ID != "" && (order.ID == s.order || s.repeated) {
		s.told(order, now)
		return
	}
	s.answered(now)
	s.end(outcomeAlready)
}

// changed is news of an order.
func (s *shopper) changed(order wireOrder, now time.Time) {
	switch {
	case order.ID == "":
	case order.ID == s.order:
		s.crowd.ledger.told(s.user, order)
		s.settle(order, now, true)
	case s.order != "" && order.live():
		s.told(order, now) // a second order
	case s.order != "":
	case s.request != "" && (order.live() || s.repeated):
		s.told(order, now) // the confirmation overtook the answer, or came in its place
	case order.live():
		s.end(outcomeAlready) // bought before this crowd came
	}
}

// refused is the server's wish to be asked again later, or its refusal.
func (s *shopper) refused(f *frame) {
	wait := time.Duration(f.RetryAfterMS) * time.Millisecond
	if f.Type == "error" && wait == 0 && f.Code != "unavailable" {
		s.fail(firstOf(f.Code, "error"))
		return
	}
	s.crowd.counters.limited.Add(1)
	if wait <= 0 {
		wait = time.Second // as the page does
	}
	s.limited = nil
	if f.Type == "limited" && (!s.welcomed || s.request != "") {
		s.limited = errLimited
	}
	wait += rand.N(wait) // those who were refused together must not come back together
	if request := s.request; request != "" && s.sent {
		s.later(wait, func() {
			if s.request == request {
				s.grab()
			}
		})
	} else if !s.welcomed {
		s.later(wait, func() { _ = s.greet() }) // a write that fails ends the connection, which the reader notices
	}
}

// leave is a shopper who has had enough. Under mu.
func (s *shopper) leave() {
	if s.order != "" || s.request != "" {
		return
	}
	if s.n%2 == 0 {
		_ = s.write(struct {
			Type string `json:"type"`
		}{"leave"})
		s.end(outcomeLeft)
		return
	}
	s.closePage(false)
	s.end(outcomeLeft)
}

func itemIDs(items []frameItem) []string {
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return ids
}
