package queue_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sluice/queue"
)

func TestAUserHasOneSeatHoweverOftenTheyJoin(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(nil)
		var wg sync.WaitGroup
		numbers := make(chan int64, 50)
		for range 50 {
			wg.Go(func() { numbers <- l.join(sale.ID, "ann").Number })
		}
		wg.Wait()
		close(numbers)
		for n := range numbers {
			if n != 1 {
				t.Fatalf("a second seat was given: number %d", n)
			}
		}
		if bob := l.join(sale.ID, "bob"); bob.Number != 2 || bob.Status != queue.Waiting {
			t.Fatalf("bob has %+v", bob)
		}
	})
}

func TestSeatsAreNumberedByArrivalAndCalledInOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Line.Active = 2 })
		for i := range 5 {
			if seat := l.join(sale.ID, fmt.Sprint("u", i+1)); seat.Number != int64(i+1) {
				t.Fatalf("arrival %d has number %d", i+1, seat.Number)
			}
		}
		_, until := l.watching(sale.ID)
		snap := until("two turns are out", func(s *queue.Snapshot) bool { return s.Turns == 2 })
		if snap.Served != 2 || snap.Ahead(3) != 0 || snap.Ahead(5) != 2 || snap.Waiting() != 3 {
			t.Fatalf("served %d, ahead of 3: %d, of 5: %d, waiting %d", snap.Served, snap.Ahead(3), snap.Ahead(5), snap.Waiting())
		}
		if seat := l.look(sale.ID, "u1"); seat.Status != queue.Turn || seat.Until <= seat.At {
			t.Fatalf("the first has %+v", seat)
		}
		if g := l.grab(sale.ID, "u3", "r"); g.Result != queue.NoTurn {
			t.Fatalf("a grab without a turn got %+v", g)
		}
		if g := l.grab(sale.ID, "u2", "r"); g.Result != queue.Success {
			t.Fatalf("a grab with a turn got %+v", g)
		}
		until("the slot is used again", func(s *queue.Snapshot) bool { return s.Served == 3 && s.Turns == 2 })
		if seat := l.look(sale.ID, "u2"); seat.Status != queue.Buyer || seat.Order == nil {
			t.Fatalf("the buyer has %+v", seat)
		}
	})
}

func TestWhoLeavesIsNotAheadOfAnybodyAndCostsNoTurn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.OpensAt = time.Now().Add(time.Hour); s.ClosesAt = s.OpensAt.Add(time.Hour) })
		for i := range 20 {
			l.join(sale.ID, fmt.Sprint("u", i+1))
		}
		for _, n := range []int64{1, 2, 9, 17} {
			if err := l.Leave(t.Context(), sale.ID, fmt.Sprint("u", n), n); err != nil {
				t.Fatal(err)
			}
			if err := l.Leave(t.Context(), sale.ID, fmt.Sprint("u", n), n); err != nil {
				t.Fatalf("leaving again: %v", err)
			}
		}
		w, until := l.watching(sale.ID)
		snap := until("four have left", func(s *queue.Snapshot) bool { return s.Left == 4 })
		for number, ahead := range map[int64]int64{3: 0, 8: 5, 10: 6, 18: 13, 20: 15, 21: 16} {
			if snap.Ahead(number) != ahead {
				t.Errorf("%d are ahead of %d, want %d", snap.Ahead(number), number, ahead)
			}
		}
		if !snap.HasLeft(9) || snap.HasLeft(10) {
			t.Errorf("who left is not known: 9 %v, 10 %v", snap.HasLeft(9), snap.HasLeft(10))
		}
		if again := l.join(sale.ID, "u9"); again.Number != 21 {
			t.Errorf("joining again gave %d, want the end of the line", again.Number)
		}
		if err := l.Leave(t.Context(), sale.ID, "u9", 9); err != nil {
			t.Fatal(err)
		}
		if seat := l.look(sale.ID, "u9"); seat.Number != 21 {
			t.Errorf("a late repeat of leaving hit the newer seat: %+v", seat)
		}
		if _, err := l.Open(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		w.Kick()
		snap = until("everybody is called", func(s *queue.Snapshot) bool { return s.Served == 21 })
		if snap.Turns != 17 || snap.Granted != 17 {
			t.Errorf("%d turns out, %d given, want 17: leavers cost turns", snap.Turns, snap.Granted)
		}
	})
}

func TestATurnThatRunsOutIsMissedAndItsSlotUsedAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Line.Active = 1; s.Line.Turn = queue.Duration(time.Second) })
		l.join(sale.ID, "ann")
		bob := l.join(sale.ID, "bob")
		_, until := l.watching(sale.ID)
		until("bob is called after ann", func(s *queue.Snapshot) bool { return s.Served == 2 })
		if seat := l.look(sale.ID, "ann"); seat.Status != queue.Missed {
			t.Fatalf("ann has %+v", seat)
		}
		if g := l.grab(sale.ID, "ann", "r"); g.Result != queue.NoTurn {
			t.Fatalf("a grab after the turn got %+v", g)
		}
		resumed, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "ann", Resume: 1})
		if err != nil || resumed.Status != queue.Missed {
			t.Fatalf("resuming a missed seat got %+v %v", resumed, err)
		}
		if again := l.join(sale.ID, "ann"); again.Number != bob.Number+1 || again.Status != queue.Waiting {
			t.Fatalf("joining anew got %+v", again)
		}
	})
}

// driven is an embedded line whose clock only the test moves.
func driven(t *testing.T, change func(*queue.Sale)) (*line, queue.Sale, *clock) {
	t.Helper()
	l := embeddedLine(t, queue.Options{})
	c := &clock{at: time.Now().Truncate(time.Second), l: l}
	l.embedded.SetTime(c.at)
	sale := l.start(func(s *queue.Sale) {
		s.OpensAt, s.ClosesAt = c.at, c.at.Add(time.Hour)
		s.Items[0].Stock = 1000
		if change != nil {
			change(s)
		}
	})
	return l, sale, c
}

type clock struct {
	at time.Time
	l  *line
}

func (c *clock) pass(d time.Duration) {
	c.at = c.at.Add(d)
	c.l.embedded.SetTime(c.at)
}

func TestNoRollingSecondSeesMoreTurnsThanTheRateAndFewAreLost(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{7, 20, 100, 130, 333, 1000} {
		step *= time.Millisecond
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			const rate, seconds = 50, 8
			l, sale, clock := driven(t, func(s *queue.Sale) { s.Line.Rate = rate })
			for i := range 2 * rate * seconds {
				l.join(sale.ID, fmt.Sprint("u", i))
			}
			type grant struct{ at, total int64 }
			grants := []grant{{clock.at.UnixMilli(), 0}}
			tick := queue.NewTicker(l.Queue, sale.ID)
			for range int(seconds * time.Second / step) {
				clock.pass(step)
				snap, err := tick(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				grants = append(grants, grant{snap.At, snap.Granted})
			}
			for i, from := range grants {
				for _, to := range grants[i+1:] {
					if to.at-from.at < 1000 && i > 0 && to.total-grants[i-1].total > rate {
						t.Fatalf("%d turns from %d to %d ms", to.total-grants[i-1].total, from.at, to.at)
					}
				}
			}
			// Turns are given at ticks only, so the shortest time that the rate may come again in is a whole number of them.
			period := (time.Second + step - 1) / step * step
			best := rate * int64(seconds*time.Second/period)
			if total := grants[len(grants)-1].total; total < best*95/100 || total > rate*(seconds+1) {
				t.Fatalf("%d turns in %d s, of %d that the rate allows at this pace", total, seconds, best)
			}
		})
	}
}

func TestASlowRateIsGivenInFull(t *testing.T) {
	t.Parallel()
	for _, rate := range []int64{1, 2, 3, 5, 9, 11} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			l, sale, clock := driven(t, func(s *queue.Sale) { s.Line.Rate = rate })
			for i := range 15 * rate {
				l.join(sale.ID, fmt.Sprint("u", i))
			}
			tick := queue.NewTicker(l.Queue, sale.ID)
			var snap *queue.Snapshot
			for range 100 {
				clock.pass(100 * time.Millisecond)
				var err error
				if snap, err = tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if snap.Granted < 9*rate || snap.Granted > 10*rate {
				t.Fatalf("%d turns in 10 s at %d a second", snap.Granted, rate)
			}
		})
	}
}

func TestTurnsComeEvenlyAgainAfterAStall(t *testing.T) {
	t.Parallel()
	l, sale, clock := driven(t, func(s *queue.Sale) { s.Line.Rate = 20 })
	for i := range 200 {
		l.join(sale.ID, fmt.Sprint("u", i))
	}
	tick := queue.NewTicker(l.Queue, sale.ID)
	step := func(d time.Duration) int64 {
		t.Helper()
		clock.pass(d)
		before, err := tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return before.Granted
	}
	last := step(900 * time.Millisecond) // the node stood still, and gives what came due at once
	for range 10 {
		last = step(100 * time.Millisecond)
	}
	for range 20 {
		now := step(100 * time.Millisecond)
		if now-last > 4 {
			t.Fatalf("%d turns came at once where 2 were due", now-last)
		}
		last = now
	}
	if last < 40 {
		t.Fatalf("%d turns in 4 s at 20 a second", last)
	}
}

func TestOutstandingTurnsStayWithinActiveAndRatioTimesStock(t *testing.T) {
	t.Parallel()
	l, sale, clock := driven(t, func(s *queue.Sale) { s.Items[0].Stock = 4; s.Line.Ratio = 1.5; s.Line.Active = 5 })
	for i := range 30 {
		l.join(sale.ID, fmt.Sprint("u", i+1))
	}
	tick := queue.NewTicker(l.Queue, sale.ID)
	out := int64(0)
	for sold := int64(0); sold < 4; sold++ {
		clock.pass(100 * time.Millisecond)
		snap, err := tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Turns that are out stay out when stock falls under them; none is added.
		if want := max(out-1, min(5, (4-sold)*3/2)); snap.Turns != want {
			t.Fatalf("with %d left %d turns are out, want %d", 4-sold, snap.Turns, want)
		}
		out = snap.Turns
		l.grab(sale.ID, fmt.Sprint("u", sold+1), "r")
	}
	clock.pass(2 * time.Minute)
	for range 80 { // a gap would stop the sale clock
		clock.pass(time.Second)
		if _, err := tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := tick(t.Context())
	if err != nil || snap.Turns != 0 || snap.Stock != queue.Gone {
		t.Fatalf("sold out: %+v %v", snap, err)
	}
}

func TestAPauseOrAnOutageCostsNobodyATurn(t *testing.T) {
	t.Parallel()
	l, sale, clock := driven(t, func(s *queue.Sale) { s.Line.Active = 1 })
	l.join(sale.ID, "ann")
	tick := queue.NewTicker(l.Queue, sale.ID)
	see := func() *queue.Snapshot {
		t.Helper()
		snap, err := tick(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	see()
	before := l.look(sale.ID, "ann")
	if before.Status != queue.Turn {
		t.Fatalf("ann has %+v", before)
	}
	if _, err := l.Pause(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		clock.pass(time.Second)
		if snap := see(); snap.State != queue.Paused {
			t.Fatalf("the sale is %s", snap.State)
		}
	}
	if g := l.grab(sale.ID, "ann", "r"); g.Result != queue.NotOpen || g.State != queue.Paused {
		t.Fatalf("a grab in a pause got %+v", g)
	}
	if _, err := l.Resume(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	if seat := l.look(sale.ID, "ann"); seat.Status != queue.Turn || seat.Until-before.Until != 100_000 {
		t.Fatalf("after a pause of 100 s the turn ends %d ms later", seat.Until-before.Until)
	}
	// An outage of every node: nobody ticks.
	clock.pass(10 * time.Minute)
	see()
	if seat := l.look(sale.ID, "ann"); seat.Status != queue.Turn || seat.Until-before.Until != 700_000 {
		t.Fatalf("after an outage of 10 min the turn ends %d ms later", seat.Until-before.Until)
	}
	// The clock of the server steps back.
	clock.pass(-time.Minute)
	see()
	if seat := l.look(sale.ID, "ann"); seat.Status != queue.Turn || seat.Until-before.Until != 640_000 {
		t.Fatalf("after a backward step the turn ends %d ms later", seat.Until-before.Until)
	}
	for range 61 {
		clock.pass(time.Second)
		see()
	}
	if seat := l.look(sale.ID, "ann"); seat.Status != queue.Missed {
		t.Fatalf("when its minute has run the turn is %+v", seat)
	}
}

func TestJoiningIsPossibleFromTheLobbyToTheEnd(t *testing.T) {
	t.Parallel()
	l, sale, clock := driven(t, func(s *queue.Sale) {
		s.OpensAt = s.OpensAt.Add(time.Hour)
		s.ClosesAt = s.OpensAt.Add(time.Hour)
		s.Lobby = queue.Duration(10 * time.Minute)
	})
	join := func() (queue.Seat, error) {
		return l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: fmt.Sprint(clock.at.UnixNano())})
	}
	if seat, err := join(); queue.CodeOf(err) != queue.Conflict || seat.State != queue.Scheduled {
		t.Fatalf("before the lobby: %+v %v", seat, err)
	}
	clock.pass(50 * time.Minute)
	if seat, err := join(); err != nil || seat.State != queue.Lobby || seat.Number != 1 {
		t.Fatalf("in the lobby: %+v %v", seat, err)
	}
	clock.pass(10 * time.Minute)
	if seat, err := join(); err != nil || seat.State != queue.Open || seat.Number != 2 {
		t.Fatalf("while open: %+v %v", seat, err)
	}
	clock.pass(time.Hour)
	if seat, err := join(); queue.CodeOf(err) != queue.Conflict || seat.State != queue.Closed {
		t.Fatalf("at the end: %+v %v", seat, err)
	}
}

func TestGoneRefusesJoinsAndHeldRefusesGrabsOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		for _, hold := range []time.Duration{0, time.Minute} {
			sale := l.start(func(s *queue.Sale) { s.Items[0].Stock = 1; s.Hold = queue.Duration(hold) })
			l.join(sale.ID, "ann")
			_, until := l.watching(sale.ID)
			until("ann is called", func(s *queue.Snapshot) bool { return s.Served == 1 })
			if g := l.grab(sale.ID, "ann", "r"); g.Result != queue.Success {
				t.Fatalf("ann got %+v", g)
			}
			seat, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "bob"})
			if hold == 0 && (queue.CodeOf(err) != queue.Conflict || seat.Stock != queue.Gone) {
				t.Fatalf("joining when gone got %+v %v", seat, err)
			}
			if hold > 0 && (err != nil || seat.Stock != queue.Held || seat.Status != queue.Waiting) {
				t.Fatalf("joining while held got %+v %v", seat, err)
			}
		}
	})
}

func TestNewsReachEveryWatcherWithoutAHole(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Hold = queue.Duration(time.Minute) })
		var mu sync.Mutex
		kinds := map[queue.EventKind]int{}
		holes := -1 // the first tick of a watcher always asks for a reading
		done := make(chan struct{})
		w := queue.NewWatcher(l.Queue, sale.ID, observer(func(_ *queue.Snapshot, events []queue.Event, lost queue.Lost) {
			mu.Lock()
			defer mu.Unlock()
			if lost.News {
				holes++
			}
			for _, e := range events {
				kinds[e.Kind]++
				if e.Kind == queue.SeatLeft && e.User == "last" {
					close(done)
				}
			}
		}))
		go func() { _ = w.Run(t.Context()) }()
		for w.Snapshot() == nil {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		for i := range 5 {
			l.join(sale.ID, fmt.Sprint("u", i))
		}
		last := l.join(sale.ID, "last")
		w.Kick()
		for l.look(sale.ID, "u0").Status != queue.Turn {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
		order := l.grab(sale.ID, "u0", "r").Order
		if _, err := l.Adopt(t.Context(), sale.ID, []queue.Order{*order}); err != nil {
			t.Fatal(err)
		}
		if err := l.Leave(t.Context(), sale.ID, "last", last.Number); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("the last news never came")
		}
		mu.Lock()
		defer mu.Unlock()
		if kinds[queue.TurnGiven] == 0 || kinds[queue.OrderChanged] != 1 || kinds[queue.SeatLeft] != 1 || holes != 0 {
			t.Fatalf("the news were %v with %d holes", kinds, holes)
		}
	})
}
