package queue

import (
	"strconv"
	"strings"

	"sluice/trace"
)

// EventKind says what happened.
type EventKind int

// What the news tell.
const (
	TurnGiven    EventKind = iota + 1 // the seats of Numbers were called
	TurnEnded                         // the turns of Numbers ran out unused
	OrderChanged                      // Order is now in Order.Status
	SeatLeft                          // User gave up the seat with the ticket Numbers[0]
	SeatRecalled                      // the seats of Numbers are called again before the line
	SeatAbsent                        // the seats of Numbers are gone: nobody of them came back within the grace
)

// Event is one entry of the news of a sale.
type Event struct {
	Kind     EventKind
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
		e = Event{Kind: TurnGiven, Numbers: r.numbers(f["n"]), Deadline: r.int(f["d"])}
	case "ended":
		e = Event{Kind: TurnEnded, Numbers: r.numbers(f["n"])}
	case "recall":
		e = Event{Kind: SeatRecalled, Numbers: r.numbers(f["n"])}
	case "absent":
		e = Event{Kind: SeatAbsent, Numbers: r.numbers(f["n"])}
	case "left":
		e = Event{Kind: SeatLeft, User: f["u"], Numbers: []int64{r.int(f["n"])}}
	case "order":
		e = Event{Kind: OrderChanged, User: f["u"], Order: r.mark(sale, f["u"], f["m"])}
		if e.Order != nil {
			e.Order.Status = OrderStatus(f["s"])
			e.Order.Trace = trace.Valid(f["c"])
		}
	default:
		r.fail("a known kind of news was expected", f["t"]+" in "+strconv.FormatInt(id, 10))
	}
	return id, e
}

// numbers reads a list of numbers.
func (r *reply) numbers(text string) []int64 {
	numbers := make([]int64, 0, 1+strings.Count(text, ","))
	for number := range strings.SplitSeq(text, ",") {
		numbers = append(numbers, r.int(number))
	}
	return numbers
}
