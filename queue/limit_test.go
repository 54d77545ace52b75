package queue_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"sluice/queue"
)

// The fault: an in-process limiter is N times the limit on N nodes.
func TestTwoNodesTogetherLetThroughNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts    queue.Options
		user    func(i int) string
		address func(i int) string
	}{
		"of a user from ever new addresses": {
			queue.Options{UserLimit: queue.Rate{N: 5, Per: time.Hour}},
			func(int) string { return "ann" }, func(i int) string { return fmt.Sprint("198.51.100.", i) },
		},
		"of an address with ever new users": {
			queue.Options{AddressLimit: queue.Rate{N: 5, Per: time.Hour}},
			func(i int) string { return fmt.Sprint("user-", i) }, func(int) string { return "203.0.113.7" },
		},
		"kept as a list": {
			queue.Options{UserLimit: queue.Rate{N: 70, Per: time.Hour}},
			func(int) string { return "ann" }, func(int) string { return "203.0.113.7" },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := []*line{realLine(t, c.opts), realLine(t, c.opts)}
			sale := nodes[0].start(func(s *queue.Sale) { withoutLine(s); s.Items[0].Stock = 1000 })
			limit := c.opts.UserLimit.N + c.opts.AddressLimit.N
			var passed atomic.Int64
			var wait sync.WaitGroup
			for i := range int(3 * limit) {
				wait.Go(func() {
					var err error
					if i%2 == 0 {
						_, err = nodes[i/2%2].Grab(t.Context(), queue.GrabRequest{
							Sale: sale.ID, User: c.user(i), Address: c.address(i), Item: "main", Qty: 1, RequestID: fmt.Sprint("r-", i),
						})
					} else {
						_, err = nodes[i/2%2].Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: c.user(i), Address: c.address(i)})
					}
					var refused *queue.Error
					switch {
					case err == nil:
						passed.Add(1)
					case !errors.As(err, &refused) || refused.Code != queue.Limited:
						t.Errorf("got %v", err)
					case refused.Limit != limit || refused.Remaining != 0 || refused.RetryAfter <= 0 || refused.RetryAfter > time.Hour:
						t.Errorf("the figures are %+v", refused)
					}
				})
			}
			wait.Wait()
			if passed.Load() != limit {
				t.Errorf("%d passed, with a limit of %d", passed.Load(), limit)
			}
		})
	}
}

func TestLimitsAreChangedWhileTheyCount(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, queue.Options) *line{"real": realLine, "embedded": embeddedLine} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t, queue.Options{UserLimit: queue.Rate{N: 10, Per: time.Hour}})
			user := "u-" + uuid.NewString()
			for i, step := range []struct {
				limit  int64
				passes int
			}{
				{10, 10}, {12, 2}, {5, 0}, // what passed before counts
				{70, 70}, {80, 10}, {70, 0}, // long ones are kept in another form, and begin anew
				{14, 2}, {0, 20}, {14, 0}, // and neither is taken for the other
			} {
				l.SetLimits(queue.Limits{User: queue.Rate{N: step.limit, Per: time.Hour}})
				for n := range step.passes {
					if _, err := l.Allow(t.Context(), user, "192.0.2.1"); err != nil {
						t.Fatalf("step %d: request %d: %v", i, n+1, err)
					}
				}
				if step.limit == 0 {
					continue
				}
				_, err := l.Allow(t.Context(), user, "192.0.2.1")
				var refused *queue.Error
				if !errors.As(err, &refused) || refused.Code != queue.Limited || refused.Limit != step.limit {
					t.Fatalf("step %d: beyond the limit: %v", i, err)
				}
			}
		})
	}
}

func TestWhatTheAddressIsRefusedCountsForNoUser(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{2, 65} { // the longer one is kept in another way
		onEach(t, func(t *testing.T, l *line) {
			opts := queue.Options{UserLimit: queue.Rate{N: most, Per: time.Hour}, AddressLimit: queue.Rate{N: most - 1, Per: time.Hour}}
			q := l.nodes(2, opts)[1]
			sale := l.start(nil)
			join := func(address string) string {
				_, err := q.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "ann", Address: address})
				var refused *queue.Error
				if err != nil && (!errors.As(err, &refused) || refused.Code != queue.Limited) {
					t.Fatal(err)
				}
				if refused == nil {
					return ""
				}
				return refused.By
			}
			for n := range most + 1 {
				want := "" // all of her town have had theirs after that
				if n >= most-1 {
					want = "address"
				}
				if by := join("203.0.113.7"); by != want {
					t.Errorf("request %d was refused by %q, want %q", n+1, by, want)
				}
			}
			if by := join("198.51.100.1"); by != "" {
				t.Errorf("from elsewhere ann was refused by %q, and had one left", by)
			}
			if by := join("198.51.100.1"); by != "user" {
				t.Errorf("with none left ann was refused by %q", by)
			}
		})
	}
}

func TestAWindowHoldsNoMoreThanTheLimitAndRefusesNobodyBelowIt(t *testing.T) {
	t.Parallel()
	at := time.Now().Truncate(time.Second)
	limits := []int64{1, 3, 64, 65} // the longer ones are kept in another way
	var lines []*line
	var sales []string
	for _, most := range limits {
		l := embeddedLine(t, queue.Options{UserLimit: queue.Rate{N: most, Per: time.Second}})
		l.embedded.SetTime(at)
		sale := l.start(func(s *queue.Sale) {
			withoutLine(s)
			s.OpensAt = at.Add(-time.Minute)
			s.ClosesAt = at.Add(24 * time.Hour)
		})
		lines, sales = append(lines, l), append(sales, sale.ID)
	}
	users := 0
	rapid.Check(t, func(r *rapid.T) {
		users++
		var passed []time.Time
		which := rapid.IntRange(0, len(limits)-1).Draw(r, "limit")
		most, l := limits[which], lines[which]
		for range rapid.IntRange(int(most), int(most)+10).Draw(r, "steps") {
			at = at.Add(time.Duration(rapid.Int64Range(0, 2000/most).Draw(r, "ms")) * time.Millisecond)
			l.embedded.SetTime(at)
			recent, oldest := int64(0), at
			for _, before := range passed {
				if at.Sub(before) < time.Second {
					recent++
					if before.Before(oldest) {
						oldest = before
					}
				}
			}
			asked := time.Now()
			grabbed, err := l.Grab(t.Context(), queue.GrabRequest{Sale: sales[which], User: fmt.Sprint("u", users), Item: "main", Qty: 1, RequestID: "r"})
			if err == nil != (recent < most) || err != nil && queue.CodeOf(err) != queue.Limited {
				r.Fatalf("%d of %d passed within the second, and the next got %v", recent, most, err)
			}
			if err == nil {
				passed = append(passed, at)
				wait, left := oldest.Add(time.Second).Sub(at), grabbed.Allowance
				if left == nil || left.Limit != most || left.Remaining != most-recent-1 ||
					left.Reset.Before(asked.Add(wait)) || left.Reset.After(time.Now().Add(wait)) {
					r.Fatalf("%d of %d passed before within the second, and one more may in %s; the figures are %+v", recent, most, wait, left)
				}
				continue
			}
			var refused *queue.Error
			errors.As(err, &refused)
			if oldest := passed[int64(len(passed))-most]; at.Add(refused.RetryAfter).Sub(oldest) != time.Second {
				r.Fatalf("told to wait %s, and the oldest of %d passed %s ago", refused.RetryAfter, most, at.Sub(oldest))
			}
		}
	})
}

func TestWhatIsOfNoSaleIsLimitedOverAllNodesToo(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]queue.Options{
		"a user":                 {UserLimit: queue.Rate{N: 5, Per: time.Minute}},
		"a user, kept as a list": {UserLimit: queue.Rate{N: 70, Per: time.Minute}},
		"an address":             {AddressLimit: queue.Rate{N: 5, Per: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := []*line{realLine(t, limits), realLine(t, limits)}
			user, address, limit := "u-"+uuid.NewString(), "a-"+uuid.NewString(), limits.UserLimit.N+limits.AddressLimit.N
			var passed atomic.Int64
			var wait sync.WaitGroup
			for i := range int(3 * limit) {
				wait.Go(func() {
					left, err := nodes[i%2].Allow(t.Context(), user, address)
					var refused *queue.Error
					switch {
					case err == nil:
						passed.Add(1)
						if left.Limit != limit || left.Remaining < 0 || left.Remaining >= limit || !left.Reset.After(time.Now()) {
							t.Errorf("the figures are %+v", left)
						}
					case !errors.As(err, &refused) || refused.Code != queue.Limited:
						t.Errorf("got %v", err)
					case refused.Limit != limit || refused.RetryAfter <= 0 || refused.RetryAfter > time.Minute || !refused.Reset.After(time.Now()):
						t.Errorf("the figures are %+v", refused)
					}
				})
			}
			wait.Wait()
			if passed.Load() != limit {
				t.Errorf("%d passed, with a limit of %d", passed.Load(), limit)
			}
			// Another user from another address is none of it, and nor is a sale's own window.
			if _, err := nodes[0].Allow(t.Context(), "u-"+uuid.NewString(), "a-"+uuid.NewString()); err != nil {
				t.Errorf("somebody else got %v", err)
			}
			sale := nodes[0].start(withoutLine)
			if _, err := nodes[1].Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user, Address: address}); err != nil {
				t.Errorf("joining a sale got %v", err)
			}
			// Whoever is not known yet is counted by the address alone.
			_, err := nodes[1].Allow(t.Context(), "", address)
			if byAddress := limits.AddressLimit.On(); (queue.CodeOf(err) == queue.Limited) != byAddress || !byAddress && err != nil {
				t.Errorf("without a user: %v", err)
			}
		})
	}
}

// A crowded address must not use up what its users may ask: they are told to come again, and then are to be below their limit.
func TestWhatOneLimitRefusesTheOtherDoesNotCount(t *testing.T) {
	t.Parallel()
	for _, most := range []int64{3, 70} { // kept in two ways
		l := realLine(t, queue.Options{UserLimit: queue.Rate{N: most, Per: time.Hour}, AddressLimit: queue.Rate{N: most - 1, Per: time.Hour}})
		sale := l.start(func(s *queue.Sale) { withoutLine(s); s.Items[0].Stock = 1000 })
		for name, ask := range map[string]func(user, address string) error{
			"grab": func(user, address string) error {
				_, err := l.Grab(t.Context(), queue.GrabRequest{
					Sale: sale.ID, User: "grab-" + user, Address: "grab-" + address, Item: "main", Qty: 1, RequestID: "r",
				})
				return err
			},
			"join": func(user, address string) error {
				_, err := l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "join-" + user, Address: "join-" + address})
				return err
			},
			"of no sale": func(user, address string) error {
				_, err := l.Allow(t.Context(), sale.ID+user, sale.ID+address)
				return err
			},
		} {
			want := func(user, address, by string) {
				t.Helper()
				err := ask(user, address)
				var refused *queue.Error
				if errors.As(err, &refused) && refused.By == by || err == nil && by == "" {
					return
				}
				t.Fatalf("%s, %d: %s from %s got %v, want it refused by %q", name, most, user, address, err, by)
			}
			for range most - 1 {
				want("ann", "town", "")
			}
			for range most {
				want("ann", "town", "address")
			}
			want("ann", "home", "")
			for range most {
				want("ann", "home", "user")
			}
			for range most - 2 {
				want("bob", "home", "")
			}
			want("bob", "home", "address")
		}
	}
}

func TestWithoutLimitsNothingIsAskedOfRedis(t *testing.T) {
	t.Parallel()
	away, err := queue.Connect("redis://127.0.0.1:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	if left, err := queue.New(away, queue.Options{}).Allow(t.Context(), "ann", "203.0.113.7"); left != nil || err != nil {
		t.Errorf("got %v, %v", left, err)
	}
	limited := queue.New(away, queue.Options{UserLimit: queue.Rate{N: 1, Per: time.Second}})
	if _, err := limited.Allow(t.Context(), "ann", "203.0.113.7"); err == nil || queue.CodeOf(err) == queue.Limited {
		t.Errorf("with Redis away: got %v", err)
	}
	if _, err := limited.Allow(t.Context(), "", "203.0.113.7"); err != nil {
		t.Errorf("without a user, and no limit of addresses: got %v", err)
	}
}

func TestAJoinSaysWhatTheLimitWithLessLeftLeaves(t *testing.T) {
	t.Parallel()
	limits := queue.Options{UserLimit: queue.Rate{N: 5, Per: time.Hour}, AddressLimit: queue.Rate{N: 70, Per: time.Minute}}
	l := realLine(t, limits)
	sale := l.start(func(s *queue.Sale) { s.Access.ChallengeURL = "https://verifier.example" })
	join := func(solved bool) (queue.Seat, error) {
		return l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: "ann", Address: "203.0.113.7", Solved: solved})
	}
	for range 2 { // both are counted, and refused for another reason
		if _, err := join(false); queue.CodeOf(err) != queue.Forbidden {
			t.Fatalf("got %v", err)
		}
	}
	// The call that follows a solved challenge belongs to the one before, and is not counted again.
	seat, err := join(true)
	if left := seat.Allowance; err != nil || left == nil || left.Limit != 5 || left.Remaining != 3 || time.Until(left.Reset) > time.Hour || time.Until(left.Reset) < 50*time.Minute {
		t.Fatalf("after two requests of five: %+v, %v", left, err)
	}
	for i := range 66 { // others use up what the address has, but for two
		_, _ = l.Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: fmt.Sprint("u-", i), Address: "203.0.113.7"})
	}
	for _, rest := range []int64{1, 0} {
		seat, err = join(false)
		if left := seat.Allowance; err != nil || left == nil || left.Limit != 70 || left.Remaining != rest || time.Until(left.Reset) > time.Minute {
			t.Errorf("with %d left of the address: %+v, %v", rest, left, err)
		}
	}
	if _, err := join(false); queue.CodeOf(err) != queue.Limited {
		t.Errorf("with nothing left: %v", err)
	}
}
