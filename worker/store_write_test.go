package worker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"sluice/queue"
)

func TestStoreWritesABatchExactlyAsItCame(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 1000))
		orders := grabs("phone", 0, 500)
		orders[7].PayBy = 0 // a sale without payment
		rand.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
		for i, w := range write(t, s, orders...) {
			want := orders[i]
			want.Status = queue.Confirmed
			wantSame(t, "what was written", w, Written{Order: want})
			stored, err := s.Order(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "the stored order", stored, want)
		}
		wantSold(t, s, "phone", 500)
	})
}

func TestStoreWritesMoreRowsThanAStatementTakes(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5500))
		written := write(t, s, grabs("phone", 0, 6000)...)
		for i, w := range written {
			if (w.Reason == "") != (i < 5500) {
				t.Fatalf("order %d of 6000 with a stock of 5500: reason %q", i, w.Reason)
			}
		}
		wantSold(t, s, "phone", 5500)
	})
}

func TestStoreWritesNothingForNoOrders(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		if written := write(t, s); len(written) != 0 {
			t.Errorf("wrote %v", written)
		}
	})
}

func TestStoreWritingAgainChangesNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 6))
		first := write(t, s, grabs("phone", 0, 8)...)
		again := write(t, s, slices.Concat(grabs("phone", 4, 8), grabs("phone", 0, 4))...)
		for i, w := range again {
			want := first[(i+4)%8]
			want.Known = true
			wantSame(t, "an order written again", w, want)
		}
		wantSold(t, s, "phone", 6)
		moves, err := s.Moves(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 2 {
			t.Errorf("two rejected orders left %d moves", len(moves))
		}
	})
}

func TestStoreCountsAnOrderOnceThatIsTwiceInABatch(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 10))
		written := write(t, s, grab("phone", 1), grab("phone", 2), grab("phone", 1))
		wantSame(t, "the reasons", reasons(written), []string{"", "", ""})
		wantSame(t, "the order given twice", written[0], written[2])
		wantSold(t, s, "phone", 2)
	})
}

func TestStoreSellsExactlyWhatThereIs(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for stock := range int64(4) {
			for more := range int64(3) {
				sale := fmt.Sprintf("sale-%d-%d", stock, more)
				save(t, s, sellOut(sale, 1, stock))
				var want []string
				for i := range stock + more {
					want = append(want, map[bool]string{true: "", false: RejectedSoldOut}[i < stock])
				}
				written := write(t, s, grabs(sale, 0, int(stock+more))...)
				wantSame(t, "the reasons in "+sale, reasons(written), want)
				wantSold(t, s, sale, stock)
			}
		}
	})
}

func TestStoreSellsExactlyWhatThereIsToManyWriters(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for _, stock := range []int64{0, 1, 100} {
			sale := fmt.Sprintf("sale-%d", stock)
			save(t, s, sellOut(sale, 1, stock))
			var sold atomic.Int64
			together(8, func(writer int) {
				for i := range 5 {
					from := (writer*5 + i) * 4
					sold.Add(accepted(t, s, grabs(sale, from, from+4)))
				}
			})
			if sold.Load() != stock {
				t.Errorf("of a stock of %d, %d were accepted", stock, sold.Load())
			}
			wantSold(t, s, sale, stock)
		}
	})
}

func TestStoreSellsAnOrderWholeOrNotAtAll(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 3, 6))
		orders := grabs("phone", 0, 5)
		for i, qty := range []int64{3, 4, 2, 2, 1} {
			orders[i].Qty = qty
		}
		wantSame(t, "the reasons", reasons(write(t, s, orders...)),
			[]string{"", RejectedLimit, "", RejectedSoldOut, ""})
		wantSold(t, s, "phone", 6)
	})
}

func TestStoreGivesUnitsToTheEarliestOrders(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 2))
		orders := grabs("phone", 0, 4)
		orders[0].CreatedAt, orders[3].CreatedAt = opening+50, opening-50
		wantSame(t, "the reasons", reasons(write(t, s, orders...)),
			[]string{RejectedSoldOut, "", RejectedSoldOut, ""})
	})
}

func TestStoreKeepsItemsAndSalesApart(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 1, 2))
		save(t, s, sellOut("watch", 1, 1))
		orders := slices.Concat(grabs("phone", 0, 4), grabs("watch", 0, 2))
		for i := 1; i < 4; i++ {
			orders[i].Item = "white"
		}
		wantSame(t, "the reasons", reasons(write(t, s, orders...)),
			[]string{"", "", "", RejectedSoldOut, "", RejectedSoldOut})
		wantSold(t, s, "phone", 1)
		wantSold(t, s, "watch", 1)
	})
}

func TestStoreAllowsAUserOneLiveOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 10))
		save(t, s, sellOut("watch", 1, 10))
		again := func(i int) queue.Order {
			order := grab("phone", i)
			order.User = "user-1"
			return order
		}
		wantSame(t, "the reasons in one batch", reasons(write(t, s, grab("phone", 0), again(2), again(1), grab("phone", 3))),
			[]string{"", RejectedAlready, "", ""})
		wantSame(t, "the reasons in a later batch", reasons(write(t, s, again(4), again(5), grab("phone", 6))),
			[]string{RejectedAlready, RejectedAlready, ""})
		wantSame(t, "the reasons in another sale", reasons(write(t, s, grab("watch", 1))), []string{""})
		wantSold(t, s, "phone", 4)
	})
}

func TestStoreLetsAUserBuyAgainAfterCancelling(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 1))
		for i := range 3 {
			order := grab("phone", i)
			order.User = "the same"
			wantSame(t, "the reasons", reasons(write(t, s, order)), []string{""})
			wantSold(t, s, "phone", 1)
			if _, err := s.Transition(t.Context(), order.ID, queue.Confirmed, queue.Cancelled, 0); err != nil {
				t.Fatal(err)
			}
			wantSold(t, s, "phone", 0)
		}
		history, err := s.OrdersOf(t.Context(), "the same", "phone")
		if err != nil {
			t.Fatal(err)
		}
		if len(history) != 3 {
			t.Errorf("the user's history has %d orders, want 3", len(history))
		}
	})
}

func TestStoreARejectionIsForGood(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 1))
		write(t, s, grabs("phone", 0, 2)...)
		save(t, s, sellOut("phone", 1, 100))
		written := write(t, s, grab("phone", 1))
		if w := written[0]; !w.Known || w.Reason != RejectedSoldOut || w.Order.Status != queue.Rejected {
			t.Errorf("the rejected order, delivered again when there was stock: %+v", w)
		}
		wantSold(t, s, "phone", 1)
		moves, err := s.Moves(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 1 || moves[0].Kind != "reject" {
			t.Fatalf("the rejection left the moves %+v", moves)
		}
		wantSame(t, "the order of the move", moves[0].Order, written[0].Order)
	})
}

func TestStoreTellsUsersApartByteForByte(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		users := []string{
			"a", "A", "a ", " a", "á", "a\u0301", "ａ", "ß", "ss", "🙂", "🙃", "'", `\`, `\'`, `"`, "%", "?", "$1", "0", "00",
			strings.Repeat("é", 64), strings.Repeat("é", 63) + "e ", strings.Repeat("z", 128),
		}
		save(t, s, sellOut("phone", 1, int64(len(users))))
		var orders []queue.Order
		for i, user := range users {
			order := grab("phone", i)
			order.User = user
			orders = append(orders, order)
		}
		for i, w := range write(t, s, orders...) {
			if w.Reason != "" || w.Order.User != users[i] {
				t.Errorf("user %q: %+v", users[i], w)
			}
		}
		for i, user := range users {
			found, err := s.OrdersOf(t.Context(), user, "phone")
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || found[0].ID != orders[i].ID || found[0].User != user {
				t.Errorf("orders of user %q: %+v", user, found)
			}
		}
	})
}

func TestStoreTellsOrdersApartByteForByte(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 10))
		var orders []queue.Order
		for i, id := range []string{"id", "ID", "id ", "íd", strings.Repeat("i", 64)} {
			order := grab("phone", i)
			order.ID = id
			order.RequestID = strings.Repeat(id, 2)
			orders = append(orders, order)
		}
		for i, w := range write(t, s, orders...) {
			if w.Known || w.Reason != "" || w.Order.ID != orders[i].ID || w.Order.RequestID != orders[i].RequestID {
				t.Errorf("order %q: %+v", orders[i].ID, w)
			}
		}
		wantSold(t, s, "phone", 5)
	})
}

func TestStoreReportsARowThatCanNeverBeWritten(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 10))
		for what, spoil := range map[string]func(*queue.Order){
			"a user id of 129 bytes":    func(o *queue.Order) { o.User = strings.Repeat("u", 129) },
			"a request id of 129 bytes": func(o *queue.Order) { o.RequestID = strings.Repeat("r", 129) },
			"an order id of 65 bytes":   func(o *queue.Order) { o.ID = strings.Repeat("o", 65) },
			"no units":                  func(o *queue.Order) { o.Qty = 0 },
			"a negative number":         func(o *queue.Order) { o.Qty = -1 },
			"no such sale":              func(o *queue.Order) { o.Sale = "nowhere" },
			"no such item":              func(o *queue.Order) { o.Item = "pink" },
		} {
			orders := grabs("phone", 0, 5)
			spoil(&orders[3])
			_, err := s.WriteOrders(t.Context(), orders)
			if !IsPermanent(err) || IsTransient(err) {
				t.Errorf("%s: permanent %t, transient %t: %v", what, IsPermanent(err), IsTransient(err), err)
			}
		}
		wantSold(t, s, "phone", 0)
		wantSame(t, "the reasons without the bad row", reasons(write(t, s, grabs("phone", 0, 3)...)), []string{"", "", ""})
	})
}

func TestStoreManyWritersOfTheSameOrders(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		const count, stock = 240, 200
		save(t, s, sellOut("phone", 1, stock))
		orders := grabs("phone", 0, count)
		together(8, func(writer int) {
			shuffle := rand.New(rand.NewPCG(uint64(writer), 1))
			for range 4 {
				mine := slices.Clone(orders)
				shuffle.Shuffle(count, func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
				for part := range slices.Chunk(mine, 60) {
					accepted(t, s, part)
				}
			}
		})
		wantSold(t, s, "phone", stock)
		seen := map[queue.OrderStatus]int{}
		if err := s.EachOrder(t.Context(), "phone", 1000, func(orders []queue.Order) error {
			for _, order := range orders {
				seen[order.Status]++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the stored orders", seen, map[queue.OrderStatus]int{queue.Confirmed: stock, queue.Rejected: count - stock})
	})
}

func TestStoreManyWritersOfDifferentOrdersOfTheSameUsers(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		const users, writers = 60, 8
		save(t, s, sellOut("phone", 1, 1000, 1000))
		var sold atomic.Int64
		together(writers, func(writer int) {
			orders := grabs("phone", writer*users, writer*users+users)
			for i := range orders {
				orders[i].User = fmt.Sprintf("user-%d", (i*7+writer*11)%users) // every writer in an order of its own
				orders[i].Item = []string{"black", "white"}[(i+writer)%2]
			}
			for part := range slices.Chunk(orders, 20) {
				sold.Add(accepted(t, s, part))
			}
		})
		if sold.Load() != users {
			t.Errorf("%d users have %d live orders", users, sold.Load())
		}
		audit, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		if !audit.Sound() {
			t.Errorf("the books are not sound: %+v", audit)
		}
	})
}

// One after the other, whatever the batches, is what the database must look like in the end.
func TestStoreJudgesABatchAsIfOneByOne(t *testing.T) {
	var sales atomic.Int64
	eachStore(t, func(t *testing.T, s *Store) {
		rapid.Check(t, func(r *rapid.T) {
			sale := fmt.Sprintf("sale-%d", sales.Add(1))
			left := map[string]int64{"black": rapid.Int64Range(0, 6).Draw(r, "black"), "white": rapid.Int64Range(0, 6).Draw(r, "white")}
			save(t, s, sellOut(sale, 3, left["black"], left["white"]))
			buyers, decided := map[string]bool{}, map[string]string{}
			for range rapid.IntRange(1, 4).Draw(r, "batches") {
				var batch []queue.Order
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, 20), 1, 8).Draw(r, "orders") {
					order := grab(sale, i) // the rest of it follows from its number: a delivered message never changes
					order.User = fmt.Sprintf("user-%d", i%7)
					order.Item = []string{"black", "white"}[i%2]
					order.Qty = int64(i%4) + 1
					order.CreatedAt = opening + int64(i%5)
					batch = append(batch, order)
				}
				for _, order := range slices.SortedFunc(slices.Values(batch), func(a, b queue.Order) int {
					return int((a.CreatedAt-b.CreatedAt)*1000) + strings.Compare(a.ID, b.ID)
				}) {
					if _, known := decided[order.ID]; known {
						continue
					}
					switch {
					case order.Qty > 3:
						decided[order.ID] = RejectedLimit
					case buyers[order.User]:
						decided[order.ID] = RejectedAlready
					case order.Qty > left[order.Item]:
						decided[order.ID] = RejectedSoldOut
					default:
						decided[order.ID] = ""
						buyers[order.User] = true
						left[order.Item] -= order.Qty
					}
				}
				written, err := s.WriteOrders(t.Context(), batch)
				if err != nil {
					r.Fatal(err)
				}
				for i, w := range written {
					if w.Order.ID != batch[i].ID || w.Reason != decided[w.Order.ID] {
						r.Fatalf("order %+v: got reason %q, want %q", batch[i], w.Reason, decided[w.Order.ID])
					}
				}
			}
			audit, err := s.Audit(t.Context(), sale)
			if err != nil {
				r.Fatal(err)
			}
			if !audit.Sound() {
				r.Fatalf("the books are not sound: %+v", audit)
			}
			for _, item := range audit.Items {
				if item.Total-item.Sold != left[item.Item] {
					r.Fatalf("item %+v, want %d left", item, left[item.Item])
				}
			}
			stored := map[string]bool{}
			if err := s.EachOrder(t.Context(), sale, 3, func(orders []queue.Order) error {
				for _, order := range orders {
					stored[order.ID] = true
				}
				return nil
			}); err != nil {
				r.Fatal(err)
			}
			if len(stored) != len(decided) {
				r.Fatalf("stored %v, want %v", slices.Collect(maps.Keys(stored)), decided)
			}
		})
	})
}
