package queue_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice/queue"
)

// lobby is a lottery whose sale has not opened yet, with entrants u1, u2, …
func lobby(t *testing.T, l *line, entrants int) queue.Sale {
	t.Helper()
	sale := l.start(func(s *queue.Sale) {
		s.Line.Order, s.Line.Active = queue.Lottery, 2
		s.OpensAt = time.Now().Add(time.Hour)
		s.ClosesAt = s.OpensAt.Add(time.Hour)
	})
	for i := range entrants {
		enter(t, l, sale, fmt.Sprint("u", i+1))
	}
	return sale
}

func enter(t *testing.T, l *line, sale queue.Sale, user string) queue.Seat {
	t.Helper()
	leaf := queue.Leaf(user, [16]byte{})
	seat, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user, Connected: true, Leaf: leaf[:]})
	if err != nil {
		t.Fatalf("enter %s: %v", user, err)
	}
	return seat
}

// freeze is the draw of a sale that has opened, with its root.
func freeze(t *testing.T, l *line, sale queue.Sale) queue.Draw {
	t.Helper()
	draw, due, err := l.Freeze(t.Context(), queue.Draw{Sale: sale.ID, Secret: [32]byte{9}})
	if err != nil || !due {
		t.Fatalf("the draw is due: %v, %v", due, err)
	}
	var leaves [][32]byte
	if err := l.Entries(t.Context(), &draw, func(page []queue.DrawEntry) error {
		for _, entry := range page {
			leaves = append(leaves, entry.Hash())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if int64(len(leaves)) != draw.Live {
		t.Fatalf("%d entries of %d take part", len(leaves), draw.Live)
	}
	draw.Root = queue.NewMerkleTree(leaves).Root()
	return draw
}

func TestAPauseKeepsALotteryFromBeingDrawnAndIsTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := lobby(t, l, 3)
		tick := queue.NewTicker(l.Queue, sale.ID)
		for _, step := range []struct {
			do      func(context.Context, string) (queue.Sale, error)
			told    queue.State
			undrawn bool
		}{{l.Pause, queue.Lobby, false}, {l.Open, queue.Paused, false}, {l.Resume, queue.Lobby, true}} {
			if _, err := step.do(t.Context(), sale.ID); err != nil {
				t.Fatal(err)
			}
			s, err := tick(t.Context())
			if err != nil || s.State != queue.Lobby || s.Told() != step.told || s.Undrawn() != step.undrawn {
				t.Fatalf("want %s, to be drawn: %v; got %s of %s, %v: %v", step.told, step.undrawn, s.Told(), s.State, s.Undrawn(), err)
			}
			if _, due, err := l.Freeze(t.Context(), queue.Draw{Sale: sale.ID}); due != step.undrawn || err != nil {
				t.Fatalf("the draw is due: %v, want %v: %v", due, step.undrawn, err)
			}
		}
	})
}

func TestALotteryPutsTheLobbyInTheOrderThatIsDrawn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := lobby(t, l, 20)
		tick := queue.NewTicker(l.Queue, sale.ID)
		see := func() *queue.Snapshot {
			t.Helper()
			s, err := tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		leave := func(user string, ticket int64) {
			t.Helper()
			if err := l.Leave(t.Context(), sale.ID, user, ticket); err != nil {
				t.Fatal(err)
			}
		}
		if _, due, err := l.Freeze(t.Context(), queue.Draw{Sale: sale.ID}); due || err != nil {
			t.Fatalf("before the opening the draw is due: %v, %v", due, err)
		}
		leave("u3", 3)
		leave("u8", 8)
		if again := enter(t, l, sale, "u8"); again.Ticket != 21 || again.Number != 0 || again.Status != queue.Waiting {
			t.Fatalf("who enters again has %+v", again)
		}
		if s := see(); s.State != queue.Lobby || s.Waiting() != 19 || s.Drawn || s.Frozen || s.Undrawn() {
			t.Fatalf("the lobby is %+v with %d entries", s, s.Waiting())
		}

		if _, err := l.Open(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		draw := freeze(t, l, sale)
		if draw.Tickets != 21 || draw.Live != 19 || draw.Index(3) != -1 || draw.Index(4) != 2 || draw.Index(21) != 18 || draw.Index(22) != -1 {
			t.Fatalf("frozen are %d of %d; ticket 4 has index %d", draw.Live, draw.Tickets, draw.Index(4))
		}
		// Between freezing and drawing: one comes too late, two leave.
		late := enter(t, l, sale, "late")
		if late.Ticket != 22 || late.Number != 20 || late.State != queue.Lobby {
			t.Fatalf("who comes after the entries are frozen has %+v", late)
		}
		leave("u5", 5)
		leave("u6", 6)
		if s := see(); s.State != queue.Lobby || !s.Undrawn() || s.Turns != 0 {
			t.Fatalf("while it is drawn the sale is %+v", s)
		}
		if again := freeze(t, l, sale); again.Root != draw.Root || again.Tickets != 21 || !bytes.Equal(again.Dropouts, draw.Dropouts) {
			t.Fatal("freezing again gives others")
		}
		draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, "")
		for range 2 {
			if err := l.Draw(t.Context(), draw, draw.Table(queue.Lottery)); err != nil {
				t.Fatal(err)
			}
		}
		if _, due, err := l.Freeze(t.Context(), draw); due || err != nil {
			t.Fatalf("after the draw it is due: %v, %v", due, err)
		}

		order, tickets := queue.DrawOrder(draw.Seed, 19), draw.LiveTickets()
		var users []string // by place
		for _, index := range order {
			user := fmt.Sprint("u", tickets[index])
			if tickets[index] == 21 {
				user = "u8"
			}
			users = append(users, user)
		}
		for place, user := range users {
			if user == "u5" || user == "u6" {
				continue
			}
			if seat := l.look(sale.ID, user); seat.Number != int64(place+1) {
				t.Fatalf("%s has number %d, and %d was drawn", user, seat.Number, place+1)
			}
		}
		s := see()
		if s.State != queue.Open || !s.Drawn || s.Issued != 20 || s.Turns != 2 || s.Waiting() != 20-2-2 {
			t.Fatalf("after the draw the sale is %+v with %d waiting", s, s.Waiting())
		}
		called := slices.DeleteFunc(slices.Clone(users), func(u string) bool { return u == "u5" || u == "u6" })[:2]
		for _, user := range called {
			if seat := l.look(sale.ID, user); seat.Status != queue.Turn {
				t.Fatalf("%s was drawn first and has %+v", user, seat)
			}
			if g := l.grab(sale.ID, user, "r"); g.Result != queue.Success {
				t.Fatalf("%s gets %+v", user, g)
			}
		}
		if later := enter(t, l, sale, "later"); later.Number != 21 {
			t.Fatalf("who comes after the draw has number %d", later.Number)
		}
		last := slices.Index(users, "u20")
		leave("u20", 20)
		if s := see(); !slices.Contains(called, "u20") && last+1 > int(s.Served) && !s.HasLeft(int64(last+1)) {
			t.Fatalf("u20 left, and number %d is kept", last+1)
		}
	})
}

func TestALotteryOutlivesTheLossOfRedis(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := lobby(t, l, 12)
		if _, err := l.Open(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		sale, err := l.Sale(t.Context(), sale.ID)
		if err != nil {
			t.Fatal(err)
		}
		draw := freeze(t, l, sale)
		draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, "")
		if err := l.Draw(t.Context(), draw, draw.Table(queue.Lottery)); err != nil {
			t.Fatal(err)
		}
		tick := queue.NewTicker(l.Queue, sale.ID)
		if _, err := tick(t.Context()); err != nil { // calls two
			t.Fatal(err)
		}
		before := map[string]queue.Seat{}
		for i := range 12 {
			user := fmt.Sprint("u", i+1)
			before[user] = l.look(sale.ID, user)
		}
		reach, err := l.Reach(t.Context(), sale.ID)
		if err != nil {
			t.Fatal(err)
		}
		reach.Draw = &draw

		for _, key := range queue.KeysOf(sale.ID) {
			if err := l.rdb.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Rebuild(t.Context(), sale, reach, noOrders); err != nil {
			t.Fatal(err)
		}
		for user, seat := range before {
			found, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user, Resume: seat.Ticket, Epoch: seat.Epoch, Connected: true})
			if err != nil || found.Number != seat.Number || found.Ticket != seat.Ticket || found.Status != seat.Status {
				t.Errorf("%s has %+v, and had %+v (%v)", user, found, seat, err)
			}
		}
		if err := l.Ready(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		if s, err := tick(t.Context()); err != nil || s.State != queue.Open || !s.Drawn || s.Turns != 2 || s.Waiting() != 10 {
			t.Fatalf("the line is %+v with %d waiting, %v", s, s.Waiting(), err)
		}
	})
}

func TestALotteryThatIsLostInItsLobbyIsEnteredAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := lobby(t, l, 6)
		reach, err := l.Reach(t.Context(), sale.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range queue.KeysOf(sale.ID) {
			if err := l.rdb.Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Restore(t.Context(), sale, reach, noOrders); err != nil {
			t.Fatal(err)
		}
		for _, ticket := range []int64{2, 5} {
			user := fmt.Sprint("u", ticket)
			leaf := queue.Leaf(user, [16]byte{})
			seat, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user, Resume: ticket, Epoch: 1, Connected: true, Leaf: leaf[:]})
			if err != nil || seat.Ticket != ticket || seat.Status != queue.Waiting {
				t.Fatalf("%s has %+v, %v", user, seat, err)
			}
		}
		newcomer := enter(t, l, sale, "newcomer")
		if _, err := l.Open(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		draw := freeze(t, l, sale)
		if want := []uint32{2, 5, uint32(newcomer.Ticket)}; !slices.Equal(draw.LiveTickets(), want) {
			t.Fatalf("the tickets %v take part, want %v", draw.LiveTickets(), want)
		}
	})
}
