package queue

import (
	"strconv"
	"strings"
)

// EventKind says what happened.
type EventKind int

// What the news tell.
const (
	TurnGiven    EventKind = iota + 1 // seats From to To were called; those given up among them got no turn
	TurnEnded                         // the turns of Numbers ran out unused
	OrderChanged                      // Order is now in Order.Status
	SeatLeft                          // User gave up seat Numbers[0]
)

// Event is one entry of the news of a sale.
type Event struct {
	Kind     EventKind
	From, To int64
	Deadline int64 // of TurnGiven: the end of the turn in sale time
	Numbers  []int64
	User     string
	Order    *Order
}

// event reads an entry of the news stream: id and a flat list of names and values.
func (r *reply) event(sale string, v any) (id int64, e Event) {
	row := r.list(v, 2)
	seq, _, _ := strings.Cut(r.text(row[0]), "-")
	id = r.int(seq)
	pairs := r.list(row[1], 2)
	f := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		f[r.text(pairs[i])] = r.text(pairs[i+1])
	}
	switch f["t"] {
	case "turn":
		e = Event{Kind: TurnGiven, From: r.int(f["f"]), To: r.int(f["l"]), Deadline: r.int(f["d"])}
	case "ended":
		e = Event{Kind: TurnEnded}
		for number := range strings.SplitSeq(f["n"], ",") {
			e.Numbers = append(e.Numbers, r.int(number))
		}
	case "left":
		e = Event{Kind: SeatLeft, User: f["u"], Numbers: []int64{r.int(f["n"])}}
	case "order":
		e = Event{Kind: OrderChanged, User: f["u"], Order: r.mark(sale, f["u"], f["m"])}
		if e.Order != nil {
			e.Order.Status = OrderStatus(f["s"])
		}
	default:
		r.fail("a known kind of news was expected", f["t"]+" in "+strconv.FormatInt(id, 10))
	}
	return id, e
}
