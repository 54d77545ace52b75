package queue_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/queue"
)

// ranked are the codes of a sale in which priorities put the lobby in order.
var ranked = queue.Codes{{Code: "ANYBODY"}, {Code: "MEMBERS", Priority: 1}, {Code: "FRIENDS", Priority: 7}, {Code: "FAMILY", Priority: 255}}

// comer is somebody in a lobby.
type comer struct {
	user     string
	code     queue.AccessCode
	seat     queue.Seat
	hasLeft  bool
	wasAhead int64
}

func (c *comer) join(t *testing.T, l *line, sale queue.Sale) {
	t.Helper()
	leaf := queue.Leaf(c.user, [16]byte{})
	seat, why := l.knock(l.Queue, queue.JoinRequest{Sale: sale.ID, User: c.user, Code: c.code.Code, Connected: true, Leaf: leaf[:]})
	if why != "" {
		t.Fatalf("%s is refused: %s", c.user, why)
	}
	c.seat = seat
}

// crowd fills a lobby at random; some leave again.
func crowd(t *testing.T, l *line, sale queue.Sale, n int) []*comer {
	t.Helper()
	var comers []*comer
	for i := range n {
		c := &comer{user: fmt.Sprint("u", i), code: sale.Access.Codes[rand.IntN(len(sale.Access.Codes))]}
		c.join(t, l, sale)
		if c.seat.Number != 0 || c.seat.Status != queue.Waiting {
			t.Fatalf("%s has %+v in the lobby", c.user, c.seat)
		}
		comers = append(comers, c)
		if rand.IntN(5) == 0 {
			left := comers[rand.IntN(len(comers))]
			if err := l.Leave(t.Context(), sale.ID, left.user, left.seat.Ticket); err != nil {
				t.Fatal(err)
			}
			left.hasLeft = true
		}
	}
	return slices.DeleteFunc(comers, func(c *comer) bool { return c.hasLeft })
}

// inOrder opens a sale and puts its lobby in order.
func inOrder(t *testing.T, l *line, sale queue.Sale) queue.Draw {
	t.Helper()
	if _, err := l.Open(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	draw := freeze(t, l, sale)
	draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, "")
	for range 2 {
		if err := l.Draw(t.Context(), draw, draw.Table(sale.Line.Order)); err != nil {
			t.Fatal(err)
		}
	}
	return draw
}

// wanted is who is to be called when, from the rules as they are told to people.
func wanted(sale queue.Sale, draw queue.Draw, comers []*comer) []*comer {
	want := slices.Clone(comers) // by arrival
	if sale.Line.Order == queue.Lottery {
		for place, index := range queue.DrawOrder(draw.Seed, len(comers)) {
			want[place] = comers[index]
		}
	}
	slices.SortStableFunc(want, func(a, b *comer) int { return cmp.Compare(b.code.Priority, a.code.Priority) })
	return want
}

func TestPrioritiesPutTheLobbyInOrderAndNobodyElse(t *testing.T) {
	t.Parallel()
	for _, order := range []queue.LineOrder{queue.FIFO, queue.Lottery} {
		t.Run(string(order), func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, l *line) {
				sale := l.gated(queue.Access{Codes: ranked}, func(s *queue.Sale) { s.Line.Order, s.Line.Active = order, 3 })
				comers := crowd(t, l, sale, 60)
				tick := queue.NewTicker(l.Queue, sale.ID)
				if s, err := tick(t.Context()); err != nil || s.State != queue.Lobby || s.Waiting() != int64(len(comers)) {
					t.Fatalf("the lobby is %+v with %d, %v", s, s.Waiting(), err)
				}
				// The code is a key once: a priority that changes concerns those who join from then on.
				sale.Access.Codes = slices.Clone(sale.Access.Codes)
				sale.Access.Codes[0].Priority = 3
				if err := l.Apply(t.Context(), sale); err != nil {
					t.Fatal(err)
				}
				later := &comer{user: "later", code: sale.Access.Codes[0]}
				later.join(t, l, sale)
				draw := inOrder(t, l, sale)
				late := &comer{user: "late", code: sale.Access.Codes[3]}
				late.join(t, l, sale)
				want := append(wanted(sale, draw, append(slices.Clone(comers), later)), late)
				for i, c := range want {
					if seat := l.look(sale.ID, c.user); seat.Number != int64(i+1) || seat.Ticket != c.seat.Ticket {
						t.Errorf("%s with %s has the number %d, want %d", c.user, c.code.Code, seat.Number, i+1)
					}
				}
				s, err := tick(t.Context())
				if err != nil || s.Turns != 3 || !s.Drawn || s.Waiting() != int64(len(want)-3) {
					t.Fatalf("the line is %+v with %d, %v", s, s.Waiting(), err)
				}
				for i, c := range want[:4] {
					if seat := l.look(sale.ID, c.user); (seat.Status == queue.Turn) != (i < 3) {
						t.Errorf("place %d is %+v", i+1, seat)
					}
				}
				if g := l.grab(sale.ID, want[0].user, "r"); g.Result != queue.Success {
					t.Errorf("the first grabbed and got %+v", g)
				}
				for _, c := range want {
					ahead := s.Ahead(l.look(sale.ID, c.user).Number)
					c.wasAhead = ahead
				}
				(&comer{user: "last", code: sale.Access.Codes[3]}).join(t, l, sale)
				if s, err = tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, c := range want {
					if ahead := s.Ahead(l.look(sale.ID, c.user).Number); ahead > c.wasAhead {
						t.Errorf("of %s %d were ahead, and now %d", c.user, c.wasAhead, ahead)
					}
				}
			})
		})
	}
}

// TestALobbyThatIsLostKeepsItsPriorities: before the opening by those who come back, and after it by what was kept of the draw.
func TestALobbyThatIsLostKeepsItsPriorities(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.gated(queue.Access{Codes: ranked}, func(s *queue.Sale) { s.Line.Active = 1 })
		comers := crowd(t, l, sale, 30)
		lose := func(draw *queue.Draw) {
			t.Helper()
			reach, err := l.Reach(t.Context(), sale.ID)
			if err != nil {
				t.Fatal(err)
			}
			if reach.Draw = draw; draw != nil {
				sale.OpensAt = time.Now().Add(-time.Minute)
			}
			for _, key := range queue.KeysOf(sale.ID) {
				l.rdb.Del(t.Context(), key)
			}
			if err := l.Restore(t.Context(), sale, reach, noOrders); err != nil {
				t.Fatal(err)
			}
			for _, i := range rand.Perm(len(comers)) {
				c := comers[i]
				leaf := queue.Leaf(c.user, [16]byte{})
				seat, why := l.knock(l.Queue, queue.JoinRequest{
					Sale: sale.ID, User: c.user, Resume: c.seat.Ticket, Epoch: c.seat.Epoch, Code: c.seat.Code, Leaf: leaf[:], Connected: true,
				})
				if why != "" || seat.Ticket != c.seat.Ticket {
					t.Fatalf("%s came back and has %+v, %q", c.user, seat, why)
				}
				c.seat = seat
			}
		}
		lose(nil)
		draw := inOrder(t, l, sale)
		want := wanted(sale, draw, comers)
		for range 2 {
			for i, c := range want {
				if seat := l.look(sale.ID, c.user); seat.Number != int64(i+1) {
					t.Errorf("%s with %s has the number %d, want %d", c.user, c.code.Code, seat.Number, i+1)
				}
			}
			lose(&draw)
		}
	})
}

func TestWhetherCodesHaveAPriorityIsFixedOnceTheLineHasBegun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		plain := queue.Codes{{Code: "ANYBODY"}}
		for _, test := range []struct {
			before, after queue.Codes
			order         queue.LineOrder
			want          queue.Code
		}{
			{plain, ranked, queue.FIFO, queue.Conflict},
			{ranked, plain, queue.FIFO, queue.Conflict},
			{ranked, nil, queue.FIFO, queue.Conflict},
			{ranked, ranked[:2], queue.FIFO, ""},
			{plain, ranked, queue.Lottery, ""},
			{ranked, plain, queue.Lottery, ""},
		} {
			sale := l.gated(queue.Access{Codes: test.before}, func(s *queue.Sale) { s.Line.Order = test.order })
			next := sale
			next.Access.Codes = test.after
			for what, check := range map[string]func() error{
				"check":  func() error { return l.Check(t.Context(), next) },
				"apply":  func() error { return l.Apply(t.Context(), next) },
				"become": func() error { return sale.MayBecome(&next, time.Now(), nil) },
			} {
				if err := check(); queue.CodeOf(err) != test.want {
					t.Errorf("%s from %v to %v in a %s: got %v, want %q", what, test.before, test.after, test.order, err, test.want)
				}
			}
		}
		// Before anybody could join it is as free as everything else.
		sale := l.gated(queue.Access{Codes: plain}, func(s *queue.Sale) { s.Lobby = queue.Duration(time.Minute) })
		for _, codes := range []queue.Codes{ranked, plain, ranked} {
			sale.Access.Codes = codes
			if err := l.Apply(t.Context(), sale); err != nil {
				t.Errorf("before the lobby: %v", err)
			}
		}
	})
}

// TestRandomJoinsKeepToTheAccessRules lets people join over three nodes, leave, and be told of other rules, at random, and
// compares every answer with a model in plain Go.
func TestRandomJoinsKeepToTheAccessRules(t *testing.T) {
	t.Parallel()
	l := embeddedLine(t, queue.Options{})
	nodes := l.nodes(3, queue.Options{})
	rapid.Check(t, func(t *rapid.T) {
		ctx := l.t.Context()
		names := []string{"AAAA", "BBBB", "CCCC"}
		users := []string{"u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7"}
		addresses := []string{"10.0.0.1", "10.0.0.2"}
		draw := func(t *rapid.T) queue.Access {
			var a queue.Access
			for _, name := range names {
				if rapid.IntRange(0, 3).Draw(t, name) > 0 {
					a.Codes = append(a.Codes, queue.AccessCode{Code: name, Uses: rapid.Int64Range(0, 3).Draw(t, "uses")})
				}
			}
			a.SeatsPerAddress = rapid.Int64Range(0, 3).Draw(t, "seats")
			a.Deny = rapid.SliceOfN(rapid.SampledFrom(append([]string{"10.0.0.0/31", "10.0.0.2"}, users...)), 0, 2).Draw(t, "deny")
			return a
		}
		sale := l.gated(draw(t))
		defer l.drop(sale.ID)
		used := map[string]map[string]bool{} // code → users
		coded := map[string]string{}         // user → code
		type seat struct {
			ticket  int64
			address string // "" = taken while no seats were counted
		}
		seats := map[string]seat{}
		denied := func(user, address string) bool {
			return slices.ContainsFunc(sale.Access.Deny, func(entry string) bool {
				return entry == user || entry == address || entry == "10.0.0.0/31" && address == "10.0.0.1"
			})
		}
		has := func(code string) (queue.AccessCode, bool) {
			i := slices.IndexFunc(sale.Access.Codes, func(c queue.AccessCode) bool { return c.Code == code })
			if i < 0 {
				return queue.AccessCode{}, false
			}
			return sale.Access.Codes[i], true
		}
		// want is what the rules say to somebody without a seat, and the code that is used.
		want := func(user, code, address string) (queue.Reason, string) {
			live := int64(0)
			for _, s := range seats {
				if s.address == address {
					live++
				}
			}
			switch {
			case denied(user, address), sale.Access.SeatsPerAddress > 0 && live >= sale.Access.SeatsPerAddress:
				return queue.Denied, ""
			case len(sale.Access.Codes) == 0:
				return "", ""
			}
			if _, still := has(coded[user]); still {
				return "", ""
			}
			if code == "" {
				return queue.CodeNeeded, ""
			}
			if c, ok := has(code); !ok || c.Uses > 0 && int64(len(used[code])) >= c.Uses {
				return queue.CodeUsed, ""
			}
			return "", code
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				user, address := rapid.SampledFrom(users).Draw(t, "user"), rapid.SampledFrom(addresses).Draw(t, "address")
				code := rapid.SampledFrom(append([]string{"", "DDDD"}, names...)).Draw(t, "code")
				node := nodes[rapid.IntRange(0, 2).Draw(t, "node")]
				got, why := l.knock(node, queue.JoinRequest{Sale: sale.ID, User: user, Code: code, Address: address, Peer: ip(address)})
				held, holds := seats[user]
				if holds {
					if why != "" || got.Ticket != held.ticket {
						t.Fatalf("%s holds %d and got %+v, %q", user, held.ticket, got, why)
					}
					return
				}
				reason, uses := want(user, code, address)
				if why != reason {
					t.Fatalf("%s with %q from %s got %q, want %q", user, code, address, why, reason)
				}
				if why != "" {
					return
				}
				if uses != "" {
					if used[uses] == nil {
						used[uses] = map[string]bool{}
					}
					// A user who comes back to a code after it was away uses it up once more.
					used[uses][fmt.Sprint(user, len(used[uses]))] = true
					coded[user] = uses
				}
				taken := seat{ticket: got.Ticket}
				if sale.Access.SeatsPerAddress > 0 {
					taken.address = address
				}
				seats[user] = taken
			},
			"leave": func(t *rapid.T) {
				user := rapid.SampledFrom(users).Draw(t, "user")
				if held, holds := seats[user]; holds {
					if err := nodes[rapid.IntRange(0, 2).Draw(t, "node")].Leave(ctx, sale.ID, user, held.ticket); err != nil {
						t.Fatal(err)
					}
					delete(seats, user)
				}
			},
			"other rules": func(t *rapid.T) {
				sale.Access = draw(t)
				if err := nodes[rapid.IntRange(0, 2).Draw(t, "node")].Apply(ctx, sale); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}
