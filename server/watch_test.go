package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"sluice/queue"
)

// watcher is an operator who watches a sale.
type watcher struct {
	*testing.T
	stop   context.CancelFunc
	header http.Header
	body   *bufio.Reader
}

// watchAt begins to watch; the stream must be granted.
func watchAt(t *testing.T, site, sale string) *watcher {
	t.Helper()
	resp, stop := askToWatch(t, http.DefaultClient, site, sale)
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Fatalf("got %d %s", resp.StatusCode, body)
	}
	return &watcher{T: t, stop: stop, header: resp.Header, body: bufio.NewReader(resp.Body)}
}

func askToWatch(t *testing.T, client *http.Client, site, sale string) (*http.Response, context.CancelFunc) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, site+"/api/v1/admin/sales/"+sale+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testAdminToken)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); resp.Body.Close() })
	return resp, stop
}

// text is the JSON of the next frame; ok is false when the stream has ended.
func (w *watcher) text() (text string, ok bool) {
	w.Helper()
	line, err := w.body.ReadString('\n')
	if err != nil {
		return "", false
	}
	empty, err := w.body.ReadString('\n')
	if text, ok = strings.CutPrefix(line, "data: "); !ok || empty != "\n" || err != nil {
		w.Fatalf("a frame is %q, then %q, %v", line, empty, err)
	}
	return text, true
}

// next waits for the next frame, which must come.
func (w *watcher) next() liveFrame {
	w.Helper()
	text, ok := w.text()
	if !ok {
		w.Fatal("the stream has ended")
	}
	var f liveFrame
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		w.Fatalf("%v: %s", err, text)
	}
	if err := specification(w.T).Watched(adminAPI+"/sales/any/live", []byte(text)); err != nil {
		w.Error(err)
	}
	return f
}

// until reads frames up to one that is as wanted.
func (w *watcher) until(what string, wanted func(liveFrame) bool) liveFrame {
	w.Helper()
	for deadline := time.Now().Add(patient); ; {
		f := w.next()
		if wanted(f) {
			return f
		}
		if time.Now().After(deadline) {
			w.Fatalf("no frame in which %s; the last is %+v", what, f)
		}
	}
}

// ended waits for the end of the stream.
func (w *watcher) ended() {
	w.Helper()
	for {
		if _, ok := w.text(); !ok {
			return
		}
	}
}

func (f liveFrame) node(name string) (liveNode, bool) {
	i := slices.IndexFunc(f.Nodes, func(n liveNode) bool { return n.Node == name })
	if i < 0 {
		return liveNode{}, false
	}
	return f.Nodes[i], true
}

// fakeBroker counts what a test wants, and hangs while it is told to.
type fakeBroker struct {
	mu    sync.Mutex
	asked int
	err   error
	hang  chan struct{} // until it is closed; nil = it answers
}

func (b *fakeBroker) answer(n int64) (int64, error) {
	b.mu.Lock()
	b.asked++
	hang, err := b.hang, b.err
	b.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return n, err
}
func (b *fakeBroker) Waiting(context.Context) (int64, error)     { return b.answer(4) }
func (b *fakeBroker) DeadLetters(context.Context) (int64, error) { return b.answer(5) }
func (b *fakeBroker) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func TestAFrameTellsEverythingUnderItsName(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Node, o.Broker = "north", &fakeBroker{} })
	snap := b.snaps["solo"]
	snap.Items["main"], snap.Turns, snap.Granted, snap.Left, snap.Held, snap.Rate = 3, 2, 9, 1, 2, 1.5
	b.store.orders = []queue.Order{{ID: annsPaid, Sale: "solo", Item: "main", User: "ann", Qty: 1, Status: queue.Paid}}
	b.line.audit = &queue.AuditSummary{At: 77, Imbalance: map[string]int64{"main": 2}, Problems: []string{"two units too many"}}
	b.line.nodes = []queue.NodeReport{
		{Node: "south", Started: 5, At: 6, Connections: 7, Limited: queue.NodeLimited{User: 8}, Sales: map[string]queue.NodeSale{
			"solo": {Shoppers: 3, Grabs: map[string]int64{"success": 2}}, "phone-x": {Shoppers: 4},
		}},
		{Node: "north", Connections: 100},
	}
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{Result: queue.SoldOut, Stock: queue.Gone}, nil
	}
	b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...)
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return queue.Grabbed{}, errDown }
	b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...)
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{}, &queue.Error{Code: queue.Limited, By: "user"}
	}
	b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...)
	b.server.registry.rooms["solo"] = &openRoom{room: &room{}}

	site := httptest.NewServer(b.server.Handler())
	defer site.Close()
	w := watchAt(t, site.URL, "solo")
	defer w.stop()
	text, _ := w.text()
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	var view any
	if err := json.Unmarshal(b.send(http.MethodGet, "/api/v1/admin/sales/solo", "", b.asAdmin()...).body, &view); err != nil {
		t.Fatal(err)
	}
	now := float64(testNow().UnixMilli())
	want := map[string]any{
		"at": now, "node": "north", "sale": view,
		"line": map[string]any{
			"waiting": 7.0, "recalled": 0.0, "turns": 2.0, "served": 10.0, "issued": 17.0, "granted": 9.0, "left": 1.0, "held": 2.0, "rate": 1.5,
		},
		"orders": map[string]any{"taken": 2.0, "written": 1.0, "outbox": 3.0, "broker": 4.0, "dead": 5.0},
		"audit":  map[string]any{"at": 77.0, "balanced": false, "imbalance": map[string]any{"main": 2.0}, "problems": []any{"two units too many"}},
		"nodes": []any{
			map[string]any{
				"node": "north", "started": now, "at": now, "connections": 0.0, "shoppers": 0.0, "grabs": map[string]any{"sold_out": 1.0, "failed": 1.0},
				"limited": map[string]any{"user": 1.0, "address": 0.0, "node": 0.0},
			},
			map[string]any{
				"node": "south", "started": 5.0, "at": 6.0, "connections": 7.0, "shoppers": 3.0, "grabs": map[string]any{"success": 2.0},
				"limited": map[string]any{"user": 8.0, "address": 0.0, "node": 0.0},
			},
		},
		"troubles": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w.header.Get("Content-Type") != "text/event-stream" || w.header.Get("X-Accel-Buffering") != "no" || w.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", w.header)
	}
}

// hungStore answers nothing before whoever asks gives up.
type hungStore struct{ *fakeStore }

func (s hungStore) Sold(ctx context.Context, _ string) (map[string]int64, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestFramesGoOnWhateverIsDown(t *testing.T) {
	t.Parallel()
	for name, seen := range map[string]bool{"a sale that was read": true, "a sale that was never read": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := &fakeBroker{hang: make(chan struct{})}
			b := newBench(t, func(o *Options) { o.Node, o.Broker, o.Sales = "north", broker, hungStore{o.Sales.(*fakeStore)} })
			b.line.away = errDown
			if !seen {
				delete(b.snaps, "solo")
			}
			site := httptest.NewServer(b.server.Handler())
			defer site.Close()
			w := watchAt(t, site.URL, "solo")
			defer w.stop()
			for range 2 {
				f := w.next()
				troubles := strings.Join(f.Troubles, "\n")
				for _, part := range []string{"the database cannot", "Redis cannot", "the broker cannot"} {
					if !strings.Contains(troubles, part) {
						t.Errorf("says %q, and nothing of %s", troubles, part)
					}
				}
				if f.Orders.Written != nil || f.Orders.Outbox != nil || f.Orders.Broker != nil || f.Orders.Dead != nil || f.Audit != nil {
					t.Errorf("knows what cannot be known: %+v", f)
				}
				if (f.Line != nil) != seen || (f.Orders.Taken != nil) != seen || f.Sale == nil || strings.Contains(troubles, "not read") == seen {
					t.Errorf("of the line: %+v", f)
				}
				if _, ok := f.node("north"); !ok || len(f.Nodes) != 1 {
					t.Errorf("the node does not know itself: %+v", f.Nodes)
				}
			}
			broker.set(func() {
				if broker.asked != 1 {
					t.Errorf("a broker that hangs was asked %d times", broker.asked)
				}
				close(broker.hang)
			})
		})
	}
}

func TestManyWhoWatchAskTheBrokerOnce(t *testing.T) {
	t.Parallel()
	broker := &fakeBroker{hang: make(chan struct{})}
	counts := &brokerCounts{broker: broker}
	var group sync.WaitGroup
	for range 100 {
		first := counts.newest()
		group.Go(func() {
			if waiting, dead, err := counts.get(t.Context()); waiting != 4 || dead != 5 || err != nil {
				t.Errorf("got %d, %d, %v", waiting, dead, err)
			}
		})
		if counts.newest() != first {
			t.Error("it is asked again while it is asked")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := counts.get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("who gives up gets %v", err)
	}
	close(broker.hang)
	group.Wait()
	broker.set(func() { broker.hang, broker.err = nil, errDown })
	last := counts.newest()
	last.begun = last.begun.Add(-brokerAge)
	if _, _, err := counts.get(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

func TestAStreamOutlivesTheLimitsOfTheServerAndEndsWithItsClient(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			site := httptest.NewUnstartedServer(nil)
			site.Config = NewHTTPServer("", b.server.Handler())
			site.Config.ReadTimeout, site.Config.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
			site.EnableHTTP2 = protocol == "HTTP/2.0"
			site.StartTLS()
			resp, stop := askToWatch(t, site.Client(), site.URL, "solo")
			if resp.Proto != protocol || resp.StatusCode != http.StatusOK {
				t.Fatalf("got %s %s", resp.Proto, resp.Status)
			}
			w := &watcher{T: t, body: bufio.NewReader(resp.Body)}
			for range 3 { // the third comes long after both limits
				w.next()
			}
			stop()
			site.Close() // it waits for all handlers
		})
	}
}

func TestWhoWatchesIsSentElsewhereWhenTheNodeDrains(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	site := httptest.NewServer(b.server.Handler())
	defer site.Close()
	watchers := []*watcher{watchAt(t, site.URL, "solo"), watchAt(t, site.URL, "phone-x")}
	for _, w := range watchers {
		w.next()
	}
	b.server.SetReady(false)
	for _, w := range watchers {
		w.ended()
	}
	b.mustFail(b.send(http.MethodGet, "/api/v1/admin/sales/solo/live", "", b.asAdmin()...), http.StatusServiceUnavailable, queue.Unavailable)
	b.server.SetReady(true)
	w := watchAt(t, site.URL, "solo")
	w.next()
	w.stop()
}

func TestWhoWatchesWithATokenOfBeforeIsCutOff(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	site := httptest.NewServer(b.server.Handler())
	defer site.Close()
	w := watchAt(t, site.URL, "solo")
	w.next()
	settings := b.server.current().Settings
	settings.AdminToken = "another token of operators"
	change, err := b.server.Prepare(settings)
	if err != nil {
		t.Fatal(err)
	}
	change()
	w.ended()
}

func TestASaleThatOnlyOneOfTheStoresHasCanBeWatched(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		setUp  func(*bench)
		status int
	}{
		"Redis has lost it":             {func(b *bench) { delete(b.line.sales, "solo") }, http.StatusOK},
		"the database is down":          {func(b *bench) { b.store.fail = errDown }, http.StatusOK},
		"neither has it":                {func(b *bench) { delete(b.line.sales, "solo"); delete(b.store.sales, "solo") }, http.StatusNotFound},
		"nobody knows whether it is":    {func(b *bench) { delete(b.line.sales, "solo"); b.store.fail = errDown }, http.StatusServiceUnavailable},
		"it is not in the database yet": {func(b *bench) { delete(b.store.sales, "solo") }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			delete(b.snaps, "solo")
			tc.setUp(b)
			site := httptest.NewServer(b.server.Handler())
			defer site.Close()
			resp, stop := askToWatch(t, http.DefaultClient, site.URL, "solo")
			defer stop()
			if resp.StatusCode != tc.status {
				t.Errorf("got %d, want %d", resp.StatusCode, tc.status)
			}
		})
	}
}

// Two nodes on a real Redis, with shoppers on real sockets.
func TestAnOperatorSeesAllNodesAndWhatGoesOnThere(t *testing.T) {
	t.Parallel()
	north, south := "north-"+uuid.NewString(), "south-"+uuid.NewString()
	named := func(name string) change { return change{server: func(o *Options) { o.Node = name }} }
	f := newFair(t, file(10, "line: { order: fifo, rate: 50, turn: 1h }"), named(north))
	second := f.node(south, named(south))
	eventually(t, "the second node knows the sale", func() bool { return second.server.opts.Snapshots.Snapshot(f.sale) != nil })
	w := watchAt(t, f.main.url, f.sale)
	first := w.next()
	if first.Node != north || first.Sale == nil || first.Sale.ID != f.sale || first.Orders.Broker != nil || len(first.Troubles) > 0 {
		t.Errorf("the first frame is %+v", first)
	}
	w.until("both nodes are there", func(l liveFrame) bool {
		_, one := l.node(north)
		_, two := l.node(south)
		return one && two
	})
	ann, bob := f.shopper("ann"), f.shopper("bob")
	at, _, _ := ann.called(f.main)
	bt, _, _ := bob.called(second)
	at.grab("r1")
	f.adopt(at.expect("success").order(t), "ann")
	seen := w.until("one unit is taken and written", func(l liveFrame) bool {
		one, _ := l.node(north)
		two, _ := l.node(south)
		return l.Orders.Taken != nil && *l.Orders.Taken == 1 && l.Orders.Written != nil && *l.Orders.Written == 1 &&
			one.Shoppers == 1 && two.Shoppers == 1
	})
	one, _ := seen.node(north)
	two, _ := seen.node(south)
	if one.Connections != 1 || two.Connections != 1 || !cmp.Equal(one.Grabs, map[string]int64{"success": 1}) || len(two.Grabs) != 0 ||
		one.Started == 0 || two.At < two.Started {
		t.Errorf("the nodes are %+v and %+v", one, two)
	}
	if *seen.Orders.Outbox != 1 || seen.Line.Granted != 2 || seen.Audit != nil {
		t.Errorf("the frame is %+v of %+v", seen, seen.Line)
	}
	summary := queue.AuditSummary{At: 1, Balanced: true, Imbalance: map[string]int64{"main": 0}, Problems: []string{}}
	if err := f.line.KeepAudit(t.Context(), f.sale, summary); err != nil {
		t.Fatal(err)
	}
	seen = w.until("the audit is there", func(l liveFrame) bool { return l.Audit != nil })
	if diff := cmp.Diff(summary, *seen.Audit); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	f.store.set(func() { f.store.fail = errDown })
	seen = w.until("the database is away", func(l liveFrame) bool { return l.Orders.Written == nil })
	if len(seen.Troubles) != 1 || seen.Line == nil || *seen.Orders.Outbox != 1 || seen.Sale == nil {
		t.Errorf("without a database: %+v", seen)
	}
	f.store.set(func() { f.store.fail = nil })
	w.until("the database is back", func(l liveFrame) bool { return l.Orders.Written != nil && len(l.Troubles) == 0 })

	bt.goAway()
	w.until("bob has gone", func(l liveFrame) bool { n, ok := l.node(south); return ok && n.Shoppers == 0 && n.Connections == 0 })
	second.stop()
	w.until("the second node has gone", func(l liveFrame) bool { _, there := l.node(south); return !there })
	w.stop()
}
