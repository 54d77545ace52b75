package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"sluice/queue"
)

// fill joins u1 to un over connections of the first node.
func (c *crew) fill(n int) {
	c.t.Helper()
	c.tick()
	reqs := make([]queue.JoinRequest, n)
	for i := range reqs {
		reqs[i] = queue.JoinRequest{Sale: c.sale.ID, User: fmt.Sprint("u", i+1), Connected: true}
	}
	for page := range slices.Chunk(reqs, 500) {
		for i, err := range queue.JoinAll(c.nodes[0], c.t.Context(), c.sale.ID, page) {
			if err != nil {
				c.t.Fatalf("join %s: %v", page[i].User, err)
			}
		}
	}
}

// each does something for the users of some tickets, all at once.
func (c *crew) each(tickets []int64, do func(user string, ticket int64) error) {
	c.t.Helper()
	var all errgroup.Group
	for _, ticket := range tickets {
		all.Go(func() error { return do(fmt.Sprint("u", ticket), ticket) })
	}
	if err := all.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// statuses are how many of u1 to un are what.
func (c *crew) statuses(n int) (count map[queue.SeatStatus]int, seats []queue.Seat) {
	c.t.Helper()
	users := make([]string, n)
	for i := range users {
		users[i] = fmt.Sprint("u", i+1)
	}
	seats, err := c.LookMany(c.t.Context(), c.sale.ID, users)
	if err != nil {
		c.t.Fatal(err)
	}
	count = map[queue.SeatStatus]int{}
	for _, seat := range seats {
		count[seat.Status]++
	}
	return count, seats
}

// TestPeopleWhoLeaveDoNotStallTheLine lets half of 10,000 shoppers abandon at random moments: some leave, some just go away,
// also during their turn. The turns that are out stay as many as the bounds allow.
func TestPeopleWhoLeaveDoNotStallTheLine(t *testing.T) {
	t.Parallel()
	const people, active = 10_000, 200
	c := newCrew(t, 1, func(s *queue.Sale) {
		s.Items[0].Stock, s.Line.Active, s.Line.Ratio = 20_000, active, 2
		s.Line.Turn, s.Line.Grace = queue.Duration(5*time.Second), queue.Duration(20*time.Second)
	})
	c.fill(people)
	random := rand.New(rand.NewPCG(4, 2))
	// Half of them go at some moment of the 60 s that it takes to call everybody.
	goes := map[int64][]int64{} // by tenth of a second
	gone := map[int64]bool{}
	for _, i := range random.Perm(people)[:people/2] {
		at := random.Int64N(600)
		goes[at] = append(goes[at], int64(i+1))
	}
	acts := map[int64][]int64{} // who has decided by when
	known := map[int64]bool{}
	var used, possible float64
	for tick := int64(0); ; tick++ {
		var dropped, left, buying []int64
		for _, ticket := range goes[tick] {
			gone[ticket] = true
			if random.IntN(2) == 0 {
				dropped = append(dropped, ticket)
			} else {
				left = append(left, ticket)
			}
		}
		for _, ticket := range acts[tick] {
			if !gone[ticket] {
				buying = append(buying, ticket)
			}
		}
		if len(dropped) > 0 {
			c.drop(0, dropped...)
		}
		c.each(left, func(user string, ticket int64) error { return c.Leave(t.Context(), c.sale.ID, user, ticket) })
		c.each(buying, func(user string, _ int64) error {
			_, err := c.Grab(t.Context(), queue.GrabRequest{Sale: c.sale.ID, User: user, Item: "main", Qty: 1, RequestID: "r"})
			return err
		})
		c.clock.pass(100 * time.Millisecond)
		s := c.tick()
		there := int64(0) // who waits and could be called
		for number := s.Served + 1; number <= people; number++ {
			if !gone[number] {
				there++
			}
		}
		if there == 0 {
			break
		}
		used += float64(s.Turns)
		possible += float64(min(active, int64(2*s.Units()), there+s.Turns))
		for _, number := range queue.TurnsOf(c.Queue, t.Context(), c.sale.ID) {
			if !known[number] {
				known[number] = true
				at := tick + 5 + random.Int64N(30)
				acts[at] = append(acts[at], number)
			}
		}
		if s.Turns > active {
			t.Fatalf("%d turns are out", s.Turns)
		}
	}
	if share := used / possible; share < 0.99 {
		t.Fatalf("%.2f %% of the turns that could be out were", 100*share)
	} else {
		t.Logf("%.2f %% of the turns that could be out were", 100*share)
	}
}

// TestAPauseAndAnOutageTakeNoTurnAndNoPlace has 500 turns out during both.
func TestAPauseAndAnOutageTakeNoTurnAndNoPlace(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 2, func(s *queue.Sale) {
		s.Line.Active, s.Line.Turn, s.Line.Grace = 500, queue.Duration(10*time.Second), queue.Duration(5*time.Second)
	})
	c.ticks[1]()
	c.fill(2000)
	before := c.live(3*time.Second, 0, 1)
	count, seats := c.statuses(2000)
	if count[queue.Turn] != 500 || count[queue.Waiting] != 1500 {
		t.Fatalf("%v", count)
	}
	same := func(what string, later int64) {
		t.Helper()
		_, after := c.statuses(2000)
		for i, seat := range after {
			if seat.Status != seats[i].Status || seat.Number != seats[i].Number || seat.Status == queue.Turn && seat.Until-seats[i].Until != later {
				t.Fatalf("after %s %s has %+v, and had %+v", what, seat.User, seat, seats[i])
			}
		}
	}
	if _, err := c.Pause(t.Context(), c.sale.ID); err != nil {
		t.Fatal(err)
	}
	c.live(2*time.Minute, 0, 1)
	if _, err := c.Resume(t.Context(), c.sale.ID); err != nil {
		t.Fatal(err)
	}
	same("a pause of two minutes", 120_000)
	c.clock.pass(20 * time.Second) // nobody can tick
	after := c.tick()
	c.ticks[1]()
	same("an outage of 20 s", 140_000)
	if after.Granted != before.Granted || after.Ahead(2000) != before.Ahead(2000) {
		t.Fatalf("the line went on: %+v", after)
	}
	c.live(11*time.Second, 0, 1) // then the turns run out as ever
	if count, _ := c.statuses(2000); count[queue.Missed] < 500 {
		t.Fatalf("%v", count)
	}
}

// TestReturnedUnitsAreOfferedToThoseWhoWereCalled has 2,000 turns out when the stock ends, and 300 holds expire.
func TestReturnedUnitsAreOfferedToThoseWhoWereCalled(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 1, func(s *queue.Sale) {
		s.Items[0].Stock, s.Hold = 400, queue.Duration(time.Minute)
		s.Line.Active, s.Line.Turn = 2400, queue.Duration(30*time.Second)
	})
	c.fill(3000)
	for range 5 {
		c.tick() // a thousand a call
	}
	var orders []queue.Order
	for i := range 400 { // every sixth of them buys
		orders = append(orders, *c.grab(c.sale.ID, fmt.Sprint("u", 6*i+1), "r").Order)
	}
	for range 3 {
		c.tick()
	}
	s := c.tick()
	if s.Turns != 0 || s.Recalled() != 2000 || s.Stock != queue.Held {
		t.Fatalf("%d turns are out and %d recalled, stock %s", s.Turns, s.Recalled(), s.Stock)
	}
	c.live(40*time.Second, 0)
	// The returned units go to the lowest numbers of those who were called, and to nobody behind them.
	line := c.sale
	line.Line.Ratio = 1
	if err := c.Apply(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	for i := range orders[:300] {
		orders[i].Status = queue.Expired
	}
	if _, err := c.Release(t.Context(), c.sale.ID, orders[:300]); err != nil {
		t.Fatal(err)
	}
	c.tick()
	var want []int
	for i := 1; len(want) < 300; i++ {
		if i%6 != 1 {
			want = append(want, i)
		}
	}
	have := c.turns(3000)
	if !slices.Equal(have, want) {
		t.Fatalf("turns have %d to %d, %d in all; want %d to %d", have[0], have[len(have)-1], len(have), want[0], want[len(want)-1])
	}
	if s := c.tick(); s.Recalled() != 1700 || s.Served != 2400 {
		t.Fatalf("%d are recalled still, and the cursor is at %d", s.Recalled(), s.Served)
	}
}

// counted counts the commands of a client.
type counted struct{ n atomic.Int64 }

func (c *counted) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}
func (c *counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// TestAWaitingShopperCostsRedisNothing counts what a node sends while a thousand wait.
func TestAWaitingShopperCostsRedisNothing(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(func(s *queue.Sale) { s.Line.Active = 1; s.Items[0].Stock = 5 })
	commands := func(rdb redis.UniversalClient, people int) (calls int64) {
		for i := range people {
			l.join(sale.ID, fmt.Sprint(people, "-", i))
		}
		counter := &counted{}
		q := queue.New(rdb, queue.Options{})
		rdb.AddHook(counter)
		tick := queue.NewTicker(q, sale.ID)
		for range 3 {
			if _, err := tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		counter.n.Store(0)
		for range 50 {
			if _, err := tick(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return counter.n.Load()
	}
	if few := commands(l.rdb, 1); few != 50 {
		t.Fatalf("50 ticks with one who waits are %d commands", few)
	}
	fresh := realLine(t, queue.Options{}) // without the first counter
	if many := commands(fresh.rdb, 1000); many != 50 {
		t.Fatalf("50 ticks with a thousand who wait are %d commands", many)
	}
}
