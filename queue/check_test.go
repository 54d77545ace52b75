package queue_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

// A check says what a change would be answered, and so does MayBecome of the same sale where Redis does not have it.
func TestACheckSaysWhatAChangeWouldAndChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		later := func(s *queue.Sale) { s.OpensAt, s.ClosesAt = s.OpensAt.Add(time.Hour), s.ClosesAt.Add(time.Hour) }
		lobby := func(s *queue.Sale) { later(s); s.Lobby = queue.Duration(10 * time.Minute) }
		for name, tc := range map[string]struct {
			sale, change func(*queue.Sale)
			sold         bool // a unit was
			code         queue.Code
		}{
			"nothing":                  {nil, nil, true, ""},
			"more stock":               {nil, func(s *queue.Sale) { s.Items[0].Stock = 20 }, true, ""},
			"less stock":               {nil, func(s *queue.Sale) { s.Items[0].Stock = 1 }, true, ""},
			"less stock than was sold": {nil, func(s *queue.Sale) { s.Items[0].Stock = 0 }, true, queue.Conflict},
			"another limit":            {nil, func(s *queue.Sale) { s.Limit = 2 }, false, queue.Conflict},
			"another opening":          {nil, later, false, queue.Conflict},
			"another line":             {nil, func(s *queue.Sale) { s.Line.Order = queue.FIFO }, false, queue.Conflict},
			"one more item":            {nil, func(s *queue.Sale) { s.Items = append(s.Items, queue.Item{ID: "more", Stock: 1}) }, false, queue.Conflict},
			"another limit, where everybody may join at once": {later, func(s *queue.Sale) { s.Limit = 2 }, false, queue.Conflict},
			"another rate": {nil, func(s *queue.Sale) { s.Line.Rate = 77 }, false, ""},
			"another end":  {nil, func(s *queue.Sale) { s.ClosesAt = s.ClosesAt.Add(time.Hour) }, false, ""},
			"all of it, before it can be joined": {lobby, func(s *queue.Sale) {
				s.OpensAt, s.Limit, s.Line.Order = s.OpensAt.Add(time.Minute), 5, queue.FIFO
				s.Items = append(s.Items, queue.Item{ID: "more", Stock: 1})
			}, false, ""},
		} {
			t.Run(name, func(t *testing.T) {
				sale := l.start(func(s *queue.Sale) {
					s.Line.Order = queue.Off
					if tc.sale != nil {
						tc.sale(s)
					}
				})
				sold := map[string]int64{}
				if tc.sold {
					l.grab(sale.ID, "ann", "r")
					sold["main"] = 1
				}
				changed := sale
				changed.Items = append([]queue.Item(nil), sale.Items...)
				if tc.change != nil {
					tc.change(&changed)
				}
				meta, stock := l.hashes(sale.ID)
				checked := l.Check(t.Context(), changed)
				if queue.CodeOf(checked) != tc.code {
					t.Errorf("the check says %v, want %q", checked, tc.code)
				}
				if m, s := l.hashes(sale.ID); !maps.Equal(m, meta) || !maps.Equal(s, stock) {
					t.Errorf("the check changed (-before +after):\n%s%s", cmp.Diff(meta, m), cmp.Diff(stock, s))
				}
				lost := sale.MayBecome(&changed, time.Now(), sold)
				applied := l.Apply(t.Context(), changed)
				for what, err := range map[string]error{"the change": applied, "the sale, if it were lost,": lost} {
					if queue.CodeOf(err) != tc.code || fmt.Sprint(err) != fmt.Sprint(checked) {
						t.Errorf("%s says %v, the check %v", what, err, checked)
					}
				}
			})
		}
	})
}

// hashes are the settings and the stock of a sale as Redis has them.
func (l *line) hashes(sale string) (meta, stock map[string]string) {
	l.t.Helper()
	meta = l.rdb.HGetAll(l.t.Context(), "sluice:{"+sale+"}:meta").Val()
	stock = l.rdb.HGetAll(l.t.Context(), "sluice:{"+sale+"}:stock").Val()
	if len(meta) == 0 || len(stock) == 0 {
		l.t.Fatalf("sale %s is not there", sale)
	}
	return meta, stock
}

func TestACheckOfASaleThatIsNotThereInstallsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.sale(nil)
		t.Cleanup(func() { l.drop(sale.ID) })
		if err := l.Check(t.Context(), sale); err != nil {
			t.Error(err)
		}
		if _, err := l.Sale(t.Context(), sale.ID); queue.CodeOf(err) != queue.NoSuchSale {
			t.Errorf("it is there: %v", err)
		}
		if l.rdb.SIsMember(t.Context(), "sluice:sales", sale.ID).Val() {
			t.Error("it is listed")
		}
	})
}

// Applying puts a sale right first that is not, so it is checked as it will be then.
func TestASaleThatRecoversIsCheckedAsItWillBe(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := l.start(func(s *queue.Sale) {
			s.OpensAt, s.ClosesAt, s.Lobby = s.OpensAt.Add(time.Hour), s.ClosesAt.Add(time.Hour), queue.Duration(time.Minute)
		})
		if err := l.Recover(t.Context(), sale.ID); err != nil {
			t.Fatal(err)
		}
		sale.Limit = 3
		if err := l.Check(t.Context(), sale); err != nil {
			t.Errorf("it is refused: %v", err)
		}
		if _, ready, err := l.Installed(t.Context(), sale.ID); err != nil || ready {
			t.Errorf("the check put it right: %v, %v", ready, err)
		}
	})
}
