package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/queue"
)

// crew is several nodes of a line whose clock a test moves, on the embedded Redis.
type crew struct {
	*line
	sale  queue.Sale
	clock *clock
	nodes []*queue.Queue
	ticks []func() (*queue.Snapshot, queue.Lost)
}

func newCrew(t *testing.T, nodes int, change func(*queue.Sale)) *crew {
	t.Helper()
	l, sale, clock := driven(t, change)
	c := &crew{line: l, sale: sale, clock: clock}
	for range nodes {
		q := queue.New(l.rdb, queue.Options{Embedded: true})
		tick := queue.NewNodeTicker(q, sale.ID)
		c.nodes = append(c.nodes, q)
		c.ticks = append(c.ticks, func() (*queue.Snapshot, queue.Lost) {
			t.Helper()
			s, lost, err := tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s, lost
		})
	}
	return c
}

// tick is one of the first node.
func (c *crew) tick() *queue.Snapshot {
	c.t.Helper()
	s, _ := c.ticks[0]()
	return s
}

// live lets time pass in which the named nodes tick ten times a second.
func (c *crew) live(d time.Duration, nodes ...int) *queue.Snapshot {
	c.t.Helper()
	var s *queue.Snapshot
	for end := c.clock.at.Add(d); c.clock.at.Before(end); {
		c.clock.pass(100 * time.Millisecond)
		for _, node := range nodes {
			s, _ = c.ticks[node]()
		}
	}
	return s
}

// connect joins a user over a connection of a node.
func (c *crew) connect(node int, user string) queue.Seat {
	c.t.Helper()
	seat, err := c.nodes[node].Join(c.t.Context(), queue.JoinRequest{Sale: c.sale.ID, User: user, Connected: true})
	if err != nil {
		c.t.Fatalf("join %s: %v", user, err)
	}
	return seat
}

// drop ends the connections of seats on a node.
func (c *crew) drop(node int, tickets ...int64) {
	c.t.Helper()
	var seats []queue.Presence
	for _, ticket := range tickets {
		seats = append(seats, queue.Presence{Ticket: ticket})
	}
	if err := c.nodes[node].Tell(c.t.Context(), c.sale.ID, seats); err != nil {
		c.t.Fatal(err)
	}
}

// turns are the users of u1, u2, … who have a turn.
func (c *crew) turns(users int) []int {
	c.t.Helper()
	var have []int
	_, seats := c.statuses(users)
	for i, seat := range seats {
		if seat.Status == queue.Turn {
			have = append(have, i+1)
		}
	}
	return have
}

func (c *crew) wantTurns(users int, want ...int) {
	c.t.Helper()
	if have := c.turns(users); !slices.Equal(have, want) {
		c.t.Fatalf("turns have %v, want %v", have, want)
	}
}

func TestWhoIsAwayCostsNoTurnAndIsCalledFirstWhenBackWithinTheGrace(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) { s.Line.Active = 2; s.Line.Grace = queue.Duration(30 * time.Second) })
	c.tick()
	for i := range 8 {
		c.connect(0, fmt.Sprint("u", i+1))
	}
	c.drop(0, 2, 3, 5)
	if s := c.tick(); s.Served != 4 || s.Turns != 2 || s.Granted != 2 {
		t.Fatalf("the line is %+v", s)
	}
	c.wantTurns(8, 1, 4)
	if s := c.live(20*time.Second, 0); s.Ahead(7) != 2 {
		t.Fatalf("%d are ahead of 7, want those who are here and those who may come back", s.Ahead(7))
	}
	if seat := c.connect(0, "u3"); seat.Status != queue.Waiting || seat.Number != 3 || !seat.Recalled {
		t.Fatalf("who is back within the grace has %+v", seat)
	}
	if seat := c.connect(0, "u5"); seat.Status != queue.Waiting || seat.Number != 5 || seat.Recalled {
		t.Fatalf("who is back before being passed has %+v", seat)
	}
	s := c.tick()
	if s.Recalled() != 1 || s.RecalledBefore(6) != 1 || s.Ahead(6) != 1 || s.Waiting() != 5 {
		t.Fatalf("%d are recalled, %d before 6, %d ahead of it, %d wait", s.Recalled(), s.RecalledBefore(6), s.Ahead(6), s.Waiting())
	}
	c.grab(c.sale.ID, "u1", "r")
	c.tick()
	c.wantTurns(8, 3, 4)
	// u2 is away for longer than the grace: the place is gone, and the user can only start again.
	c.live(15*time.Second, 0)
	seat, err := c.nodes[0].Join(t.Context(), queue.JoinRequest{Sale: c.sale.ID, User: "u2", Resume: 2, Epoch: 1, Connected: true})
	if err != nil || seat.Status != queue.Absent {
		t.Fatalf("who is back too late has %+v, %v", seat, err)
	}
	if again := c.connect(0, "u2"); again.Number != 9 || again.Status != queue.Waiting {
		t.Fatalf("starting again gives %+v", again)
	}
}

func TestTheGraceDoesNotRunInTheLobbyNorInAPause(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) {
		s.OpensAt = s.OpensAt.Add(time.Hour)
		s.ClosesAt = s.OpensAt.Add(time.Hour)
		s.Line.Grace, s.Line.Active = queue.Duration(5*time.Second), 1
	})
	c.tick()
	c.connect(0, "u1")
	c.connect(0, "u2")
	c.drop(0, 1, 2)
	c.live(time.Minute, 0)
	if _, err := c.Open(t.Context(), c.sale.ID); err != nil {
		t.Fatal(err)
	}
	c.live(2*time.Second, 0)
	if _, err := c.Pause(t.Context(), c.sale.ID); err != nil {
		t.Fatal(err)
	}
	c.live(time.Minute, 0)
	if _, err := c.Resume(t.Context(), c.sale.ID); err != nil {
		t.Fatal(err)
	}
	if seat := c.connect(0, "u2"); seat.Status != queue.Waiting || seat.Number != 2 {
		t.Fatalf("after a lobby and a pause the seat is %+v", seat)
	}
	s := c.live(4*time.Second, 0)
	if s.Served != 2 || s.Turns != 1 || c.look(c.sale.ID, "u1").Status != queue.Absent {
		t.Fatalf("the line is %+v, and u1 has %+v", s, c.look(c.sale.ID, "u1"))
	}
}

func TestShoppersOfADeadNodeResumeElsewhereWithTheirPlaces(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) { s.Line.Active = 2; s.Line.Grace = queue.Duration(20 * time.Second) })
	c.ticks[0]()
	c.ticks[1]()
	for i := range 10 {
		c.connect(1-i%2, fmt.Sprint("u", i+1)) // the odd ones are with the second node
	}
	c.tick()
	c.wantTurns(10, 1, 2)
	// The second node dies. Its shopper's turn goes on; those who wait are away once its lease has run out.
	c.live(4*time.Second, 0)
	c.grab(c.sale.ID, "u2", "r")
	c.grab(c.sale.ID, "u1", "r")
	c.tick()
	c.wantTurns(10, 4, 6)
	for i, want := range map[int]bool{3: true, 5: true, 7: false} {
		if seat := c.connect(0, fmt.Sprint("u", i)); seat.Status != queue.Waiting || seat.Number != int64(i) || seat.Recalled != want {
			t.Fatalf("u%d resumes elsewhere with %+v", i, seat)
		}
	}
	c.grab(c.sale.ID, "u4", "r")
	c.tick()
	c.wantTurns(10, 3, 6)
	// Whoever does not come back within the grace, from when the node died, is gone.
	c.live(20*time.Second, 0)
	if seat := c.look(c.sale.ID, "u9"); seat.Status != queue.Absent {
		t.Fatalf("who did not come back has %+v", seat)
	}
}

func TestANodeThatWasTakenForDeadSaysAgainWhoIsThere(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) { s.Line.Active = 1 })
	if _, lost := c.ticks[1](); !lost.Lease {
		t.Fatal("a new node is not asked who is there")
	}
	c.tick()
	c.connect(0, "u1")
	c.connect(1, "u2")
	c.connect(1, "u3")
	if _, lost := c.ticks[1](); lost.Lease {
		t.Fatal("a node with a lease is asked again who is there")
	}
	c.live(5*time.Second, 0)
	c.grab(c.sale.ID, "u1", "r")
	if s := c.tick(); s.Served != 3 || s.Turns != 0 {
		t.Fatalf("shoppers of a dead node have turns: %+v", s)
	}
	if _, lost := c.ticks[1](); !lost.Lease {
		t.Fatal("a node whose lease ran out is not told so")
	}
	if err := c.nodes[1].Tell(t.Context(), c.sale.ID, []queue.Presence{{Ticket: 2, Here: true}, {Ticket: 3, Here: true}}); err != nil {
		t.Fatal(err)
	}
	c.tick()
	c.wantTurns(3, 2)
	if s := c.tick(); s.Recalled() != 1 || !s.IsRecalled(3) {
		t.Fatalf("u3 is not recalled: %+v", s)
	}
}

func TestAnOutageTakesNoNodeForDead(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) { s.Line.Active = 1; s.Line.Grace = 0 })
	c.tick()
	c.ticks[1]()
	c.connect(1, "u1")
	c.connect(1, "u2")
	c.tick()
	c.clock.pass(20 * time.Second) // nobody ticks
	if _, lost := c.ticks[0](); lost.Lease {
		t.Fatal("the node is taken for dead")
	}
	if _, lost := c.ticks[1](); lost.Lease {
		t.Fatal("the other node is taken for dead")
	}
	c.wantTurns(2, 1)
	if seat := c.look(c.sale.ID, "u2"); seat.Status != queue.Waiting || seat.Recalled {
		t.Fatalf("u2 has %+v", seat)
	}
}

func TestASeatIsThereWhileOneOfItsNodesHoldsIt(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) { s.Line.Active = 1 })
	c.tick()
	c.ticks[1]()
	c.connect(0, "u1")
	for node := range 2 {
		if seat := c.connect(node, "u2"); seat.Number != 2 {
			t.Fatalf("a second device has number %d", seat.Number)
		}
	}
	c.connect(0, "u3")
	c.drop(1, 2)
	c.drop(1, 2) // told again
	c.tick()
	c.grab(c.sale.ID, "u1", "r")
	c.tick()
	c.wantTurns(3, 2)
}

func TestAPollCountsAsBeingThereForAWhile(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) { s.Line.Active = 1 })
	c.tick()
	c.connect(0, "u1")
	poll := func(user string, d time.Duration) queue.Seat {
		t.Helper()
		seat, err := c.nodes[0].Join(t.Context(), queue.JoinRequest{Sale: c.sale.ID, User: user, Poll: d})
		if err != nil {
			t.Fatal(err)
		}
		return seat
	}
	for _, user := range []string{"u2", "u3", "u4"} {
		poll(user, 20*time.Second)
	}
	// The answer said to come back within a second.
	if err := c.nodes[0].Tell(t.Context(), c.sale.ID, []queue.Presence{{Ticket: 2, Poll: 2 * time.Second}}); err != nil {
		t.Fatal(err)
	}
	c.live(3*time.Second, 0)
	c.grab(c.sale.ID, "u1", "r")
	c.tick()
	c.wantTurns(4, 3)
	if seat := poll("u2", 2*time.Second); seat.Status != queue.Waiting || !seat.Recalled {
		t.Fatalf("who polls again has %+v", seat)
	}
	c.grab(c.sale.ID, "u3", "r")
	c.tick()
	c.wantTurns(4, 2)
}

func TestTurnsThatAreOutWhenTheStockEndsComeFirstWhenUnitsReturn(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) {
		s.Items[0].Stock, s.Hold, s.Line.Active = 3, queue.Duration(time.Minute), 6
		s.Line.Turn = queue.Duration(10 * time.Second)
	})
	c.tick()
	for i := range 8 {
		c.connect(0, fmt.Sprint("u", i+1))
	}
	c.tick()
	c.wantTurns(8, 1, 2, 3, 4, 5, 6)
	orders := []queue.Order{}
	for _, user := range []string{"u2", "u4", "u5"} {
		orders = append(orders, *c.grab(c.sale.ID, user, "r").Order)
	}
	if g := c.grab(c.sale.ID, "u6", "r"); g.Result != queue.SoldOut || g.Stock != queue.Held {
		t.Fatalf("a grab with a turn that nothing is left for got %+v", g)
	}
	if s := c.tick(); s.Turns != 0 || s.Recalled() != 3 || s.Stock != queue.Held {
		t.Fatalf("the line is %+v with %d recalled", s, s.Recalled())
	}
	c.live(30*time.Second, 0) // longer than a turn
	if s := c.tick(); s.Recalled() != 3 || s.Served != 6 {
		t.Fatalf("those who were called did not stay: %+v", s)
	}
	c.drop(0, 1) // the first of them is away now
	for i := range orders {
		orders[i].Status = queue.Expired
	}
	if _, err := c.Release(t.Context(), c.sale.ID, orders[:1]); err != nil {
		t.Fatal(err)
	}
	c.tick()
	c.wantTurns(8, 3, 6, 7, 8)
	c.grab(c.sale.ID, "u6", "r")
	c.tick()
	c.wantTurns(8)
	if seat := c.connect(0, "u1"); seat.Status != queue.Waiting || !seat.Recalled {
		t.Fatalf("who was called and away has %+v", seat)
	}
	if s := c.tick(); s.RecalledBefore(3) != 1 || s.Recalled() != 4 {
		t.Fatalf("%d are recalled, %d before 3", s.Recalled(), s.RecalledBefore(3))
	}
}

func TestRecallKeepsToTheBoundsAndServesTheLowestNumberFirst(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) { s.Line.Rate, s.Line.Active = 10, 5 })
	c.tick()
	for i := range 30 {
		c.connect(0, fmt.Sprint("u", i+1))
	}
	away := make([]int64, 20)
	for i := range away {
		away[i] = int64(i + 1)
	}
	c.drop(0, away...)
	c.live(time.Second, 0)
	c.wantTurns(30, 21, 22, 23, 24, 25)
	for i := 20; i >= 1; i-- {
		c.connect(0, fmt.Sprint("u", i))
	}
	for _, user := range []string{"u21", "u22", "u23"} {
		c.grab(c.sale.ID, user, "r")
	}
	if s := c.live(time.Second, 0); s.Granted != 8 {
		t.Fatalf("%d turns were given, want 8", s.Granted)
	}
	c.wantTurns(30, 1, 2, 3, 24, 25)
}

func TestEveryFigureOfARunningSaleHoldsFromTheNextTick(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) {
		s.Items[0].Stock, s.Hold = 10, queue.Duration(time.Minute)
		s.Line.Rate, s.Line.Active, s.Line.Ratio = 5, 3, 0
		s.Line.Turn, s.Line.Grace = queue.Duration(20*time.Second), queue.Duration(time.Minute)
	})
	c.ticks[1]()
	c.fill(100)
	change := func(change func(*queue.Sale)) *queue.Snapshot {
		t.Helper()
		change(&c.sale)
		if err := c.Apply(t.Context(), c.sale); err != nil {
			t.Fatal(err)
		}
		s, _ := c.ticks[1]() // not the node that changed it
		return s
	}
	if s := c.live(2*time.Second, 0); s.Turns != 3 {
		t.Fatalf("%d turns are out", s.Turns)
	}
	if s := change(func(s *queue.Sale) { s.Line.Active, s.Line.Rate = 50, 0 }); s.Turns != 50 {
		t.Errorf("with another cap and no rate %d turns are out", s.Turns)
	}
	if s := change(func(s *queue.Sale) { s.Line.Active = 0; s.Line.Ratio = 6 }); s.Turns != 60 {
		t.Errorf("with a ratio of 6 to 10 units %d turns are out", s.Turns)
	}
	if s := change(func(s *queue.Sale) { s.Items[0].Stock = 11 }); s.Turns != 66 || s.Units() != 11 {
		t.Errorf("with another unit %d turns are out", s.Turns)
	}
	change(func(s *queue.Sale) { s.Line.Turn = queue.Duration(5 * time.Second); s.Items[0].Stock = 12 })
	if old, young := c.look(c.sale.ID, "u1"), c.look(c.sale.ID, "u70"); young.Status != queue.Turn || young.Until-young.At != 5000 || old.Until-old.At < 15_000 {
		t.Errorf("after a change of the turn, a new one ends %d ms and an old one %d ms from now", young.Until-young.At, old.Until-old.At)
	}
	change(func(s *queue.Sale) { s.Hold = queue.Duration(10 * time.Second) })
	if order := c.grab(c.sale.ID, "u1", "r").Order; order.PayBy-order.CreatedAt != 10_000 {
		t.Errorf("after a change of the hold, an order is payable for %d ms", order.PayBy-order.CreatedAt)
	}
	c.drop(0, 100)
	change(func(s *queue.Sale) { s.Line.Grace = queue.Duration(2 * time.Second) })
	c.live(3*time.Second, 0, 1)
	if seat := c.look(c.sale.ID, "u100"); seat.Status != queue.Absent {
		t.Errorf("after a change of the grace, who is away for longer has %+v", seat)
	}
	if s := change(func(s *queue.Sale) { s.ClosesAt = c.clock.at }); s.State != queue.Closed {
		t.Errorf("with its end now the sale is %s", s.State)
	}
}
