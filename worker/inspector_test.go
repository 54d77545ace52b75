package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/docs/spec"
	"sluice/queue"
)

// inspected is a market whose books an inspector looks at.
func inspected(t *testing.T, pause bool) (*market, *Inspector, *miniredis.Miniredis) {
	s := openTest(t, "sqlite://"+filepath.Join(t.TempDir(), "orders.db"))
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	redis := miniredis.RunT(t)
	m := newMarket(t, "redis://"+redis.Addr(), s, 20, 20, true)
	stop := start(t, m.worker(NewDirect(), "a").Run)
	m.crowd(5)
	m.settled(5)
	stop()
	return m, NewInspector(m.Queue, NewAuditor(m.Queue, s, NewDirect()), "a", pause, quiet, nil), redis
}

func (m *market) state() queue.State {
	m.t.Helper()
	seat, err := m.Look(m.t.Context(), m.sale, "nobody")
	if err != nil {
		m.t.Fatal(err)
	}
	return seat.State
}

func TestASaleWhoseStockDoesNotAddUpIsPaused(t *testing.T) {
	t.Parallel()
	m, inspector, redis := inspected(t, true)
	if err := inspector.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(inspector.imbalance.WithLabelValues(m.sale, "main")); n != 0 || m.state() != queue.Open {
		t.Fatalf("sound books are off by %v and the sale is %s", n, m.state())
	}
	redis.HIncrBy("sluice:{"+m.sale+"}:stock", "main", 3)
	if err := inspector.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(inspector.imbalance.WithLabelValues(m.sale, "main")); n != 3 || m.state() != queue.Paused {
		t.Errorf("three units too many are an imbalance of %v and the sale is %s", n, m.state())
	}
	// Who resumes it all the same is not overruled by the same finding.
	if _, err := m.Resume(t.Context(), m.sale); err != nil {
		t.Fatal(err)
	}
	if err := inspector.Once(t.Context()); err != nil || m.state() != queue.Open {
		t.Errorf("resumed, the sale is %s, %v", m.state(), err)
	}
}

func TestWhatAnAuditFindsIsAsSpecified(t *testing.T) {
	t.Parallel()
	documents, err := spec.Load()
	if err != nil {
		t.Fatal(err)
	}
	m, _, redis := inspected(t, false)
	auditor := NewAuditor(m.Queue, m.store, NewDirect())
	for _, extra := range []int64{0, 3} {
		redis.HIncrBy("sluice:{"+m.sale+"}:stock", "main", int(extra))
		report, err := auditor.Audit(t.Context(), m.sale)
		if err != nil || report.Balanced != (extra == 0) {
			t.Fatalf("with %d units too many: %+v, %v", extra, report, err)
		}
		body, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		err = documents.Answered(spec.Answer{
			Method: http.MethodGet, Path: "/api/v1/admin/sales/" + m.sale + "/audit",
			Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestEveryNodeCanShowWhatTheLastAuditFound(t *testing.T) {
	t.Parallel()
	m, inspector, redis := inspected(t, false)
	if last, err := m.LastAudit(t.Context(), m.sale); last != nil || err != nil {
		t.Fatalf("before the first audit: %+v, %v", last, err)
	}
	audit := func(off int64) *queue.AuditSummary {
		t.Helper()
		if err := inspector.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		last, err := m.LastAudit(t.Context(), m.sale)
		if err != nil || last == nil {
			t.Fatalf("no audit is kept: %v", err)
		}
		if last.At == 0 || last.Balanced != (off == 0) || last.Imbalance["main"] != off || (len(last.Problems) == 0) != last.Balanced || last.Problems == nil {
			t.Errorf("off by %d, the audit is %+v", off, last)
		}
		return last
	}
	sound := audit(0)
	redis.HIncrBy("sluice:{"+m.sale+"}:stock", "main", 3)
	if off := audit(3); off.At < sound.At {
		t.Errorf("an audit at %d comes after one at %d", off.At, sound.At)
	}
	redis.HIncrBy("sluice:{"+m.sale+"}:stock", "main", -3)
	audit(0)
}

func TestASummaryNamesTheFirstProblems(t *testing.T) {
	t.Parallel()
	report := Report{Items: []ReportItem{{Item: "main", Imbalance: 2}}}
	for i := range summaryProblems + 3 {
		report.Problems = append(report.Problems, fmt.Sprint("problem ", i))
	}
	problems := report.summary().Problems
	if len(problems) != summaryProblems+1 || problems[summaryProblems-1] != "problem 19" || problems[summaryProblems] != "and 3 more; see the full audit" ||
		len(report.Problems) != summaryProblems+3 || report.Problems[summaryProblems] != "problem 20" {
		t.Errorf("got %q of %q", problems, report.Problems)
	}
}

func TestASaleIsNotPausedWhereOperatorsWantNone(t *testing.T) {
	t.Parallel()
	m, inspector, redis := inspected(t, false)
	redis.HIncrBy("sluice:{"+m.sale+"}:stock", "main", -1)
	if err := inspector.Once(t.Context()); err != nil || m.state() != queue.Open {
		t.Errorf("the sale is %s, %v", m.state(), err)
	}
}

func TestOnlyOneProcessAudits(t *testing.T) {
	t.Parallel()
	m, first, _ := inspected(t, true)
	second := NewInspector(m.Queue, NewAuditor(m.Queue, m.store, nil), "b", true, quiet, nil)
	for range 2 {
		for i, inspector := range []*Inspector{first, second} {
			if err := inspector.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := testutil.CollectAndCount(inspector.imbalance); n != 1-i {
				t.Errorf("process %d shows the books of %d items", i, n)
			}
		}
	}
}

func TestAMarkWithoutARowIsUnmatchedAndInTimeABreach(t *testing.T) {
	t.Parallel()
	m, inspector, redis := inspected(t, true)
	for _, test := range []struct {
		age             time.Duration
		matched, breach bool
	}{{5 * time.Second, true, false}, {30 * time.Second, false, false}, {2 * time.Minute, false, true}} {
		lost := queue.Order{
			ID: uuid.NewString(), Sale: m.sale, Item: "main", User: "lost", Qty: 1, RequestID: "r", Status: queue.Reserved,
			CreatedAt: time.Now().Add(-test.age).UnixMilli(),
		}
		if _, err := m.Adopt(t.Context(), m.sale, []queue.Order{lost}); err != nil {
			t.Fatal(err)
		}
		report, err := inspector.audit(t.Context(), m.sale)
		if err != nil || report.Balanced != test.matched || report.Breach() != test.breach {
			t.Errorf("a mark without a row for %s: %+v, %v", test.age, report, err)
		}
		if !test.matched && report.Items[0].Imbalance != 1 {
			t.Errorf("one unmatched unit is an imbalance of %d", report.Items[0].Imbalance)
		}
		lost.Status = queue.Rejected
		if _, err := m.Release(t.Context(), m.sale, []queue.Order{lost}); err != nil {
			t.Fatal(err)
		}
	}
	// A mark that vanishes without its units is seen as soon as nothing moves.
	redis.HDel("sluice:{"+m.sale+"}:winners", "user-1")
	report, err := inspector.audit(t.Context(), m.sale)
	if err != nil || report.Redis.Balanced || report.Items[0].Imbalance == 0 {
		t.Errorf("a vanished mark: %+v, %v", report, err)
	}
}

// In a sale that is sold out, units that come back go to somebody else at once: whoever reads marks meanwhile misses some or
// sees both, and must take neither for a fault.
func TestAnAuditWhileUnitsChangeHandsFindsNothing(t *testing.T) {
	t.Parallel()
	m, inspector, _ := inspected(t, true)
	crowd := m.crowd(40) // takes all that is left
	stop := start(t, func(ctx context.Context) {
		for i := 0; ctx.Err() == nil; i++ {
			order := crowd[i%len(crowd)]
			order.Status = queue.Cancelled
			if _, err := m.Release(ctx, m.sale, []queue.Order{order}); err != nil {
				return
			}
			if next := m.buy(fmt.Sprint("next-", i)); next != nil {
				crowd[i%len(crowd)] = *next
			}
		}
	})
	for range 100 {
		report, err := inspector.audit(t.Context(), m.sale)
		if err != nil {
			t.Fatal(err)
		}
		if !report.Redis.Balanced {
			t.Fatalf("found %v", report.Problems)
		}
	}
	stop()
}
