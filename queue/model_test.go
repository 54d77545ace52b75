package queue_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"pgregory.net/rapid"

	"sluice/queue"
)

// model is a sale in plain Go, written for reading: what the scripts must do, one operation at a time.
type model struct {
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
	issued, served int64
	numbers        map[string]int64 // user → number
	gone           map[int64]bool
	turns          map[int64]int64 // number → deadline in sale time
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
	case m.clock < m.opens:
		return queue.Lobby
	case m.paused:
		return queue.Paused
	}
	return queue.Open
}

// settle moves the sale clock: it runs only while the sale is open and ticks come at least every 2 s.
func (m *model) settle() {
	gap := m.clock - m.tick
	switch {
	case gap < 0 || gap > 2000 || m.paused:
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
	switch {
	case number == 0:
		return queue.NoSeat, 0
	case number > m.served:
		return queue.Waiting, number
	case m.turns[number] > m.saleTime():
		return queue.Turn, number
	}
	return queue.Missed, number
}

// join returns whether the user was let in.
func (m *model) join(user string, resume bool) (status queue.SeatStatus, number int64, refused bool) {
	status, number = m.place(user)
	if (status == queue.NoSeat || status == queue.Missed) && !resume {
		if m.state() == queue.Closed || m.stockState(m.units()) == queue.Gone {
			return 0, 0, true
		}
		if m.order != queue.Off {
			m.issued++
			m.numbers[user] = m.issued
			return queue.Waiting, m.issued, false
		}
	}
	return status, number, false
}

func (m *model) leave(user string, number int64) {
	if m.numbers[user] == number {
		delete(m.numbers, user)
		delete(m.turns, number)
		m.gone[number] = true
	}
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

// admit ends turns and gives new ones, as one tick does. Turns given by rate are taken from the snapshot, within the
// bounds that are checked here.
func (m *model) admit(t *rapid.T, granted int64) {
	m.settle()
	if m.state() != queue.Open {
		if granted != m.granted {
			t.Fatalf("turns were given while the sale is %s", m.state())
		}
		return
	}
	for number, deadline := range m.turns {
		if deadline <= m.clock-m.stopped {
			delete(m.turns, number)
		}
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
	waiting := m.ahead(m.issued + 1)
	given := granted - m.granted
	if given < 0 || given > max(0, most) || given > waiting {
		t.Fatalf("%d turns were given: %d may be out more, and %d wait", given, most, waiting)
	}
	if m.rate == 0 && given != min(max(0, most), waiting, 1000) {
		t.Fatalf("%d turns were given where %d could be", given, min(max(0, most), waiting))
	}
	if m.rate > 0 {
		sum := given
		for _, g := range m.grants {
			if g.at > m.clock-1000 {
				sum += g.n
			}
		}
		if sum > m.rate {
			t.Fatalf("%d turns in a second at a rate of %d", sum, m.rate)
		}
	}
	m.grants = append(m.grants, grantAt{m.clock, given})
	for range given {
		m.served++
		for m.gone[m.served] {
			m.served++
		}
		m.turns[m.served] = m.clock - m.stopped + m.turn
	}
	m.granted = granted
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
	if m.order != queue.Off && m.turns[m.numbers[user]] <= m.saleTime() {
		return queue.NoTurn, 0, "", false, ""
	}
	left, known := m.stock[item]
	switch {
	case !known:
		return 0, 0, "", false, queue.NoSuchItem
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
	return queue.Success, 0, "", false, ""
}

func (m *model) release(user string) {
	won := m.winners[user]
	m.stock[won.Item] += won.Qty
	if won.PayBy > 0 {
		m.held -= won.Qty
	}
	m.past[user] = won
	delete(m.winners, user)
}

// TestRandomOperationsAgreeWithAPlainModel drives a sale with random operations and compares every reply, and in the end
// everything that Redis holds, with the model.
func TestRandomOperationsAgreeWithAPlainModel(t *testing.T) {
	t.Parallel()
	t.Run("embedded, with a clock that jumps", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) { compareWithModel(t, embeddedForModel(t)) })
	})
	t.Run("redis, whose clock runs by itself", func(t *testing.T) {
		t.Parallel()
		l := realLine(t, queue.Options{})
		rapid.Check(t, func(t *rapid.T) { compareWithModel(t, modelLine{Queue: l.Queue, drop: l.drop}) })
	})
}

// embeddedForModel is a line on an embedded Redis whose clock the model moves.
func embeddedForModel(t *rapid.T) modelLine {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	rdb := connect(t, "redis://"+m.Addr())
	t.Cleanup(func() { rdb.Close(); m.Close() })
	return modelLine{Queue: queue.New(rdb, queue.Options{Embedded: true}), setTime: m.SetTime, drop: func(string) {}}
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
	*queue.Queue
	setTime func(time.Time) // nil = the clock cannot be moved: nothing runs out while the model is compared
	drop    func(sale string)
}

func compareWithModel(t *rapid.T, l modelLine) {
	ctx := t.Context()
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &model{
		order: rapid.SampledFrom([]queue.LineOrder{queue.FIFO, queue.FIFO, queue.FIFO, queue.Off}).Draw(t, "order"),
		limit: rapid.Int64Range(1, 3).Draw(t, "limit"),
		hold:  rapid.SampledFrom([]int64{0, 60_000}).Draw(t, "hold"),
		turn:  rapid.SampledFrom([]int64{1000, 5000}).Draw(t, "turn"),
		rate:  rapid.SampledFrom([]int64{0, 0, 3, 20}).Draw(t, "rate"), active: rapid.SampledFrom([]int64{0, 2, 5}).Draw(t, "active"),
		ratio: rapid.SampledFrom([]float64{0, 1, 2.5}).Draw(t, "ratio"),
		clock: start.UnixMilli(), tick: start.UnixMilli(), opens: start.UnixMilli() + 500, closes: start.UnixMilli() + 600_000,
		stock: map[string]int64{}, total: map[string]int64{}, numbers: map[string]int64{}, gone: map[int64]bool{},
		turns: map[int64]int64{}, winners: map[string]queue.Order{}, past: map[string]queue.Order{},
	}
	if l.setTime == nil {
		start = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
		m.opens, m.closes, m.clock, m.tick = start.UnixMilli(), start.UnixMilli()+3600_000, start.UnixMilli(), start.UnixMilli()
		m.rate, m.turn = 0, 3600_000
	} else {
		l.setTime(start)
	}
	sale := queue.Sale{
		ID: saleID(), OpensAt: time.UnixMilli(m.opens), ClosesAt: time.UnixMilli(m.closes), Limit: m.limit,
		Hold: queue.Duration(m.hold * 1e6),
		Line: queue.Line{Order: m.order, Rate: m.rate, Active: m.active, Ratio: m.ratio, Turn: queue.Duration(m.turn * 1e6)},
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "items") {
		item := queue.Item{ID: fmt.Sprint("item-", i), Stock: rapid.SampledFrom([]int64{0, 1, 3, 8, 8}).Draw(t, "stock")}
		sale.Items = append(sale.Items, item)
		m.stock[item.ID], m.total[item.ID] = item.Stock, item.Stock
	}
	must := func(err error, what string) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	defer l.drop(sale.ID)
	must(l.Restore(ctx, sale, queue.Reach{}, noOrders), "start")
	tick := queue.NewTicker(l.Queue, sale.ID)
	users := make([]string, 8)
	for i := range users {
		users[i] = fmt.Sprint("u", i)
	}
	user := rapid.SampledFrom(users)
	lastAhead := map[int64]int64{}

	t.Repeat(map[string]func(*rapid.T){
		"time passes": func(t *rapid.T) {
			if l.setTime == nil {
				return
			}
			m.clock += rapid.SampledFrom([]int64{1, 50, 100, 500, 1000, 1000, 2000, 2500, 30_000}).Draw(t, "ms")
			l.setTime(time.UnixMilli(m.clock))
		},
		"join": func(t *rapid.T) {
			u, resume := user.Draw(t, "user"), rapid.Bool().Draw(t, "resume")
			req := queue.JoinRequest{Sale: sale.ID, User: u}
			if resume {
				req.Resume = max(1, m.numbers[u])
			}
			status, number, refused := m.join(u, resume)
			seat, err := l.Join(ctx, req)
			if refused {
				if queue.CodeOf(err) != queue.Conflict {
					t.Fatalf("joining got %+v %v, want a refusal", seat, err)
				}
				return
			}
			must(err, "join")
			if seat.Status != status || seat.Number != number || seat.State != m.state() {
				t.Fatalf("joining got %+v, want status %d, number %d in %s", seat, status, number, m.state())
			}
		},
		"leave": func(t *rapid.T) {
			u := user.Draw(t, "user")
			number := m.numbers[u] - rapid.Int64Range(0, 1).Draw(t, "stale")
			if number <= 0 {
				return
			}
			m.leave(u, number)
			must(l.Leave(ctx, sale.ID, u, number), "leave")
		},
		"tick": func(t *rapid.T) {
			snap, err := tick(ctx)
			must(err, "tick")
			m.admit(t, snap.Granted)
			if snap.State != m.state() || snap.Served < m.served || snap.Issued != m.issued || snap.Turns != int64(len(m.turns)) ||
				snap.Units() != m.units() || snap.Held != m.held || l.setTime != nil && snap.Stopped != m.stopped {
				t.Fatalf("the snapshot %+v is not the model's: %s served %d issued %d turns %d units %d held %d stopped %d",
					snap, m.state(), m.served, m.issued, len(m.turns), m.units(), m.held, m.stopped)
			}
			m.served = snap.Served // numbers given up behind the last one called may be passed as well
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
		},
		"grab": func(t *rapid.T) {
			u := pick(t, users, func(u string) bool { return m.turns[m.numbers[u]] > 0 })
			item := rapid.SampledFrom([]string{"item-0", "item-0", "item-0", "item-0", "item-1", "none"}).Draw(t, "item")
			request := rapid.SampledFrom([]string{"r1", "r1", "r2"}).Draw(t, "request")
			qty := rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 3, 0}).Draw(t, "qty")
			result, left, stock, replay, code := m.grab(u, item, request, qty)
			g, err := l.Grab(ctx, queue.GrabRequest{Sale: sale.ID, User: u, Item: item, Qty: qty, RequestID: request})
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
			released, err := l.Release(ctx, sale.ID, []queue.Order{order})
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
				got, err := l.Adopt(ctx, sale.ID, []queue.Order{order})
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
			got, err := l.Adopt(ctx, sale.ID, []queue.Order{order})
			must(err, "adopt")
			if got[0] != want {
				t.Fatalf("adopting a known order did %d, want %d", got[0], want)
			}
		},
		"pause": func(t *rapid.T) {
			if m.state() == queue.Closed {
				return
			}
			m.settle()
			m.paused = true
			_, err := l.Pause(ctx, sale.ID)
			must(err, "pause")
		},
		"resume": func(t *rapid.T) {
			if m.state() == queue.Closed {
				return
			}
			m.settle()
			m.paused = false
			_, err := l.Resume(ctx, sale.ID)
			must(err, "resume")
		},
		"the stock changes": func(t *rapid.T) {
			i := rapid.IntRange(0, len(sale.Items)-1).Draw(t, "item")
			item := &sale.Items[i]
			total := max(0, item.Stock+rapid.Int64Range(-3, 3).Draw(t, "by"))
			changed := sale
			changed.Items = slices.Clone(sale.Items)
			changed.Items[i].Stock = total
			err := l.Apply(ctx, changed)
			if m.stock[item.ID]+total-m.total[item.ID] < 0 {
				if queue.CodeOf(err) != queue.Conflict {
					t.Fatalf("a total below what was sold got %v", err)
				}
				return
			}
			must(err, "apply")
			m.stock[item.ID] += total - m.total[item.ID]
			m.total[item.ID] = total
			item.Stock = total
		},
		"": func(t *rapid.T) {
			balance, err := l.Balance(ctx, sale.ID)
			must(err, "balance")
			for _, item := range balance.Items {
				if item.Stock != m.stock[item.Item] || item.Total != m.total[item.Item] || item.Stock+item.Winners != item.Total || item.Stock < 0 {
					t.Fatalf("the balance is %+v, the model has %d of %d left", item, m.stock[item.Item], m.total[item.Item])
				}
			}
			for _, u := range users {
				status, number := m.place(u)
				seat, err := l.Look(ctx, sale.ID, u)
				must(err, "look")
				if seat.Status != status || seat.Number != number {
					t.Fatalf("%s has %+v, want status %d and number %d", u, seat, status, number)
				}
			}
		},
	})

	waiting, err := l.OutboxIDs(ctx, sale.ID)
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
