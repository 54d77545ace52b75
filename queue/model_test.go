package queue_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"sluice/queue"
)

// model is a sale in plain Go, written for reading: what the scripts must do, one operation at a time.
type model struct {
	done           map[string]int // how often what was done, over all sales
	order          queue.LineOrder
	limit          int64
	hold, turn     int64 // ms
	rate, active   int64
	ratio          float64
	opens, closes  int64 // ms
	paused         bool
	clock, stopped int64 // ms; sale time is clock − stopped
	tick           int64 // ms of the last tick or control
	stock, total   map[string]int64
	held           int64
	rests          int64 // ms; until when units that came in are off sale
	issued, served int64
	given          int64            // tickets
	numbers        map[string]int64 // user → number; in the lobby of a lottery, ticket
	tickets        map[int64]int64  // number → ticket
	drawn          bool             // the numbers of a lottery are known
	gone           map[int64]bool
	turns          map[int64]int64 // number → deadline in sale time
	grace          int64
	conn           map[int64]map[int]bool // number → the nodes that hold connections
	away           map[int64]int64        // number → since when nobody is there, in sale time
	recall         map[int64]bool
	leases         map[int]int64 // node → end in sale time
	granted        int64
	grants         []grantAt
	winners, past  map[string]queue.Order
	outbox         []string
}

type grantAt struct {
	at, n int64
}

func (m *model) state() queue.State {
	switch {
	case m.clock >= m.closes:
		return queue.Closed
	case m.clock < m.opens, m.undrawn():
		return queue.Lobby
	case m.paused:
		return queue.Paused
	}
	return queue.Open
}

func (m *model) undrawn() bool { return m.order == queue.Lottery && !m.drawn }

// settle moves the sale clock: it runs only while the sale is open and ticks come at least every 2 s.
func (m *model) settle() {
	gap := m.clock - m.tick
	switch {
	case gap < 0 || gap > 2000 || m.paused || m.undrawn():
		m.stopped += gap
	case m.tick < m.opens:
		m.stopped += min(m.clock, m.opens) - m.tick
	}
	m.tick = m.clock
}

// saleTime is what settle would make it, for operations that do not move the clock.
func (m *model) saleTime() int64 {
	c := *m
	c.settle()
	return c.clock - c.stopped
}

func (m *model) units() int64 {
	var n int64
	for _, left := range m.stock {
		n += left
	}
	return n
}

func (m *model) stockState(left int64) queue.StockState {
	switch {
	case left > 0:
		return queue.Available
	case m.held > 0:
		return queue.Held
	}
	return queue.Gone
}

func (m *model) place(user string) (queue.SeatStatus, int64) {
	number := m.numbers[user]
	if _, buyer := m.winners[user]; buyer {
		return queue.Buyer, number
	}
	_, away := m.away[number]
	deadline, called := m.turns[number]
	switch {
	case number == 0:
		return queue.NoSeat, 0
	case m.recall[number]:
		return queue.Waiting, number
	case deadline > m.saleTime():
		return queue.Turn, number
	case m.gone[number]:
		return queue.Absent, number
	case number > m.served, away && !called:
		return queue.Waiting, number
	}
	return queue.Missed, number
}

// join returns whether the user was let in. Who asks is on a node (from 1), polls for some time, or neither.
func (m *model) join(user string, resume bool, node int, poll int64) (status queue.SeatStatus, number int64, refused bool) {
	status, number = m.place(user)
	if (status == queue.NoSeat || status == queue.Missed || status == queue.Absent) && !resume {
		if m.state() == queue.Closed || m.stockState(m.units()) == queue.Gone {
			return 0, 0, true
		}
		if m.order != queue.Off {
			delete(m.conn, number)
			m.issued++
			m.numbers[user] = m.issued
			m.given++
			m.tickets[m.issued] = m.given
			status, number = queue.Waiting, m.issued
		}
	}
	if status == queue.Waiting || status == queue.Turn {
		if node > 0 {
			m.arrive(number, node)
		} else if poll > 0 {
			m.returns(number)
			m.away[number] = m.saleTime() + poll
		}
	}
	return status, number, false
}

// returns ends the absence of a seat.
func (m *model) returns(number int64) {
	_, away := m.away[number]
	_, turn := m.turns[number]
	if away && number <= m.served && !turn {
		m.recall[number] = true
		m.done["recalled"]++
	}
	delete(m.away, number)
}

// arrive adds a connection of a seat.
func (m *model) arrive(number int64, node int) {
	m.returns(number)
	if m.conn[number] == nil {
		m.conn[number] = map[int]bool{}
	}
	m.conn[number][node] = true
}

// depart removes a node from those that hold connections of a seat.
func (m *model) depart(number int64, node int, since int64) {
	if !m.conn[number][node] {
		return
	}
	delete(m.conn[number], node)
	if len(m.conn[number]) > 0 {
		return
	}
	_, turn := m.turns[number]
	_, away := m.away[number]
	if number > m.served && !m.gone[number] || turn || away || m.recall[number] {
		m.away[number] = max(since, m.away[number])
	}
	delete(m.recall, number)
}

// absent says since when nobody of a seat is there.
func (m *model) absent(number int64) (since int64, absent bool) {
	now := m.saleTime()
	for node := range m.conn[number] {
		lease, known := m.leases[node]
		if !known {
			lease = now // it was buried, and has not ticked since
		}
		if lease > now {
			return 0, false
		}
		since = max(since, lease)
	}
	if at, away := m.away[number]; away {
		return at, at <= now
	}
	return since, len(m.conn[number]) > 0
}

// passed notes that a seat was passed because nobody was there.
func (m *model) passed(t *rapid.T, number int64) {
	since, absent := m.absent(number)
	if !absent {
		t.Fatalf("number %d was passed, and somebody was there", number)
	}
	m.away[number] = since
	delete(m.recall, number)
	m.done["passed while away"]++
}

func (m *model) leave(user string, number int64) {
	if m.numbers[user] == number {
		delete(m.numbers, user)
		delete(m.turns, number)
		delete(m.conn, number)
		delete(m.away, number)
		delete(m.recall, number)
		m.gone[number] = true
	}
}

// draw puts the lobby in the order that was drawn: everything that was kept by ticket is kept by number from now on.
func (m *model) draw(order []uint32) {
	live := []int64{}
	for ticket := int64(1); ticket <= m.issued; ticket++ {
		if !m.gone[ticket] {
			live = append(live, ticket)
		}
	}
	before := *m
	m.tickets, m.conn, m.away, m.gone = map[int64]int64{}, map[int64]map[int]bool{}, map[int64]int64{}, map[int64]bool{}
	for place, index := range order {
		number, ticket := int64(place+1), live[index]
		m.tickets[number] = ticket
		if nodes := before.conn[ticket]; nodes != nil {
			m.conn[number] = nodes
		}
		if since, away := before.away[ticket]; away {
			m.away[number] = since
		}
		for user, held := range before.numbers {
			if held == ticket {
				m.numbers = maps.Clone(m.numbers)
				m.numbers[user] = number
			}
		}
	}
	m.settle()
	m.issued, m.drawn = int64(len(order)), true
	m.done["lotteries drawn"]++
	m.done["entries drawn"] += len(order)
}

// shown is the number as it is told: there is none before the draw.
func (m *model) shown(number int64) int64 {
	if m.undrawn() {
		return 0
	}
	return number
}

// ahead counts by looking at every number.
func (m *model) ahead(number int64) int64 {
	var n int64
	for i := m.served + 1; i < number; i++ {
		if !m.gone[i] {
			n++
		}
	}
	return n
}

// waiting are the numbers that wait and of whom somebody is there, in the order in which they are to be called.
func (m *model) waiting() (recalled, line []int64) {
	for number := int64(1); number <= m.issued; number++ {
		if _, absent := m.absent(number); absent {
			continue
		}
		if m.recall[number] {
			recalled = append(recalled, number)
		} else if number > m.served && !m.gone[number] {
			line = append(line, number)
		}
	}
	return recalled, line
}

// admit is one tick of a node: turns that ran out and absences that lasted too long end, and turns are given. How many the
// rate allowed is taken from the snapshot, within the bounds that are checked here.
func (m *model) admit(t *rapid.T, node int, snap *queue.Snapshot, lost queue.Lost) {
	m.settle()
	now := m.saleTime()
	if lapsed := m.leases[node] <= now; lapsed != lost.Lease {
		t.Fatalf("the tick says that the lease was lost: %v, and it ran to %d, now is %d", lost.Lease, m.leases[node], now)
	}
	m.leases[node] = now + 3000
	given := snap.Granted - m.granted
	if m.state() != queue.Open {
		if given != 0 {
			t.Fatalf("turns were given while the sale is %s", m.state())
		}
		return
	}
	for number, deadline := range m.turns {
		if deadline <= now {
			delete(m.turns, number)
			delete(m.away, number)
			m.done["turns ended"]++
		}
	}
	for number, since := range m.away {
		if since <= now-m.grace {
			delete(m.away, number)
			delete(m.turns, number)
			delete(m.recall, number)
			m.gone[number] = true
			m.done["absent"]++
		}
	}
	if m.units() == 0 {
		for number := range m.turns {
			if since, absent := m.absent(number); absent {
				m.away[number] = since
			} else {
				m.recall[number] = true
				m.done["recalled when sold out"]++
			}
		}
		clear(m.turns)
	}

	most := int64(math.MaxInt64)
	if m.active > 0 {
		most = min(most, m.active-int64(len(m.turns)))
	}
	if m.ratio > 0 {
		most = min(most, int64(m.ratio*float64(m.units()))-int64(len(m.turns)))
	}
	if m.units() == 0 || m.order == queue.Off {
		most = 0
	}
	recalled, line := m.waiting()
	next := append(recalled, line...)
	if given < 0 || given > max(0, most) || given > int64(len(next)) {
		t.Fatalf("%d turns were given: %d may be out more, and %d wait", given, most, len(next))
	}
	if m.rate == 0 && given != min(max(0, most), int64(len(next)), 1000) {
		t.Fatalf("%d turns were given where %d could be, to %v; of the numbers %v are away", given, min(max(0, most), int64(len(next))), next, m.away)
	}
	if m.rate > 0 {
		sum := given
		for _, g := range m.grants {
			if g.at > m.clock-1000 {
				sum += g.n
			}
		}
		if given > 0 && sum > m.rate {
			t.Fatalf("%d turns in a second at a rate of %d", sum, m.rate)
		}
	}
	m.grants = append(m.grants, grantAt{m.clock, given})
	m.granted = snap.Granted

	// The first who wait are called. Whoever else was passed had nobody there.
	for _, number := range next[:given] {
		delete(m.recall, number)
	}
	for number := range m.recall {
		if !snap.IsRecalled(number) {
			m.passed(t, number)
		}
	}
	for number := m.served + 1; number <= snap.Served; number++ {
		if !m.gone[number] && !slices.Contains(next[:given], number) {
			m.passed(t, number)
		}
	}
	for _, number := range next[:given] {
		if number > snap.Served {
			t.Fatalf("number %d has a turn, and the cursor is at %d", number, snap.Served)
		}
		m.turns[number] = now + m.turn
		m.done["turns"]++
	}
	m.served = max(m.served, snap.Served)
}

// bury is what follows a tick: whoever holds connections of dead nodes only is away since they died.
func (m *model) bury() {
	now := m.saleTime()
	for number, nodes := range m.conn {
		since := int64(0)
		for node := range nodes {
			if lease, known := m.leases[node]; known && lease <= now {
				since = max(since, lease)
			}
		}
		for node := range maps.Clone(nodes) {
			if lease, known := m.leases[node]; known && lease <= now {
				m.depart(number, node, since)
			}
		}
	}
	for node, lease := range m.leases {
		if lease <= now {
			delete(m.leases, node)
		}
	}
}

func (m *model) grab(user, item, request string, qty int64) (result queue.Result, left int64, stock queue.StockState, replay bool, code queue.Code) {
	if won, ok := m.winners[user]; ok {
		if won.RequestID == request {
			return queue.Success, 0, "", true, ""
		}
		return queue.Already, 0, "", false, ""
	}
	if past, ok := m.past[user]; ok && past.RequestID == request {
		return queue.Success, 0, "", true, ""
	}
	if m.state() != queue.Open {
		return queue.NotOpen, 0, "", false, ""
	}
	left, known := m.stock[item]
	switch {
	case !known:
		return 0, 0, "", false, queue.NoSuchItem
	case left == 0:
		return queue.SoldOut, 0, m.stockState(0), false, ""
	case m.order == queue.Off && m.clock < m.rests:
		return queue.SoldOut, 0, queue.Held, false, ""
	case m.order != queue.Off && m.turns[m.numbers[user]] <= m.saleTime():
		return queue.NoTurn, 0, "", false, ""
	case qty < 1 || qty > m.limit:
		return 0, 0, "", false, queue.Invalid
	case left < qty:
		return queue.SoldOut, left, m.stockState(left), false, ""
	}
	m.stock[item] -= qty
	if m.hold > 0 {
		m.held += qty
	}
	delete(m.turns, m.numbers[user])
	delete(m.away, m.numbers[user])
	return queue.Success, 0, "", false, ""
}

// supply is called before units come in.
func (m *model) supply() {
	if m.units() == 0 {
		m.rests = m.clock + 1000
	}
}

func (m *model) release(user string) {
	m.supply()
	won := m.winners[user]
	m.stock[won.Item] += won.Qty
	if won.PayBy > 0 {
		m.held -= won.Qty
	}
	m.past[user] = won
	delete(m.winners, user)
}

// TestRandomOperationsAgreeWithAPlainModel drives a sale with random operations over several nodes and compares every reply,
// and in the end everything that Redis holds, with the model. A million operations take some minutes:
//
//	go test ./queue -run RandomOperations -v -timeout 1h -rapid.checks=5000
func TestRandomOperationsAgreeWithAPlainModel(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		checkModel(t, realForModel)
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		checkModel(t, embeddedForModel)
	})
}

func checkModel(t *testing.T, make func(*rapid.T) modelLine) {
	done := map[string]int{}
	rapid.Check(t, func(t *rapid.T) { compareWithModel(t, make(t), done) })
	for _, what := range []string{"operations", "turns", "turns ended", "passed while away", "recalled", "absent", "orders", "lotteries drawn"} {
		if done[what] == 0 {
			t.Errorf("nothing was seen of: %s", what)
		}
	}
	t.Logf("what was done: %v", done)
}

// realForModel is a line on a real Redis, in a sale of its own and with a clock that the model moves.
func realForModel(t *rapid.T) modelLine {
	rdb := connect(t, os.Getenv("SLUICE_TEST_REDIS"))
	t.Cleanup(func() { rdb.Close() })
	key := "clock-" + saleID()
	l := modelLine{
		setTime: func(at time.Time) {
			if err := rdb.Set(context.Background(), key, at.UnixMicro(), time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		},
		drop: func(sale string) {
			ctx := context.Background()
			rdb.Del(ctx, append(queue.KeysOf(sale), key)...)
			rdb.SRem(ctx, "sluice:sales", sale)
		},
	}
	for range 3 {
		q := queue.New(rdb, queue.Options{})
		queue.SetClock(q, key)
		l.nodes = append(l.nodes, q)
	}
	return l
}

// embeddedForModel is a line on an embedded Redis whose clock the model moves.
func embeddedForModel(t *rapid.T) modelLine {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	rdb := connect(t, "redis://"+m.Addr())
	t.Cleanup(func() { rdb.Close(); m.Close() })
	l := modelLine{setTime: m.SetTime, drop: func(string) {}}
	for range 3 {
		l.nodes = append(l.nodes, queue.New(rdb, queue.Options{Embedded: true}))
	}
	return l
}

// pick draws a user, in three of four draws one of those that something can happen to, if there is any.
func pick(t *rapid.T, users []string, likely func(string) bool) string {
	if rapid.IntRange(0, 3).Draw(t, "any") > 0 {
		some := slices.DeleteFunc(slices.Clone(users), func(u string) bool { return !likely(u) })
		if len(some) > 0 {
			return rapid.SampledFrom(some).Draw(t, "user")
		}
	}
	return rapid.SampledFrom(users).Draw(t, "user")
}

// modelLine is a line for rapid, whose T is not a testing.T.
type modelLine struct {
	nodes   []*queue.Queue
	setTime func(time.Time)
	drop    func(sale string)
}

func compareWithModel(t *rapid.T, l modelLine, done map[string]int) {
	ctx := t.Context()
	any := func() *queue.Queue { return l.nodes[rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")] }
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &model{
		order: rapid.SampledFrom([]queue.LineOrder{queue.FIFO, queue.FIFO, queue.Lottery, queue.Lottery, queue.Off}).Draw(t, "order"),
		limit: rapid.Int64Range(1, 3).Draw(t, "limit"),
		hold:  rapid.SampledFrom([]int64{0, 60_000}).Draw(t, "hold"),
		turn:  rapid.SampledFrom([]int64{1000, 5000}).Draw(t, "turn"),
		rate:  rapid.SampledFrom([]int64{0, 0, 3, 20}).Draw(t, "rate"), active: rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "active"),
		ratio: rapid.SampledFrom([]float64{0, 1, 2.5}).Draw(t, "ratio"),
		done:  done, clock: start.UnixMilli(), tick: start.UnixMilli(), opens: start.UnixMilli() + rapid.SampledFrom([]int64{-1000, -1000, 500}).Draw(t, "opens"), closes: start.UnixMilli() + 600_000,
		stock: map[string]int64{}, total: map[string]int64{}, numbers: map[string]int64{}, gone: map[int64]bool{},
		tickets: map[int64]int64{}, turns: map[int64]int64{}, grace: rapid.SampledFrom([]int64{1000, 5000, 100_000}).Draw(t, "grace"),
		conn: map[int64]map[int]bool{}, away: map[int64]int64{}, recall: map[int64]bool{}, leases: map[int]int64{},
		winners: map[string]queue.Order{}, past: map[string]queue.Order{},
	}
	l.setTime(start)
	sale := queue.Sale{
		ID: saleID(), OpensAt: time.UnixMilli(m.opens), ClosesAt: time.UnixMilli(m.closes), Limit: m.limit,
		Hold: queue.Duration(m.hold * 1e6),
		Line: queue.Line{Order: m.order, Rate: m.rate, Active: m.active, Ratio: m.ratio, Turn: queue.Duration(m.turn * 1e6), Grace: queue.Duration(m.grace * 1e6)},
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "items") {
		item := queue.Item{ID: fmt.Sprint("item-", i), Stock: rapid.SampledFrom([]int64{0, 1, 3, 20, 20}).Draw(t, "stock")}
		sale.Items = append(sale.Items, item)
		m.stock[item.ID], m.total[item.ID] = item.Stock, item.Stock
	}
	must := func(err error, what string) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	defer l.drop(sale.ID)
	must(l.nodes[0].Restore(ctx, sale, queue.Reach{}, noOrders), "start")
	ticks := make([]func(context.Context) (*queue.Snapshot, queue.Lost, error), len(l.nodes))
	for i, node := range l.nodes {
		ticks[i] = queue.NewNodeTicker(node, sale.ID)
	}
	users := make([]string, 10)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	user := rapid.SampledFrom(users)
	lastAhead := map[int64]int64{}

	actions := map[string]func(*rapid.T){
		"time passes with ticks": func(t *rapid.T) {
			nodes := rapid.IntRange(1, len(l.nodes)).Draw(t, "nodes that live")
			for range rapid.IntRange(1, 6).Draw(t, "seconds") {
				m.clock += 1000
				l.setTime(time.UnixMilli(m.clock))
				for node := range nodes {
					snap, lost, err := ticks[node](ctx)
					must(err, "tick")
					m.admit(t, node+1, snap, lost)
					m.bury()
				}
			}
		},
		"time passes": func(t *rapid.T) {
			m.clock += rapid.SampledFrom([]int64{1, 50, 100, 500, 1000, 1000, 2000, 2500, 30_000}).Draw(t, "ms")
			l.setTime(time.UnixMilli(m.clock))
		},
		"join": func(t *rapid.T) {
			u, resume := user.Draw(t, "user"), rapid.Bool().Draw(t, "resume")
			req := queue.JoinRequest{Sale: sale.ID, User: u}
			if m.order == queue.Lottery {
				leaf := queue.Leaf(u, [16]byte{})
				req.Leaf = leaf[:]
			}
			if resume {
				req.Resume = rapid.SampledFrom([]int64{queue.ResumeAny, max(1, m.tickets[m.numbers[u]])}).Draw(t, "which")
			}
			node := rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")
			connected := 0
			if rapid.IntRange(0, 3).Draw(t, "how") > 0 {
				req.Connected, connected = true, node+1
			} else if rapid.Bool().Draw(t, "poll") {
				req.Poll = 2 * time.Second
			}
			status, number, refused := m.join(u, resume, connected, req.Poll.Milliseconds())
			seat, err := l.nodes[node].Join(ctx, req)
			if refused {
				if queue.CodeOf(err) != queue.Conflict {
					t.Fatalf("joining got %+v %v, want a refusal", seat, err)
				}
				return
			}
			must(err, "join")
			if seat.Status != status || seat.Number != m.shown(number) || seat.Ticket != m.tickets[number] || seat.State != m.state() || seat.Recalled != m.recall[number] {
				t.Fatalf("joining got %+v, want status %d, number %d in %s", seat, status, number, m.state())
			}
		},
		"connections drop": func(t *rapid.T) {
			node := rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")
			for _, number := range slices.Sorted(maps.Keys(m.conn)) {
				if m.conn[number][node+1] && rapid.Bool().Draw(t, "drops") {
					for range rapid.IntRange(1, 2).Draw(t, "times") {
						m.depart(number, node+1, m.saleTime())
						must(l.nodes[node].Tell(ctx, sale.ID, []queue.Presence{{Ticket: m.tickets[number]}}), "drop")
					}
				}
			}
		},
		"a node says again who is there": func(t *rapid.T) {
			node := rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")
			for _, number := range slices.Sorted(maps.Keys(m.conn)) {
				if m.conn[number][node+1] {
					m.arrive(number, node+1)
					must(l.nodes[node].Tell(ctx, sale.ID, []queue.Presence{{Ticket: m.tickets[number], Here: true}}), "say again")
				}
			}
		},
		"leave": func(t *rapid.T) {
			u := user.Draw(t, "user")
			number := m.numbers[u] - rapid.Int64Range(0, 1).Draw(t, "stale")
			if number <= 0 {
				return
			}
			ticket := m.tickets[number]
			if ticket == 0 {
				return // of an entry that was not drawn
			}
			m.leave(u, number)
			must(any().Leave(ctx, sale.ID, u, ticket), "leave")
		},
		"tick": func(t *rapid.T) {
			node := rapid.IntRange(0, len(l.nodes)-1).Draw(t, "node")
			snap, lost, err := ticks[node](ctx)
			must(err, "tick")
			m.admit(t, node+1, snap, lost)
			issued := m.issued
			if m.undrawn() {
				issued -= int64(len(m.gone))
			}
			if snap.State != m.state() || snap.Served < m.served || snap.Issued != issued || snap.Turns != int64(len(m.turns)) ||
				snap.Units() != m.units() || snap.Held != m.held || snap.Stopped != m.stopped {
				t.Fatalf("the snapshot %+v is not the model's: %s served %d issued %d turns %d units %d held %d stopped %d",
					snap, m.state(), m.served, m.issued, len(m.turns), m.units(), m.held, m.stopped)
			}
			if m.undrawn() {
				if snap.Waiting() != issued {
					t.Fatalf("%d take part, want %d", snap.Waiting(), issued)
				}
				m.bury()
				return
			}
			var recalled int64
			for number := int64(1); number <= m.issued; number++ {
				if snap.RecalledBefore(number) != recalled {
					t.Fatalf("%d are recalled before %d, want %d", snap.RecalledBefore(number), number, recalled)
				}
				if m.recall[number] {
					recalled++
				}
			}
			if snap.Waiting() != m.ahead(m.issued+1)+recalled {
				t.Fatalf("%d wait, want %d and %d recalled", snap.Waiting(), m.ahead(m.issued+1), recalled)
			}
			for number := m.served + 1; number <= m.issued; number++ {
				ahead := snap.Ahead(number)
				if want := m.ahead(number); ahead != want {
					t.Fatalf("%d are ahead of %d, want %d", ahead, number, want)
				}
				if before, seen := lastAhead[number]; seen && ahead > before {
					t.Fatalf("%d are ahead of %d, and there were %d before", ahead, number, before)
				}
				lastAhead[number] = ahead
			}
			m.bury()
		},
		"grab": func(t *rapid.T) {
			u := pick(t, users, func(u string) bool { return m.turns[m.numbers[u]] > 0 })
			item := rapid.SampledFrom([]string{"item-0", "item-0", "item-0", "item-0", "item-1", "none"}).Draw(t, "item")
			request := rapid.SampledFrom([]string{"r1", "r1", "r2"}).Draw(t, "request")
			qty := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 3, 0}).Draw(t, "qty")
			result, left, stock, replay, code := m.grab(u, item, request, qty)
			node := any()
			queue.AgeLatch(node, sale.ID) // what a node says without Redis is as old as its last tick, and has tests of its own
			g, err := node.Grab(ctx, queue.GrabRequest{Sale: sale.ID, User: u, Item: item, Qty: qty, RequestID: request})
			if code != "" {
				if queue.CodeOf(err) != code {
					t.Fatalf("the grab got %+v %v, want %s", g, err, code)
				}
				return
			}
			must(err, "grab")
			if g.Result != result || g.Replay != replay || g.Left != left || stock != "" && g.Stock != stock {
				t.Fatalf("the grab got %+v, want %s, left %d, stock %q, replay %v", g, result, left, stock, replay)
			}
			switch {
			case result == queue.Success && !replay:
				if _, taken := m.winners[u]; taken || g.Order.Qty != qty || g.Order.Item != item {
					t.Fatalf("the order is %+v", g.Order)
				}
				m.winners[u] = *g.Order
				m.outbox = append(m.outbox, g.Order.ID)
				m.done["orders"]++
			case result == queue.Success || result == queue.Already:
				want, live := m.winners[u]
				if !live {
					want = m.past[u]
				}
				if *g.Order != want || g.Ended == live && replay {
					t.Fatalf("the answer names %+v, want %+v", g.Order, want)
				}
			}
		},
		"an order ends": func(t *rapid.T) {
			u := pick(t, users, func(u string) bool { return m.winners[u].ID != "" })
			order, live := m.winners[u]
			if !live {
				order = m.past[u]
			} else {
				m.release(u)
			}
			if order.ID == "" {
				return
			}
			released, err := any().Release(ctx, sale.ID, []queue.Order{order})
			must(err, "release")
			if released[0] != live {
				t.Fatalf("released %v, want %v", released, live)
			}
		},
		"an order is paid": func(t *rapid.T) {
			u := pick(t, users, func(u string) bool { return m.winners[u].ID != "" })
			order, live := m.winners[u]
			if !live {
				return
			}
			if order.PayBy > 0 {
				m.held -= order.Qty
			}
			order.PayBy = 0
			m.winners[u] = order
			order.Status = queue.Paid
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				got, err := any().Adopt(ctx, sale.ID, []queue.Order{order})
				must(err, "adopt a paid order")
				if got[0] != queue.Marked {
					t.Fatalf("adopting a paid order did %d", got[0])
				}
			}
		},
		"the database knows an order": func(t *rapid.T) {
			u := pick(t, users, func(u string) bool { return m.winners[u].ID+m.past[u].ID != "" })
			order, live := m.winners[u]
			want := queue.Marked
			if !live {
				if order = m.past[u]; order.ID == "" {
					return
				}
				want = queue.Released
			}
			got, err := any().Adopt(ctx, sale.ID, []queue.Order{order})
			must(err, "adopt")
			if got[0] != want {
				t.Fatalf("adopting a known order did %d, want %d", got[0], want)
			}
		},
		"the lottery is drawn": func(t *rapid.T) {
			draw, due, err := any().Freeze(ctx, queue.Draw{Sale: sale.ID})
			must(err, "freeze")
			if want := m.state() == queue.Lobby && m.undrawn() && m.clock >= m.opens && !m.paused; due != want {
				t.Fatalf("the draw is due: %v, want %v", due, want)
			}
			if !due {
				return
			}
			leaves := 0
			must(any().Entries(ctx, &draw, func(page []queue.DrawEntry) error {
				leaves += len(page)
				return nil
			}), "read the entries")
			draw.Root, draw.Seed = [32]byte{1}, [32]byte{rapid.Byte().Draw(t, "seed"), 1}
			if want := m.issued - int64(len(m.gone)); draw.Live != want || int64(leaves) != want || draw.Tickets != m.issued {
				t.Fatalf("%d of %d tickets with %d entries take part, want %d of %d", draw.Live, draw.Tickets, leaves, want, m.issued)
			}
			for range rapid.IntRange(1, 2).Draw(t, "times") {
				must(any().Draw(ctx, draw, draw.Table(queue.Lottery)), "draw")
			}
			m.draw(queue.DrawOrder(draw.Seed, int(draw.Live)))
		},
		"pause": func(t *rapid.T) {
			if m.state() == queue.Closed {
				return
			}
			m.settle()
			m.paused = true
			_, err := any().Pause(ctx, sale.ID)
			must(err, "pause")
		},
		"resume": func(t *rapid.T) {
			if m.state() == queue.Closed {
				return
			}
			m.settle()
			m.paused = false
			_, err := any().Resume(ctx, sale.ID)
			must(err, "resume")
		},
		"the figures of the line change": func(t *rapid.T) {
			line := &sale.Line
			line.Rate = rapid.SampledFrom([]int64{0, 3, 20}).Draw(t, "rate")
			line.Active = rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "active")
			line.Ratio = rapid.SampledFrom([]float64{0, 1, 2.5}).Draw(t, "ratio")
			m.rate, m.active, m.ratio = line.Rate, line.Active, line.Ratio
			must(any().Apply(ctx, sale), "apply")
		},
		"the stock changes": func(t *rapid.T) {
			i := rapid.IntRange(0, len(sale.Items)-1).Draw(t, "item")
			item := &sale.Items[i]
			total := max(0, item.Stock+rapid.Int64Range(-3, 3).Draw(t, "by"))
			changed := sale
			changed.Items = slices.Clone(sale.Items)
			changed.Items[i].Stock = total
			err := any().Apply(ctx, changed)
			if m.stock[item.ID]+total-m.total[item.ID] < 0 {
				if queue.CodeOf(err) != queue.Conflict {
					t.Fatalf("a total below what was sold got %v", err)
				}
				return
			}
			must(err, "apply")
			if total > m.total[item.ID] {
				m.supply()
			}
			m.stock[item.ID] += total - m.total[item.ID]
			m.total[item.ID] = total
			item.Stock = total
		},
		"": func(t *rapid.T) {
			m.done["operations"]++
			balance, err := l.nodes[0].Balance(ctx, sale.ID)
			must(err, "balance")
			for _, item := range balance.Items {
				if item.Stock != m.stock[item.Item] || item.Total != m.total[item.Item] || item.Stock+item.Winners != item.Total || item.Stock < 0 {
					t.Fatalf("the balance is %+v, the model has %d of %d left", item, m.stock[item.Item], m.total[item.Item])
				}
			}
			seats, err := l.nodes[0].LookMany(ctx, sale.ID, users)
			must(err, "look")
			for i, u := range users {
				status, number := m.place(u)
				seat := seats[i]
				if seat.Status != status || seat.Number != m.shown(number) {
					t.Fatalf("%s has %+v, want status %d and number %d", u, seat, status, number)
				}
			}
		},
	}
	// What moves a line comes more often than the rest.
	actions["join again"], actions["tick again"], actions["grab again"] = actions["join"], actions["tick"], actions["grab"]
	actions["the lottery is drawn at last"] = actions["the lottery is drawn"]
	actions["join once more"], actions["time passes with ticks again"] = actions["join"], actions["time passes with ticks"]
	for range 4 {
		t.Repeat(actions)
	}

	waiting, err := l.nodes[0].OutboxIDs(ctx, sale.ID)
	must(err, "outbox")
	if len(waiting) != len(m.outbox) {
		t.Fatalf("%d orders are in the outbox, want %d", len(waiting), len(m.outbox))
	}
	for _, id := range m.outbox {
		if !waiting[id] {
			t.Fatalf("the order %s is not in the outbox", id)
		}
	}
}
