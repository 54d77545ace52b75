package worker

import (
	"errors"
	"slices"
	"testing"

	"sluice/queue"
)

func TestStoreKnowsNoOtherOrder(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		write(t, s, grab("phone", 1))
		for _, id := range []string{"", grab("phone", 2).ID, grab("phone", 1).ID + " "} {
			_, err := s.Order(t.Context(), id)
			wantCode(t, err, queue.NoSuchOrder)
			_, err = s.Transition(t.Context(), id, queue.Confirmed, queue.Paid, opening)
			wantCode(t, err, queue.NoSuchOrder)
		}
	})
}

func TestStoreListsTheOrdersOfAUserNewestFirst(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		var want []queue.Order
		for i, sale := range []string{"phone", "watch", "shoes"} {
			save(t, s, sellOut(sale, 1, 5))
			write(t, s, grabs(sale, 10, 13)...)
			order := grab(sale, i)
			order.User = "ada"
			want = append(want, write(t, s, order)[0].Order)
		}
		slices.Reverse(want)
		got, err := s.OrdersOf(t.Context(), "ada", "")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "all orders", got, want)
		got, err = s.OrdersOf(t.Context(), "ada", "watch")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the orders in one sale", got, want[1:2])
		got, err = s.OrdersOf(t.Context(), "Ada", "")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the orders of someone else", got, []queue.Order{})
	})
}

func TestStoreEachOrderIsCompleteWhileRowsAreAdded(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 1000))
		save(t, s, sellOut("watch", 1, 1000))
		for _, count := range []int{0, 1, 10, 11, 39, 40} {
			var old []string
			if err := s.EachOrder(t.Context(), "phone", 1000, func(orders []queue.Order) error {
				for _, order := range orders {
					old = append(old, order.ID)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if len(old) > count {
				t.Fatalf("%d orders before there should be any", len(old))
			}
			for i := len(old); i < count; i++ {
				old = append(old, write(t, s, grab("phone", i*100))[0].Order.ID)
			}
			if count != 40 {
				continue
			}
			// Rows come before and after the page that is being looked at; those that were there are all seen, once.
			var seen []string
			added := 0
			if err := s.EachOrder(t.Context(), "phone", 10, func(orders []queue.Order) error {
				if len(orders) > 10 {
					t.Errorf("a page of %d orders", len(orders))
				}
				for _, order := range orders {
					if order.Sale != "phone" {
						t.Errorf("order %s is of sale %s", order.ID, order.Sale)
					}
					seen = append(seen, order.ID)
				}
				if added++; added <= 4 {
					write(t, s, grab("watch", added), grab("phone", added), grab("phone", 3900+added))
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if !slices.IsSorted(seen) || len(slices.Compact(slices.Clone(seen))) != len(seen) {
				t.Errorf("orders out of order or twice: %v", seen)
			}
			for _, id := range old {
				if !slices.Contains(seen, id) {
					t.Errorf("order %s was not seen", id)
				}
			}
		}
	})
}

func TestStoreEachOrderReadsEveryRowOnce(t *testing.T) {
	t.Parallel()
	address := serverDatabase(t, "SLUICE_TEST_MYSQL", "mysql")
	s, err := OpenStore(t.Context(), address, StoreOptions{Conns: 1}) // the server counts by connection
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	const count = 5000
	save(t, s, sellOut("phone", 1, count))
	write(t, s, grabs("phone", 0, count)...)
	reads := func() (sum int64) {
		var rows []struct {
			Name  string `db:"Variable_name"`
			Value int64  `db:"Value"`
		}
		if err := s.db.SelectContext(t.Context(), &rows, "SHOW SESSION STATUS WHERE Variable_name IN "+
			"('Handler_read_next', 'Handler_read_rnd_next', 'Handler_icp_attempts')"); err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			sum += row.Value
		}
		return sum
	}
	before, seen := reads(), 0
	if err := s.EachOrder(t.Context(), "phone", 100, func(orders []queue.Order) error {
		seen += len(orders)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if n := reads() - before; seen != count || n > 3*count {
		t.Errorf("looked at %d rows to return %d of %d", n, seen, count)
	}
}

func TestStoreEachOrderStopsAtAnError(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 10))
		write(t, s, grabs("phone", 0, 10)...)
		enough, pages := errors.New("enough"), 0
		err := s.EachOrder(t.Context(), "phone", 2, func([]queue.Order) error {
			pages++
			return enough
		})
		if err != enough || pages != 1 {
			t.Errorf("after %d pages: %v", pages, err)
		}
	})
}

// A program that queries inside open rows hangs as soon as its pool is used up.
func TestStoreNeedsOneConnectionOnly(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		s, err := OpenStore(t.Context(), url, StoreOptions{Conns: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		save(t, s, sellOut("phone", 1, 10))
		write(t, s, grabs("phone", 0, 12)...)
		if err := s.EachOrder(t.Context(), "phone", 5, func(orders []queue.Order) error {
			for _, order := range orders {
				if _, err := s.Order(t.Context(), order.ID); err != nil {
					return err
				}
			}
			write(t, s, orders...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		wantSold(t, s, "phone", 10)
	})
}
