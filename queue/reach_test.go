package queue_test

import (
	"fmt"
	"testing"

	"sluice/queue"
)

// lose takes everything of a sale from Redis but the outbox and the news.
func (l *line) lose(sale string) {
	l.t.Helper()
	for _, key := range []string{"meta", "stock", "seats", "winners", "past", "turns", "gone"} {
		if err := l.rdb.Del(l.t.Context(), "sluice:{"+sale+"}:"+key).Err(); err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestLostNumbersAreTakenBackByThoseWhoHoldThem(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) { s.Line.Active = 2 })
		seats := map[string]queue.Seat{}
		for i := range 12 {
			user := fmt.Sprint("u", i+1)
			seats[user] = l.join(sale.ID, user)
		}
		tick := queue.NewTicker(l.Queue, sale.ID)
		snapshot := func() *queue.Snapshot {
			t.Helper()
			s, err := tick(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		snapshot() // calls u1 and u2
		l.grab(sale.ID, "u1", "r")
		snapshot() // calls u3; u2 and u3 have turns
		reach, err := l.Reach(t.Context(), sale.ID)
		if err != nil || reach != (queue.Reach{Epoch: 1, Issued: 12, Served: 3, Calling: 2}) {
			t.Fatalf("the line is at %+v, %v", reach, err)
		}

		l.lose(sale.ID)
		if _, err := l.Reach(t.Context(), sale.ID); queue.CodeOf(err) != queue.Unavailable {
			t.Fatalf("a lost line reaches somewhere: %v", err)
		}
		if err := l.Rebuild(t.Context(), sale, reach, noOrders); err != nil {
			t.Fatal(err)
		}
		resume := func(user string, number, epoch int64) (queue.SeatStatus, int64) {
			t.Helper()
			seat, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user, Resume: number, Epoch: epoch})
			if err != nil && queue.CodeOf(err) != queue.Unavailable {
				t.Fatal(err)
			}
			return seat.Status, seat.Number
		}
		// A node takes back the numbers of those who are here, and may do it again.
		called := seats["u3"]
		called.Status = queue.Turn
		here := []queue.Seat{called, seats["u9"]}
		for range 2 {
			if err := l.Reclaim(t.Context(), sale.ID, 4, here); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			what          string
			user          string
			number, epoch int64
			status        queue.SeatStatus
			has           int64
		}{
			{"whose turn was kept", "u2", 2, 1, queue.Turn, 2},
			{"who was called and has no turn", "u1", 1, 1, queue.Missed, 1},
			{"another node's shopper", "u5", 5, 1, queue.Waiting, 5},
			{"who took it back already", "u9", 9, 1, queue.Waiting, 9},
			{"a number that somebody has", "thief", 9, 1, queue.NoSeat, 0},
			{"a number never given", "thief", 900_000, 1, queue.NoSeat, 0},
			{"a token of another epoch", "u6", 6, 2, queue.NoSeat, 0},
		} {
			if status, number := resume(test.user, test.number, test.epoch); status != test.status || number != test.has {
				t.Errorf("%s: status %d with number %d", test.what, status, number)
			}
		}
		if err := l.Ready(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		// Who comes when the line has gone on makes nobody's place worse, and is called once the cursor has passed them.
		if status, number := resume("u7", 7, 1); status != queue.Waiting || number != 7 {
			t.Errorf("who comes when the line has gone on gets status %d with number %d", status, number)
		}
		if err := l.Leave(t.Context(), sale.ID, "u7", 7); err != nil {
			t.Fatal(err)
		}
		if status, _ := resume("u7", 7, 1); status != queue.NoSeat {
			t.Errorf("who took a number back and left it has status %d", status)
		}
		if status, number := resume("u8", 8, 1); status != queue.Waiting || number != 8 {
			t.Errorf("another one who comes late gets status %d with number %d", status, number)
		}
		late := l.join(sale.ID, "late")
		s := snapshot()
		if s.Epoch != 2 || s.Turns != 2 || s.Served != 4 || s.Ahead(late.Number) != 2 || late.Number <= 12 {
			t.Errorf("the line is %+v and %d are ahead of number %d", s, s.Ahead(late.Number), late.Number)
		}
		for user, want := range map[string]queue.SeatStatus{"u2": queue.Turn, "u3": queue.Turn, "u5": queue.Waiting, "u9": queue.Waiting, "late": queue.Waiting} {
			if seat := l.look(sale.ID, user); seat.Status != want {
				t.Errorf("%s: status %d, want %d", user, seat.Status, want)
			}
		}
		l.grab(sale.ID, "u2", "r")
		l.grab(sale.ID, "u3", "r")
		if s := snapshot(); s.Served != 9 || s.Ahead(late.Number) != 0 || s.Recalled() != 1 || !s.IsRecalled(8) {
			t.Errorf("two are called, and the line is %+v", s)
		}
		l.grab(sale.ID, "u5", "r")
		if s := snapshot(); s.Served != 9 || s.Recalled() != 0 {
			t.Errorf("one more is called, and the line is %+v", s)
		}
		if seat := l.look(sale.ID, "u8"); seat.Status != queue.Turn {
			t.Errorf("who came late after the loss has %+v", seat)
		}
	})
}
