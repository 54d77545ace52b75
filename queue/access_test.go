package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// gated is a sale that has not opened, with those access rules.
func (l *line) gated(access queue.Access, changes ...func(*queue.Sale)) queue.Sale {
	l.t.Helper()
	return l.start(func(s *queue.Sale) {
		s.OpensAt = time.Now().Add(time.Hour).Truncate(time.Millisecond)
		s.ClosesAt = s.OpensAt.Add(time.Hour)
		s.Access = access
		for _, change := range changes {
			change(s)
		}
	})
}

// knock joins, and says which rule keeps the user out; "" = none, and then there is a seat.
func (l *line) knock(q *queue.Queue, req queue.JoinRequest) (queue.Seat, queue.Reason) {
	l.t.Helper()
	seat, err := q.Join(context.Background(), req)
	var e *queue.Error
	switch {
	case err == nil && seat.Ticket > 0:
		return seat, ""
	case errors.As(err, &e) && e.Code == queue.Forbidden && e.Reason != "":
		return seat, e.Reason
	}
	l.t.Errorf("%s got %+v, %v", req.User, seat, err)
	return seat, "?"
}

// contents is everything that Redis has of a sale.
func (l *line) contents(sale string) map[string]any {
	l.t.Helper()
	ctx, all := l.t.Context(), map[string]any{}
	for _, key := range queue.KeysOf(sale) {
		var value any
		var err error
		switch l.rdb.Type(ctx, key).Val() {
		case "hash":
			value, err = l.rdb.HGetAll(ctx, key).Result()
		case "string":
			value, err = l.rdb.Get(ctx, key).Result()
		case "zset":
			value, err = l.rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		case "stream":
			value, err = l.rdb.XRange(ctx, key, "-", "+").Result()
		}
		if err != nil {
			l.t.Fatal(err)
		}
		all[key] = value
	}
	return all
}

func ip(text string) netip.Addr { return netip.MustParseAddr(text) }

// nodes are queues of their own on the Redis of a line, as several processes have them.
func (l *line) nodes(n int, opts queue.Options) []*queue.Queue {
	opts.Embedded = l.embedded != nil
	queues := []*queue.Queue{l.Queue}
	for len(queues) < n {
		queues = append(queues, queue.New(l.rdb, opts))
	}
	return queues
}

func TestEachAccessRuleDecidesBeforeTheSeatAndAsksNobodyWhoHoldsOne(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		access  queue.Access
		refused queue.JoinRequest
		reason  queue.Reason
		allowed queue.JoinRequest
	}{
		"no code": {
			queue.Access{Codes: queue.Codes{{Code: "OPEN-1", Uses: 1}}},
			queue.JoinRequest{}, queue.CodeNeeded, queue.JoinRequest{Code: "OPEN-1"},
		},
		"a code that there is not": {
			queue.Access{Codes: queue.Codes{{Code: "OPEN-1", Uses: 1}}},
			queue.JoinRequest{Code: "open-1"}, queue.CodeUsed, queue.JoinRequest{Code: "OPEN-1"},
		},
		"a user who is denied": {
			queue.Access{Deny: []string{"mallory"}},
			queue.JoinRequest{User: "mallory"}, queue.Denied, queue.JoinRequest{},
		},
		"a range that is denied": {
			queue.Access{Deny: []string{"10.0.0.0/8"}},
			queue.JoinRequest{Peer: ip("10.9.8.7")}, queue.Denied, queue.JoinRequest{Peer: ip("11.0.0.1")},
		},
		"a range that is denied, written as IPv6": {
			queue.Access{Deny: []string{"10.0.0.0/8"}},
			queue.JoinRequest{Peer: ip("::ffff:10.9.8.7")}, queue.Denied, queue.JoinRequest{Peer: ip("::a09:807")},
		},
		"a range of IPv6 that is denied": {
			queue.Access{Deny: []string{"2001:db8:1::/48"}},
			queue.JoinRequest{Peer: ip("2001:db8:1:2::3")}, queue.Denied, queue.JoinRequest{Peer: ip("2001:db8:2::1")},
		},
		"one address that is denied": {
			queue.Access{Deny: []string{"192.0.2.7"}},
			queue.JoinRequest{Peer: ip("192.0.2.7")}, queue.Denied, queue.JoinRequest{Peer: ip("192.0.2.8")},
		},
		"a user whom nobody listed": {
			queue.Access{Allow: []string{"vip"}},
			queue.JoinRequest{Peer: ip("192.0.2.7")}, queue.Denied, queue.JoinRequest{User: "vip"},
		},
		"an address that nobody listed": {
			queue.Access{Allow: []string{"192.0.2.0/24", "2001:db8::/32"}},
			queue.JoinRequest{Peer: ip("198.51.100.1")}, queue.Denied, queue.JoinRequest{Peer: ip("2001:db8::1")},
		},
		"an address that is not known, with an allow list": {
			queue.Access{Allow: []string{"0.0.0.0/0", "::/0"}},
			queue.JoinRequest{}, queue.Denied, queue.JoinRequest{Peer: ip("2001:db8::1")},
		},
		"a user who is on both lists": {
			queue.Access{Allow: []string{"vip", "10.0.0.0/8"}, Deny: []string{"10.0.0.7"}},
			queue.JoinRequest{User: "vip", Peer: ip("10.0.0.7")}, queue.Denied, queue.JoinRequest{User: "vip", Peer: ip("10.0.0.8")},
		},
		"no challenge": {
			queue.Access{ChallengeURL: "https://verifier.example"},
			queue.JoinRequest{}, queue.ChallengeNeeded, queue.JoinRequest{Solved: true},
		},
		"a challenge solved by somebody without a code": {
			queue.Access{ChallengeURL: "https://verifier.example", Codes: queue.Codes{{Code: "OPEN-1"}}},
			queue.JoinRequest{Solved: true}, queue.CodeNeeded, queue.JoinRequest{Solved: true, Code: "OPEN-1"},
		},
		"a code without the challenge": {
			queue.Access{ChallengeURL: "https://verifier.example", Codes: queue.Codes{{Code: "OPEN-1", Uses: 1}}},
			queue.JoinRequest{Code: "OPEN-1"}, queue.ChallengeNeeded, queue.JoinRequest{Solved: true, Code: "OPEN-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, l *line) {
				sale := l.gated(test.access)
				test := test
				for _, req := range []*queue.JoinRequest{&test.refused, &test.allowed} {
					req.Sale = sale.ID
					if req.User == "" {
						req.User = "ann"
					}
				}
				before := l.contents(sale.ID)
				for range 2 {
					if _, why := l.knock(l.Queue, test.refused); why != test.reason {
						t.Fatalf("refused for %q, want %q", why, test.reason)
					}
				}
				if diff := cmp.Diff(before, l.contents(sale.ID)); diff != "" {
					t.Fatalf("a refusal changed something: %s", diff)
				}
				seat, why := l.knock(l.Queue, test.allowed)
				if why != "" || seat.Status != queue.Waiting {
					t.Fatalf("who fulfils the rule got %+v, %q", seat, why)
				}
				taken := l.contents(sale.ID)
				// The retry after a lost reply, and the one who comes back without anything.
				bare := queue.JoinRequest{Sale: sale.ID, User: test.allowed.User, Peer: test.refused.Peer}
				for _, again := range []queue.JoinRequest{test.allowed, bare, {Sale: sale.ID, User: bare.User, Resume: queue.ResumeAny}} {
					if found, why := l.knock(l.Queue, again); why != "" || found.Ticket != seat.Ticket {
						t.Fatalf("who holds seat %d got %+v, %q", seat.Ticket, found, why)
					}
				}
				if diff := cmp.Diff(taken, l.contents(sale.ID)); diff != "" {
					t.Fatalf("coming back changed something: %s", diff)
				}
			})
		})
	}
}

func TestACodeForOneLetsInOneOfAHundredAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		for _, uses := range []int64{1, 7} {
			sale := l.gated(queue.Access{Codes: queue.Codes{{Code: "JUST-ME", Uses: uses}}})
			if got := l.race(sale.ID, 100, func(req *queue.JoinRequest) { req.Code = "JUST-ME" }); got[""] != int(uses) || got[queue.CodeUsed] != 100-int(uses) {
				t.Errorf("a code for %d let in as many as this: %v", uses, got)
			}
			if reach, err := l.Reach(t.Context(), sale.ID); err != nil || reach.Issued != uses {
				t.Errorf("%d seats were given, %v", reach.Issued, err)
			}
		}
	})
}

func TestNoMoreSeatsThanItsShareGoToOneAddressHoweverManyAskAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{SeatsPerAddress: 3})
		if got := l.race(sale.ID, 100, func(req *queue.JoinRequest) { req.Address = "2001:db8::/64" }); got[""] != 3 || got[queue.Denied] != 97 {
			t.Errorf("one address got this: %v", got)
		}
		if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "neighbour", Address: "2001:db8:0:1::/64"}); why != "" {
			t.Errorf("another address is refused: %s", why)
		}
	})
}

// race has so many users join at once over three nodes, and counts what became of them.
func (l *line) race(sale string, users int, change func(*queue.JoinRequest)) map[queue.Reason]int {
	l.t.Helper()
	nodes := l.nodes(3, queue.Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[queue.Reason]int{}
	for i := range users {
		wg.Go(func() {
			req := queue.JoinRequest{Sale: sale, User: fmt.Sprint("u", i)}
			change(&req)
			_, why := l.knock(nodes[i%len(nodes)], req)
			mu.Lock()
			defer mu.Unlock()
			got[why]++
		})
	}
	wg.Wait()
	return got
}

func TestWhoHasUsedACodeNeedsNoneAgainAndNobodyElseGetsItsUse(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{Codes: queue.Codes{{Code: "JUST-ME", Uses: 1}, {Code: "US-TWO", Uses: 2}}})
		join := func(user, code string) (queue.Seat, queue.Reason) {
			return l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: user, Code: code})
		}
		leave := func(user string, seat queue.Seat) {
			t.Helper()
			if err := l.Leave(t.Context(), sale.ID, user, seat.Ticket); err != nil {
				t.Fatal(err)
			}
		}
		seat, why := join("ann", "JUST-ME")
		if why != "" || seat.Code != "JUST-ME" {
			t.Fatalf("ann got %+v, %q", seat, why)
		}
		for _, code := range []string{"JUST-ME", "", "US-TWO", "nonsense"} {
			leave("ann", seat)
			if _, why := join("bob", "JUST-ME"); why != queue.CodeUsed {
				t.Fatalf("bob got in by ann's code: %q", why)
			}
			if seat, why = join("ann", code); why != "" || seat.Code != "JUST-ME" {
				t.Fatalf("ann came back with %q and got %+v, %q", code, seat, why)
			}
		}
		// The codes that ann named beside hers were left alone.
		for _, user := range []string{"bob", "cem"} {
			if _, why := join(user, "US-TWO"); why != "" {
				t.Fatalf("%s is refused: %s", user, why)
			}
		}
		if _, why := join("dan", "US-TWO"); why != queue.CodeUsed {
			t.Fatalf("a third got in by a code for two: %q", why)
		}
	})
}

func TestAccessRulesMayChangeAndConcernLaterSeatsOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{Codes: queue.Codes{{Code: "ONCE", Uses: 1}}})
		nodes := l.nodes(3, queue.Options{})
		apply := func(change func(*queue.Access)) {
			t.Helper()
			sale.Access.Codes = slices.Clone(sale.Access.Codes)
			change(&sale.Access)
			if err := l.Apply(t.Context(), sale); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		expect := func(user, code string, want queue.Reason) {
			t.Helper()
			n++ // each time by another node, none of which has heard of the change
			if _, why := l.knock(nodes[n%3], queue.JoinRequest{Sale: sale.ID, User: user, Code: code, Peer: ip("10.0.0.1")}); why != want {
				t.Fatalf("%s got %q, want %q", user, why, want)
			}
		}
		expect("ann", "ONCE", "")
		expect("bob", "ONCE", queue.CodeUsed)
		apply(func(a *queue.Access) { a.Codes[0].Uses = 2 })
		expect("bob", "ONCE", "")
		expect("cem", "ONCE", queue.CodeUsed)
		apply(func(a *queue.Access) { a.Codes[0] = queue.AccessCode{Code: "OTHER"} })
		expect("cem", "ONCE", queue.CodeUsed)
		expect("cem", "OTHER", "")
		expect("ann", "", "") // holds a seat
		apply(func(a *queue.Access) { a.Codes[0] = queue.AccessCode{Code: "ONCE", Uses: 2} })
		expect("dan", "ONCE", queue.CodeUsed) // what was used stays used
		apply(func(a *queue.Access) { a.Codes, a.Deny = nil, []string{"dan"} })
		for range 3 {
			expect("dan", "", queue.Denied)
		}
		expect("eve", "", "")
		apply(func(a *queue.Access) { a.Deny, a.Allow = nil, []string{"10.0.0.0/31"} })
		for i := range 3 {
			expect(fmt.Sprint("let in ", i), "", "")
		}
		apply(func(a *queue.Access) { a.Allow = []string{"10.0.0.2/31", "ann"} })
		for i := range 3 {
			expect(fmt.Sprint("kept out ", i), "", queue.Denied)
		}
		expect("eve", "", "") // holds a seat
		apply(func(a *queue.Access) { *a = queue.Access{} })
		expect("dan", "", "")
	})
}

// TestJoinsAreJudgedByTheListsOfTheMoment: a user is put on the deny list and taken off it again and again, while other nodes
// let join. Whoever is refused was on it at some time during the call, and whoever is let in was off it.
func TestJoinsAreJudgedByTheListsOfTheMoment(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.gated(queue.Access{Deny: []string{"nobody"}})
	nodes := l.nodes(3, queue.Options{})
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i, node := range nodes {
		wg.Go(func() { // keeps the lists of the nodes on the move
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if _, err := node.Join(context.Background(), queue.JoinRequest{Sale: sale.ID, User: fmt.Sprint("other", i, n)}); err != nil {
					if queue.CodeOf(err) == queue.Unavailable {
						continue
					}
					t.Errorf("somebody else is refused: %v", err)
				}
			}
		})
	}
	for round := range 40 {
		user := fmt.Sprint("u", round)
		sale.Access.Deny = []string{user}
		if err := l.Apply(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[round%3].Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user}); queue.CodeOf(err) != queue.Forbidden {
			t.Errorf("who was denied before got %v", err)
		}
		sale.Access.Deny = []string{"nobody"}
		if err := l.Apply(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[round%3].Join(t.Context(), queue.JoinRequest{Sale: sale.ID, User: user}); err != nil {
			t.Errorf("who is not denied any more got %v", err)
		}
	}
	close(done)
	wg.Wait()
}

// TestListsOfBeforeALossJudgeNobody: a node that has not let anybody join since must not take its lists for those of now.
func TestListsOfBeforeALossJudgeNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{Deny: []string{"nobody"}})
		sale.Access.Deny = []string{"bob"}
		if err := l.Apply(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		idle := l.nodes(2, queue.Options{})[1]
		if _, why := l.knock(idle, queue.JoinRequest{Sale: sale.ID, User: "ann"}); why != "" {
			t.Fatalf("ann got %q", why)
		}
		for _, key := range queue.KeysOf(sale.ID) {
			l.rdb.Del(t.Context(), key)
		}
		if err := l.Restore(t.Context(), sale, queue.Reach{}, noOrders); err != nil {
			t.Fatal(err)
		}
		sale.Access.Deny = []string{"mallory"}
		if err := l.Apply(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		for user, want := range map[string]queue.Reason{"mallory": queue.Denied, "bob": ""} {
			if _, why := l.knock(idle, queue.JoinRequest{Sale: sale.ID, User: user}); why != want {
				t.Errorf("%s got %q, want %q", user, why, want)
			}
		}
	})
}

func TestReadingTheListsAgainCostsNoRequestOfALimit(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{UserLimit: queue.Rate{N: 2, Per: time.Hour}})
	sale := l.gated(queue.Access{Deny: []string{"mallory"}, ChallengeURL: "https://verifier.example"})
	req := queue.JoinRequest{Sale: sale.ID, User: "ann"}
	if _, why := l.knock(l.Queue, req); why != queue.ChallengeNeeded {
		t.Fatalf("got %q", why)
	}
	req.Solved = true // the second call of the same request
	if _, why := l.knock(l.Queue, req); why != "" {
		t.Fatalf("got %q", why)
	}
	req.Solved = false
	if _, err := l.Join(t.Context(), req); err != nil {
		t.Fatalf("a second request of two is refused: %v", err)
	}
	if _, err := l.Join(t.Context(), req); queue.CodeOf(err) != queue.Limited {
		t.Fatalf("a third request of two got %v", err)
	}
}

func TestASeatOfAnAddressIsFreeAgainOnceItHasEnded(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		id := saleID()
		key := "sluice:{" + id + "}:clock"
		clock := time.Now().UnixMicro()
		forward := func(d time.Duration) {
			clock += d.Microseconds()
			if err := l.rdb.Set(t.Context(), key, clock, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		forward(0)
		queue.SetClock(l.Queue, key)
		sale := l.start(func(s *queue.Sale) {
			s.ID, s.Access.SeatsPerAddress, s.Line.Active, s.Hold = id, 1, 1, queue.Duration(time.Hour)
			s.Line.Turn, s.Line.Grace = queue.Duration(time.Second), queue.Duration(time.Second)
		})
		tick := queue.NewTicker(l.Queue, sale.ID)
		ticks := func(d time.Duration) {
			t.Helper()
			for ; d > 0; d -= time.Second / 2 {
				forward(time.Second / 2)
				if _, err := tick(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		join := func(user string, want queue.Reason) queue.Seat {
			t.Helper()
			seat, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: user, Address: "192.0.2.1", Connected: user != "absent"})
			if why != want {
				t.Fatalf("%s got %q, want %q", user, why, want)
			}
			return seat
		}
		first := join("left", "")
		join("next", queue.Denied)
		if err := l.Leave(t.Context(), sale.ID, "left", first.Ticket); err != nil {
			t.Fatal(err)
		}
		missed := join("missed", "")
		ticks(500 * time.Millisecond)
		if seat := l.look(sale.ID, "missed"); seat.Status != queue.Turn {
			t.Fatalf("a turn was to come: %+v", seat)
		}
		join("next", queue.Denied) // in a turn
		ticks(2 * time.Second)
		if seat := l.look(sale.ID, "missed"); seat.Status != queue.Missed {
			t.Fatalf("the turn of %d was to be over: %+v", missed.Ticket, seat)
		}
		join("buyer", "")
		join("missed", queue.Denied) // whoever wants another seat is like everybody
		ticks(500 * time.Millisecond)
		order := l.grab(sale.ID, "buyer", "r").Order
		join("next", queue.Denied) // an order is a seat that is being used
		if _, err := l.Release(t.Context(), sale.ID, []queue.Order{*order}); err != nil {
			t.Fatal(err)
		}
		join("next", "")
		join("buyer", queue.Denied)
		// A seat stays with the address that took it, wherever its user is.
		if seat, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "next", Address: "192.0.2.2"}); why != "" || seat.Ticket == 0 {
			t.Fatalf("a seat from elsewhere got %+v, %q", seat, why)
		}
		join("buyer", queue.Denied)
		if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "at home", Address: "192.0.2.2"}); why != "" {
			t.Fatalf("the other address is refused: %q", why)
		}
	})
}

// TestALossOfRedisLetsNobodyElseUseACode: those who take their seats back, by themselves or through their node, bring back
// which code they used, and from where they came.
func TestALossOfRedisLetsNobodyElseUseACode(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{
			SeatsPerAddress: 1,
			Codes:           queue.Codes{{Code: "FOR-ANN", Uses: 1}, {Code: "FOR-BOB", Uses: 1}, {Code: "FOR-ALL"}},
		})
		ann, _ := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "ann", Code: "FOR-ANN", Address: "192.0.2.1"})
		bob, _ := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "bob", Code: "FOR-BOB", Address: "192.0.2.2"})
		reach, err := l.Reach(t.Context(), sale.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range queue.KeysOf(sale.ID) {
			l.rdb.Del(t.Context(), key)
		}
		if err := l.Rebuild(t.Context(), sale, reach, noOrders); err != nil {
			t.Fatal(err)
		}
		if err := l.Reclaim(t.Context(), sale.ID, 0, []queue.Seat{bob}); err != nil { // by its node, while the sale recovers
			t.Fatal(err)
		}
		if err := l.Ready(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			back, why := l.knock(l.Queue, queue.JoinRequest{
				Sale: sale.ID, User: "ann", Resume: ann.Ticket, Epoch: ann.Epoch, Code: ann.Code, Address: "192.0.2.1",
			})
			if why != "" || back.Ticket != ann.Ticket || back.Code != "FOR-ANN" {
				t.Fatalf("ann has %+v, %q", back, why)
			}
		}
		for code, want := range map[string]queue.Reason{"FOR-ANN": queue.CodeUsed, "FOR-BOB": queue.CodeUsed, "": queue.CodeNeeded} {
			if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "eve", Code: code, Address: "192.0.2.3"}); why != want {
				t.Errorf("eve with the code %q got %q, want %q", code, why, want)
			}
		}
		for _, address := range []string{"192.0.2.1", "192.0.2.2"} {
			if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "eve", Code: "FOR-ALL", Address: address}); why != queue.Denied {
				t.Errorf("from %s eve got %q", address, why)
			}
		}
	})
}

func TestASaleTakesTenThousandCodes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		var codes queue.Codes
		for i := range 10_000 {
			codes = append(codes, queue.AccessCode{Code: fmt.Sprintf("CODE-%06d", i), Uses: 1})
		}
		sale := l.gated(queue.Access{Codes: codes})
		for _, i := range []int{0, 999, 1000, 9999} {
			req := queue.JoinRequest{Sale: sale.ID, User: fmt.Sprint("u", i), Code: codes[i].Code}
			if _, why := l.knock(l.Queue, req); why != "" {
				t.Errorf("code %d is refused: %q", i, why)
			}
		}
		if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "eve", Code: "CODE-010000"}); why != queue.CodeUsed {
			t.Errorf("a code that there is not got %q", why)
		}
		sale.Access.Codes = codes[:1]
		if err := l.Apply(t.Context(), sale); err != nil {
			t.Fatal(err)
		}
		if _, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: "eve", Code: codes[5].Code}); why != queue.CodeUsed {
			t.Errorf("a code that was taken away got %q", why)
		}
	})
}
