package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

func TestTheLastAuditIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, l *line) {
		sale := saleID()
		t.Cleanup(func() { l.drop(sale) })
		if last, err := l.LastAudit(t.Context(), sale); last != nil || err != nil {
			t.Fatalf("before the first audit: %+v, %v", last, err)
		}
		for i, want := range []queue.AuditSummary{
			{At: 1, Balanced: false, Imbalance: map[string]int64{"main": 2}, Problems: []string{"two units too many"}},
			{At: 2, Balanced: true, Imbalance: map[string]int64{"main": 0}, Problems: []string{}},
		} {
			if err := l.KeepAudit(t.Context(), sale, want); err != nil {
				t.Fatal(err)
			}
			if last, err := l.LastAudit(t.Context(), sale); err != nil || last == nil || !cmp.Equal(*last, want) {
				t.Errorf("audit %d: %+v, %v", i, last, err)
			}
		}
		key := "sluice:{" + sale + "}:audit"
		if lasts := l.rdb.PTTL(t.Context(), key).Val(); lasts <= 5*time.Minute || lasts > time.Hour {
			t.Errorf("it lasts %s", lasts)
		}
		l.rdb.Set(t.Context(), key, "?", 0)
		if last, err := l.LastAudit(t.Context(), sale); last != nil || err == nil {
			t.Errorf("what is no audit: %+v, %v", last, err)
		}
	})
}
