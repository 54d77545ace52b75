package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sluice/queue"
)

func TestStoreFindsOrdersByTheBeginningOfTheirIDOrUser(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 100))
		save(t, s, sellOut("watch", 1, 100))
		write(t, s, grabs("watch", 0, 5)...)
		users := []string{"ann", "Ann", "anna", "ann%", "ann_x", "anm", "ano", "手机", "手", "扌", "\u007f", "\ud7ff1", "\ue0001", "\U0010ffff", "\U0010ffffx"}
		for i, user := range users {
			order := grab("phone", i)
			order.User = user
			write(t, s, order)
		}
		other := grab("phone", 20)
		other.ID, other.User = "ann-is-an-order-too", "somebody"
		write(t, s, other)
		for begins, want := range map[string][]string{
			"ann":                    {"ann", "anna", "ann%", "ann_x", "somebody"},
			"Ann":                    {"Ann"},
			"ANN":                    nil,
			"ann%":                   {"ann%"},
			"ann_":                   {"ann_x"},
			"an":                     {"ann", "anna", "ann%", "ann_x", "anm", "ano", "somebody"},
			"手":                      {"手机", "手"},
			"手机":                     {"手机"},
			"\ud7ff":                 {"\ud7ff1"},
			"\U0010ffff":             {"\U0010ffff", "\U0010ffffx"},
			"phone-0000000":          users[:10],
			grab("phone", 3).ID:      {"ann%"},
			"phone-00000003' OR 1=1": nil,
			"watch":                  nil,
		} {
			orders, err := s.FindOrders(t.Context(), queue.OrderFilter{Sale: "phone", Begins: begins, Limit: 200})
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, order := range orders {
				found = append(found, order.User)
			}
			slices.Sort(found)
			want = slices.Sorted(slices.Values(want))
			wantSame(t, fmt.Sprintf("who is found by %q", begins), found, want)
			if !slices.IsSortedFunc(orders, func(a, b queue.Order) int { return strings.Compare(b.ID, a.ID) }) {
				t.Errorf("by %q they are found in another order: %v", begins, orders)
			}
		}
	})
}

func TestStorePagesThroughWhatItFinds(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		save(t, s, sellOut("phone", 1, 100))
		orders := grabs("phone", 0, 25)
		write(t, s, orders...)
		for _, i := range []int{3, 4, 11, 20} {
			if _, err := s.Transition(t.Context(), orders[i].ID, queue.Confirmed, queue.Cancelled, opening); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct {
			filter queue.OrderFilter
			want   []int
		}{
			{queue.OrderFilter{}, []int{24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
			{queue.OrderFilter{Status: queue.Cancelled}, []int{20, 11, 4, 3}},
			{queue.OrderFilter{Status: queue.Reserved}, nil},
			{queue.OrderFilter{Begins: "user-1"}, []int{19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 1}},
			{queue.OrderFilter{Begins: "user-1", Status: queue.Cancelled}, []int{11}},
			{queue.OrderFilter{Begins: "phone-0000000"}, []int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		} {
			var got []int
			for f := test.filter; ; {
				f.Sale, f.Limit = "phone", 4
				page, err := s.FindOrders(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				for _, order := range page {
					got = append(got, slices.IndexFunc(orders, func(o queue.Order) bool { return o.ID == order.ID }))
				}
				if len(page) < 4 {
					break
				}
				f.Before = page[3].ID
			}
			wantSame(t, fmt.Sprintf("what is found by %+v", test.filter), got, test.want)
		}
		page, err := s.FindOrders(t.Context(), queue.OrderFilter{Sale: "phone", Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		row, err := s.Order(t.Context(), page[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "an order that is found", page[0], row)

		sold, err := s.Sold(t.Context(), "phone")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "what is sold", sold, map[string]int64{"black": 21})
		sold, err = s.Sold(t.Context(), "nowhere")
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "what is sold nowhere", sold, map[string]int64{})
	})
}

func TestStoreReadsTheAuditLogBackwards(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		before, after := sellOut("phone", 1, 5), sellOut("phone", 1, 8)
		for i := range 7 {
			change := Change{At: opening + int64(i), Who: "admin from 手机", Action: fmt.Sprint("step-", i), Sale: []string{"phone", "watch"}[i%2], After: &after}
			if i > 0 {
				change.Before = &before
			}
			if err := s.LogChange(t.Context(), change); err != nil {
				t.Fatal(err)
			}
		}
		read := func(sale string, before int64, limit int) (actions []string, list []LoggedChange) {
			t.Helper()
			list, err := s.Changes(t.Context(), sale, before, limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range list {
				actions = append(actions, change.Action)
			}
			return actions, list
		}
		actions, first := read("", 0, 3)
		wantSame(t, "the newest", actions, []string{"step-6", "step-5", "step-4"})
		actions, _ = read("", first[2].ID, 10)
		wantSame(t, "those before them", actions, []string{"step-3", "step-2", "step-1", "step-0"})
		actions, _ = read("watch", 0, 10)
		wantSame(t, "those of one sale", actions, []string{"step-5", "step-3", "step-1"})
		actions, oldest := read("phone", first[2].ID, 10)
		wantSame(t, "those of one sale before some", actions, []string{"step-2", "step-0"})
		actions, _ = read("shoes", 0, 10)
		wantSame(t, "those of another sale", actions, []string(nil))

		entry := oldest[1]
		var settings queue.Sale
		if err := json.Unmarshal(entry.After, &settings); err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the settings after it", settings, after)
		if string(entry.Before) != "null" || entry.At != opening || entry.Who != "admin from 手机" || entry.Sale != "phone" {
			t.Errorf("the oldest is %+v", entry)
		}
	})
}
