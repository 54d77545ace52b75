package worker

import (
	"fmt"
	"testing"

	"sluice/queue"
)

func TestStoreReturnsTheSalesItWasGiven(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		phone, watch := sellOut("phone", 1, 600, 400), sellOut("watch", 2, 5)
		save(t, s, watch)
		save(t, s, phone)
		sales, err := s.Sales(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the list of sales", sales, []queue.Sale{phone, watch})
		sale, err := s.Sale(t.Context(), "watch")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "a sale", sale, watch)
	})
}

func TestStoreKnowsNoOtherSale(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		for _, id := range []string{"", "Phone", "phone ", "phon"} {
			_, err := s.Sale(t.Context(), id)
			wantCode(t, err, queue.NoSuchSale)
			_, err = s.Audit(t.Context(), id)
			wantCode(t, err, queue.NoSuchSale)
		}
	})
}

func TestStoreSavingASaleAgainKeepsWhatIsSold(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		sale := sellOut("phone", 1, 5)
		save(t, s, sale)
		write(t, s, grabs("phone", 0, 3)...)
		version := func() (v int64) {
			if err := s.db.GetContext(t.Context(), &v, "SELECT version FROM items"); err != nil {
				t.Fatal(err)
			}
			return v
		}
		before := version()
		save(t, s, sale)
		if after := version(); after != before {
			t.Errorf("saving the same settings moved the item from version %d to %d", before, after)
		}
		wantSold(t, s, "phone", 3)
	})
}

func TestStoreTotalsRiseAndFallDownToWhatIsSold(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5))
		write(t, s, grabs("phone", 0, 3)...)
		for _, total := range []int64{10, 3, 4} {
			save(t, s, sellOut("phone", 1, total))
		}
		changed := sellOut("phone", 7, 2, 50)
		wantCode(t, s.SaveSale(t.Context(), changed), queue.Conflict)
		sale, err := s.Sale(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the sale after a refused change", sale, sellOut("phone", 1, 4))
		audit, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the audit after a refused change", audit,
			StoreAudit{Items: []ItemAudit{{Item: "black", Total: 4, Sold: 3, Live: 3}}})
	})
}

func TestStoreRemovesOnlyItemsOfWhichNothingIsSold(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 5, 5))
		save(t, s, sellOut("phone", 1, 5))
		order := grab("phone", 0)
		order.Item = "white"
		if _, err := s.WriteOrders(t.Context(), []queue.Order{order}); !IsPermanent(err) {
			t.Errorf("an order of a removed item: %v", err)
		}
		write(t, s, grab("phone", 1))
		sale := sellOut("phone", 1, 5, 5)
		sale.Items = sale.Items[1:]
		wantCode(t, s.SaveSale(t.Context(), sale), queue.Conflict)
		wantSold(t, s, "phone", 1)
	})
}

func TestStoreSavesASaleFromManyNodesAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for round := range 5 {
			sale := sellOut(fmt.Sprintf("sale-%d", round), 1, 3, 2, 1)
			together(8, func(int) {
				if err := s.SaveSale(t.Context(), sale); err != nil {
					t.Error(err)
				}
			})
			stored, err := s.Sale(t.Context(), sale.ID)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "the sale", stored, sale)
		}
	})
}

func TestStoreChangesTotalsWhileOrdersAreWritten(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 100))
		together(5, func(i int) {
			if i == 0 {
				for total := range int64(20) {
					if err := s.SaveSale(t.Context(), sellOut("phone", 1, 100-total)); err != nil && queue.CodeOf(err) != queue.Conflict {
						t.Error(err)
					}
				}
				return
			}
			for batch := range 10 {
				from := i*1000 + batch*10
				accepted(t, s, grabs("phone", from, from+10))
			}
		})
		audit, err := s.Audit(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		if item := audit.Items[0]; !audit.Sound() || item.Sold != item.Total {
			t.Errorf("400 orders left the books %+v", audit)
		}
	})
}
