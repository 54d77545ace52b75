package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/queue"
)

// saleFile is a file of the sale solo with that many units.
func saleFile(stock int64) string {
	return fmt.Sprintf(`{"id":"solo","items":[{"id":"main","stock":%d}],"opens_at":"2026-12-01T11:59:00Z","closes_at":"2026-12-01T13:00:00Z"}`, stock)
}

// journal notes the writes to both stores, in order.
func (b *bench) journal() *[]string {
	var writes []string
	note := func(text string) { writes = append(writes, text) }
	b.line.log, b.store.log = note, note
	return &writes
}

func TestRedisNeverHasMoreToSellThanTheDatabaseHasRoomFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		setUp func(*bench)
		stock int64
		want  []string
	}{
		"a new sale is in the database before it can be grabbed": {
			func(b *bench) { delete(b.line.sales, "solo"); delete(b.store.sales, "solo") }, 5,
			[]string{"database main=5", "rebuilt main=5", "redis main=5", "database main=5"},
		},
		"a raise reaches the database first": {func(*bench) {}, 8,
			[]string{"database main=8", "redis main=8", "database main=8"}},
		"a lowering reaches Redis first": {func(*bench) {}, 3,
			[]string{"redis main=3", "database main=3"}},
		"a raise that Redis refuses is taken back": {
			func(b *bench) {
				b.line.apply = func(queue.Sale) error { return &queue.Error{Code: queue.Conflict, Message: "no"} }
			}, 8,
			[]string{"database main=8", "database main=5"},
		},
		"a raise whose fate in Redis is unknown is kept": {
			func(b *bench) { b.line.apply = func(queue.Sale) error { return errDown } }, 8,
			[]string{"database main=8"},
		},
		"a lowering that Redis refuses changes nothing": {
			func(b *bench) {
				b.line.apply = func(queue.Sale) error { return &queue.Error{Code: queue.Conflict, Message: "no"} }
			}, 3,
			[]string{"database main=5"},
		},
		"what a crash after the raise left is finished": {
			func(b *bench) { raisedTo(b, 8) }, 8,
			[]string{"redis main=8", "database main=8"},
		},
		"what a crash before the lowering of the database left is finished": {
			func(b *bench) { raisedTo(b, 8) }, 5,
			[]string{"redis main=5", "database main=5"},
		},
		"a sale that Redis lost is rebuilt from its orders": {
			func(b *bench) {
				delete(b.line.sales, "solo")
				b.store.orders = []queue.Order{{ID: annsPaid, Sale: "solo"}, {ID: bobsPaid, Sale: "other"}}
			}, 5,
			[]string{"rebuilt main=5", "redis main=5", "database main=5"},
		},
		"a sale that only Redis has keeps its room while it is lowered": {
			func(b *bench) { delete(b.store.sales, "solo") }, 3,
			[]string{"database main=5", "redis main=3", "database main=3"},
		},
		"a database that lost room gets it back first": {
			func(b *bench) { raisedTo(b, 4) }, 3,
			[]string{"database main=5", "redis main=3", "database main=3"},
		},
		"a sale that is not put right is rebuilt": {
			func(b *bench) { b.line.lost = true }, 5,
			[]string{"rebuilt main=5", "redis main=5", "database main=5"},
		},
		"nothing reaches Redis while the database is down": {
			func(b *bench) { b.store.fail = errors.New("refused") }, 8, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			tc.setUp(b)
			writes := b.journal()
			b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(tc.stock), b.asAdmin()...)
			if diff := cmp.Diff(tc.want, *writes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(name, "rebuilt from its orders") && !slices.Equal(b.line.restored, []string{annsPaid}) {
				t.Errorf("rebuilt from %v", b.line.restored)
			}
		})
	}
}

func raisedTo(b *bench, stock int64) {
	sale := b.store.sales["solo"]
	sale.Items = []queue.Item{{ID: queue.MainItem, Stock: stock}}
	b.store.sales["solo"] = sale
}

// TestNoSequenceOfChangesOversells makes random changes, each of which may fail at any of its writes, and checks after
// every single write that the database has room for all that Redis may grant.
func TestNoSequenceOfChangesOversells(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t, nil)
		sold := int64(0) // by Redis, which refuses to go below it
		check := func(string) {
			inRedis, inDatabase := b.line.sales["solo"].Items[0].Stock, b.store.sales["solo"].Items[0].Stock
			if inRedis > inDatabase {
				r.Fatalf("Redis may sell %d, the database has room for %d", inRedis, inDatabase)
			}
		}
		b.line.log, b.store.log = check, check
		b.line.apply = func(sale queue.Sale) error {
			switch {
			case rapid.IntRange(0, 4).Draw(r, "redis") == 0:
				return errDown
			case sale.Items[0].Stock < sold:
				return &queue.Error{Code: queue.Conflict, Message: "sold"}
			}
			return nil
		}
		for range rapid.IntRange(1, 10).Draw(r, "changes") {
			b.store.fail = nil
			if rapid.IntRange(0, 4).Draw(r, "database") == 0 {
				b.store.fail = errors.New("refused")
			}
			stock := rapid.Int64Range(0, 20).Draw(r, "stock")
			a := b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(stock), b.asAdmin()...)
			if a.status == http.StatusOK && (b.line.sales["solo"].Items[0].Stock != stock || b.store.sales["solo"].Items[0].Stock != stock) {
				r.Fatalf("answered %d, and the stores have %v and %v", a.status, b.line.sales["solo"].Items, b.store.sales["solo"].Items)
			}
			sold = rapid.Int64Range(sold, max(sold, b.line.sales["solo"].Items[0].Stock)).Draw(r, "sold")
		}
	})
}

func TestTheAnswerToAChangeIsTheSaleAsItIsNow(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	a := b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(8), b.asAdmin()...)
	items, _ := a.field(t, "items").([]any)
	if a.status != http.StatusOK || len(items) != 1 || a.field(t, "state") != "open" || a.field(t, "hold") != "15m0s" {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if item := items[0].(map[string]any); item["stock"] != 8.0 || item["left"] != 5.0 {
		t.Errorf("got %v", item)
	}
	for step, state := range map[string]string{"open": "open", "pause": "paused", "resume": "open", "close": "closed"} {
		a := b.send(http.MethodPost, "/api/v1/admin/sales/solo/"+step, "", b.asAdmin()...)
		if a.status != http.StatusOK || a.field(t, "state") != state {
			t.Errorf("%s: got %d %s", step, a.status, a.body)
		}
	}
}

func TestAStepReachesRedisAndThenTheDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.step = func(_ string, sale queue.Sale) (queue.Sale, error) {
		sale.ClosesAt = testNow()
		return sale, nil
	}
	if a := b.send(http.MethodPost, "/api/v1/admin/sales/solo/close", "", b.asAdmin()...); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if got := b.store.sales["solo"].ClosesAt; !got.Equal(testNow()) {
		t.Errorf("the database has %s", got)
	}
	// What a crash left between the two is finished by asking again, though Redis has it already.
	b.store.sales["solo"] = solo()
	b.line.step = func(string, queue.Sale) (queue.Sale, error) {
		return queue.Sale{}, &queue.Error{Code: queue.Conflict, Message: "it is closed"}
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/admin/sales/solo/close", "", b.asAdmin()...), http.StatusConflict, queue.Conflict)
	if got := b.store.sales["solo"].ClosesAt; !got.Equal(testNow()) {
		t.Errorf("after asking again the database has %s", got)
	}
}

func TestASaleCanBePausedWhileTheDatabaseIsDown(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.store.fail = errors.New("refused")
	a := b.send(http.MethodPost, "/api/v1/admin/sales/solo/pause", "", b.asAdmin()...)
	if a.status != http.StatusOK || a.field(t, "state") != "paused" || !slices.Equal(b.line.steps, []string{"pause"}) {
		t.Errorf("got %d %s after %v", a.status, a.body, b.line.steps)
	}
	b.line.step = func(_ string, sale queue.Sale) (queue.Sale, error) {
		sale.ClosesAt = testNow()
		return sale, nil
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/admin/sales/solo/close", "", b.asAdmin()...), http.StatusServiceUnavailable, queue.Unavailable)
}

func TestAFileThatCannotBeASaleIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path, body, kind string
		status           int
		code             queue.Code
		says             string
	}{
		"of another sale":   {"phone-x", saleFile(5), "", 422, queue.Invalid, `"solo"`},
		"an impossible id":  {"Solo", saleFile(5), "", 422, queue.Invalid, `"Solo"`},
		"nothing":           {"solo", "", "", 422, queue.Invalid, ""},
		"an unknown field":  {"solo", strings.Replace(saleFile(5), `"id"`, `"colour":1,"id"`, 1), "", 422, queue.Invalid, "colour"},
		"no time to open":   {"solo", strings.Replace(saleFile(5), "11:59", "14:00", 1), "", 422, queue.Invalid, "opens_at"},
		"another type":      {"solo", saleFile(5), "application/x-www-form-urlencoded", 415, unsupportedMedia, "yaml"},
		"more than a MiB":   {"solo", strings.Repeat(" ", maxSaleFile+1), "", 413, tooLarge, "1048576 bytes"},
		"YAML of nonsense":  {"solo", "a: [", "application/yaml", 422, queue.Invalid, ""},
		"a negative number": {"solo", saleFile(-1), "application/json", 422, queue.Invalid, "stock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			writes := b.journal()
			header := b.asAdmin()
			if tc.kind != "" {
				header = append(header, "Content-Type", tc.kind)
			}
			a := b.send(http.MethodPut, "/api/v1/admin/sales/"+tc.path, tc.body, header...)
			b.mustFail(a, tc.status, tc.code)
			if detail, _ := a.field(t, "detail").(string); !strings.Contains(detail, tc.says) || detail == "" {
				t.Errorf("says %q, want it to say %q", detail, tc.says)
			}
			if len(*writes) > 0 {
				t.Errorf("wrote %v", *writes)
			}
		})
	}
}

// memoryLog is an audit log in memory.
type memoryLog struct{ changes []Change }

func (m *memoryLog) Log(_ context.Context, change Change) error {
	m.changes = append(m.changes, change)
	return nil
}

func (m *memoryLog) Entries(_ context.Context, sale string, before int64, limit int) ([]LogEntry, error) {
	var entries []LogEntry
	for i, change := range slices.Backward(m.changes) {
		id := int64(i) + 1
		if sale != "" && change.Sale != sale || before > 0 && id >= before || len(entries) == limit {
			continue
		}
		e := LogEntry{ID: id, At: change.At, Who: change.Who, Action: change.Action, Sale: change.Sale}
		e.Before, e.After = encode(change.Before), encode(change.After)
		entries = append(entries, e)
	}
	return entries, nil
}

func TestEveryChangeThatWasMadeIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	log := &memoryLog{}
	b := newBench(t, func(o *Options) { o.AuditLog = log })
	b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(8), b.asAdmin()...)
	b.send(http.MethodPost, "/api/v1/admin/sales/solo/pause", "", b.asAdmin()...)
	b.send(http.MethodPut, "/api/v1/admin/sales/solo", saleFile(-1), b.asAdmin()...)
	b.send(http.MethodPost, "/api/v1/admin/sales/nowhere/pause", "", b.asAdmin()...)
	b.send(http.MethodPost, "/api/v1/admin/sales/solo/close", "")
	if len(log.changes) != 2 {
		t.Fatalf("got %v", log.changes)
	}
	first := log.changes[0]
	if first.Action != "apply" || first.Sale != "solo" || first.Who != "admin" || first.Address != "192.0.2.1" || first.At != testNow().UnixMilli() ||
		first.Before.Items[0].Stock != 5 || first.After.Items[0].Stock != 8 {
		t.Errorf("got %+v", first)
	}
	if log.changes[1].Action != "pause" {
		t.Errorf("got %+v", log.changes[1])
	}
}
