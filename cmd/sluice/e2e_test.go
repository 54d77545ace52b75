package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// soon is the schedule and the line of a sale that opens in a moment and is over in seconds.
const soon = `opens_at: +1500ms
closes_at: +1h
hold: 0s
line: { order: fifo, rate: 200, ratio: 4, turn: 20s }`

// running is a sale without a line that has been open for long.
const running = `opens_at: 2026-01-01T00:00:00Z
closes_at: 2099-01-01T00:00:00Z
hold: 0s
line: { order: off }`

func TestTheDemoSellsOutAndProvesThatEverybodyWasToldTheTruth(t *testing.T) {
	t.Parallel()
	out := succeed(t, "demo", "--users", "200", "--stock", "20", "--opens-in", "3s", "--exit", "--listen", "127.0.0.1:0")
	for _, line := range []string{
		"A sale of 20 units with 200 simulated shoppers opens in 3s.",
		"everyone was told the truth: each answer matches the rows of the database",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("the demo does not say %q:\n%s", line, out)
		}
	}
	want(t, "times that the demo says how it ended", strings.Count(strings.ToLower(out), "told the truth"), 1)
}

func TestACrowdBuysExactlyTheStock(t *testing.T) {
	t.Parallel()
	for _, database := range []string{"mysql", "postgres"} {
		t.Run("on "+database, func(t *testing.T) {
			t.Parallel()
			g := newGround(t, database)
			s := open(t, g.flags...)
			sale := freshID()
			s.apply(saleFile(t, sale, 40, soon))
			report := s.crowd(sale, 400, "--ramp", "1s", "--grab-delay", "200ms").report()
			want(t, "number of buyers in the crowd", report.Results["success"], 40)
			want(t, "number of those who heard that it is sold out", report.Results["sold_out"], 360)
			want(t, "number of units that the crowd knows of", report.ToldUnits, 40)
			g.wantBuyers(sale, 40)
			want(t, "number of units that the audit counts", s.audit(sale).sold(), 40)
			_, left := s.view(sale)
			want(t, "number of units left", left, 0)
		})
	}
}

func TestTwoServersAndTwoWorkersSellNoMoreThanOne(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	first, second := open(t, append(g.flags, "--no-worker")...), open(t, append(g.flags, "--no-worker")...)
	for range 2 {
		begin(t, append([]string{"worker", "--ops-listen", "127.0.0.1:0"}, g.flags...)...)
	}
	sale := freshID()
	first.apply(saleFile(t, sale, 240, soon)) // more than the shoppers of one server can buy
	eventually(t, "the second server knows the sale", func() bool {
		return second.ask(http.MethodGet, "/sales/"+sale, "", "").status == http.StatusOK
	})
	north := first.crowd(sale, 200, "--no-audit", "--prefix", "north", "--ramp", "1s", "--grab-delay", "200ms")
	south := second.crowd(sale, 200, "--no-audit", "--prefix", "south", "--ramp", "1s", "--grab-delay", "200ms")
	atNorth, atSouth := north.report(), south.report()
	want(t, "number of buyers in both crowds", atNorth.Results["success"]+atSouth.Results["success"], 240)
	g.wantBuyers(sale, 240)
	want(t, "number of units that the audit counts", second.audit(sale).sold(), 240)
}

func TestWithoutALineACrowdOverHTTPBuysExactlyTheStock(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 50, running))
	report := s.crowd(sale, 600, "--http", "--ramp", "0s", "--concurrency", "32").report()
	want(t, "number of buyers in the crowd", report.Results["success"], 50)
	want(t, "number of those who heard that it is sold out", report.Results["sold_out"], 550)
	g.wantBuyers(sale, 50)
	want(t, "number of units that the audit counts", s.audit(sale).sold(), 50)
}

func TestAServerThatIsKilledInTheMiddleOfASaleLosesNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 60, `opens_at: +1500ms
closes_at: +1h
hold: 0s
line: { order: fifo, rate: 30, ratio: 2, turn: 20s }`))
	crowd := s.crowd(sale, 200, "--ramp", "1s", "--grab-delay", "500ms")
	eventually(t, "half of the stock is sold", func() bool {
		_, left := s.view(sale)
		return left >= 0 && left <= 30
	})
	_, left := s.view(sale)
	s.kill()
	if left == 0 {
		t.Fatal("everything was sold before the server could be killed")
	}
	s = openAt(t, s.address(), g.flags...)
	report := crowd.report()
	if report.Reconnects == 0 {
		t.Error("nobody in the crowd had to connect again")
	}
	want(t, "number of units that the crowd knows of", report.ToldUnits, 60)
	g.wantBuyers(sale, 60)
	want(t, "number of units that the audit counts", s.audit(sale).sold(), 60)
}

func TestAnEmbeddedServerThatIsKilledKeepsItsOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, "--data-dir", dir)
	sale := freshID()
	s.apply(saleFile(t, sale, 20, running))
	orders := map[string]string{}
	for n := range 7 {
		user := fmt.Sprint("buyer-", n)
		result, order := s.grab(sale, user)
		want(t, "the result for "+user, result, "success")
		orders[user] = order
	}
	s.kill()

	s = openAt(t, s.address(), "--data-dir", dir)
	eventually(t, "the stock is rebuilt from the orders", func() bool {
		view, left := s.view(sale)
		return view.State == "open" && left == 20-7
	})
	for user, order := range orders {
		answer := s.ask(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, user), `{"request_id":"another"}`)
		var grab struct {
			Result string
			Order  wireOrder
		}
		if err := json.Unmarshal(answer.body, &grab); err != nil {
			t.Fatal(err)
		}
		want(t, "the result for "+user, grab.Result, "already")
		want(t, "the order of "+user, grab.Order.ID, order)
		want(t, "status of the order of "+user, s.ask(http.MethodGet, "/orders/"+order, tokenOf(t, user), "").fields["status"], "confirmed")
	}
	result, _ := s.grab(sale, "somebody new")
	want(t, "the result for somebody new", result, "success")
	item := s.audit(sale).Items[0]
	want(t, "number of units sold", item.Sold, 8)
	want(t, "number of units sold and left", item.Sold+item.Stock, 20)

	s.end()
	rows, err := sql.Open("sqlite", filepath.Join(dir, "sluice.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want(t, "number of orders in the database", len(buyers(t, rows, sale)), 8)
}

func TestAServerThatIsToldToStopSendsItsShoppersElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir())
	sale := freshID()
	s.apply(saleFile(t, sale, 5, strings.Replace(soon, "+1500ms", "+30m", 1)))
	sockets := make([]*websocket.Conn, 20)
	for i := range sockets {
		sockets[i] = s.connect(sale, fmt.Sprint("shopper-", i))
		want(t, "the first frame", next(t, sockets[i])["type"], "welcome")
		want(t, "the second frame", next(t, sockets[i])["type"], "lobby")
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, ws := range sockets {
		frame := next(t, ws)
		for frame["type"] == "lobby" {
			frame = next(t, ws)
		}
		want(t, "the frame before the end", frame["type"], "moving")
		if wait, _ := frame["retry_in_ms"].(float64); wait <= 0 {
			t.Errorf("moving says to come back in %v ms", frame["retry_in_ms"])
		}
		_, _, err := ws.ReadMessage()
		var closed *websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.CloseServiceRestart {
			t.Errorf("the connection ends with %v, want close code 1012", err)
		}
	}
	want(t, "exit code", s.wait(), exitOK)
}

// connect opens a socket and says hello.
func (s *site) connect(sale, user string) *websocket.Conn {
	s.t.Helper()
	ws := s.dial(sale, nil)
	if err := ws.WriteJSON(object{"type": "hello", "token": tokenOf(s.t, user)}); err != nil {
		s.t.Fatalf("say hello: %v", err)
	}
	return ws
}

// dial opens a socket from that address, or from any where it is nil.
func (s *site) dial(sale string, from net.Addr) *websocket.Conn {
	s.t.Helper()
	dialer := websocket.Dialer{
		Subprotocols: []string{"sluice.v1"}, HandshakeTimeout: longest, NetDialContext: (&net.Dialer{LocalAddr: from}).DialContext,
	}
	ws, resp, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/ws/v1/sales/"+sale, nil)
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	_ = resp.Body.Close()
	s.t.Cleanup(func() { _ = ws.Close() })
	return ws
}

// next reads one frame.
func next(t *testing.T, ws *websocket.Conn) object {
	t.Helper()
	_ = ws.SetReadDeadline(time.Now().Add(longest))
	var frame object
	if err := ws.ReadJSON(&frame); err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	return frame
}

func TestBadInputIsNamedAndChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir())
	sale := freshID()
	s.apply(saleFile(t, sale, 3, running))

	for name, c := range map[string]struct{ text, says string }{
		"a word instead of a number": {"id: %s\nitems:\n  - id: main\n    stock: many\nopens_at: +1h\ncloses_at: +2h\n", "line 4: items[0].stock"},
		"a field that is not there":  {"id: %s\nitems: [{ stock: 1 }]\nopens_at: +1h\ncloses_at: +2h\ncolour: red\n", "line 5: colour"},
		"an end before the start":    {"id: %s\nitems: [{ stock: 1 }]\nopens_at: +2h\ncloses_at: +1h\n", "line 4: closes_at"},
		"no items":                   {"id: %s\nopens_at: +1h\ncloses_at: +2h\n", "items"},
		"no YAML":                    {"id: %s\nitems: [\n", "line 3"},
	} {
		code, out, said := command(t, "sale", "apply", writeFile(t, "broken.yaml", fmt.Sprintf(c.text, freshID())), "--url", s.url)
		want(t, "exit code for "+name, code, exitFailed)
		want(t, "standard output for "+name, out, "")
		if !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: it says %q, want one sentence with %q", name, said, c.says)
		}
	}
	code, _, said := command(t, "sale", "show", "nowhere", "--url", s.url)
	want(t, "exit code for a sale that is not there", code, exitFailed)
	if !strings.Contains(said, `no sale "nowhere"`) {
		t.Errorf("of a sale that is not there it says %q", said)
	}

	alice, grab := tokenOf(t, "alice"), "/sales/"+sale+"/grab"
	for name, c := range map[string]struct {
		method, path, token, body string
		status                    int
		code                      string
	}{
		"a sale that is not there":  {http.MethodPost, "/sales/nowhere/grab", alice, `{}`, 404, "no_such_sale"},
		"a look at such a sale":     {http.MethodGet, "/sales/nowhere", "", "", 404, "no_such_sale"},
		"no token":                  {http.MethodPost, grab, "", `{}`, 401, "unauthenticated"},
		"a bad token":               {http.MethodPost, grab, alice + "x", `{}`, 401, "unauthenticated"},
		"a shopper's admin":         {http.MethodGet, "/admin/sales", alice, "", 401, "unauthenticated"},
		"a body beyond the bounds":  {http.MethodPost, grab, alice, `{"item":"` + strings.Repeat("x", 65<<10) + `"}`, 413, "too_large"},
		"an item that is not there": {http.MethodPost, grab, alice, `{"item":"gold"}`, 404, "no_such_item"},
		"no unit":                   {http.MethodPost, grab, alice, `{"qty":0}`, 422, "invalid"},
		"less than no unit":         {http.MethodPost, grab, alice, `{"qty":-1}`, 422, "invalid"},
		"more than the limit":       {http.MethodPost, grab, alice, `{"qty":2}`, 422, "invalid"},
		"half a body":               {http.MethodPost, grab, alice, `{"qty":`, 400, "bad_request"},
		"a field that is not there": {http.MethodPost, grab, alice, `{"amount":1}`, 400, "bad_request"},
		"an order of nobody":        {http.MethodGet, "/orders/018f0000-0000-7000-8000-000000000000", alice, "", 404, "no_such_order"},
	} {
		answer := s.ask(c.method, c.path, c.token, c.body)
		code, detail := answer.problem()
		if answer.status != c.status || code != c.code || detail == "" {
			t.Errorf("%s: answered with %d %s, want %d %s and a reason", name, answer.status, answer.body, c.status, c.code)
		}
	}

	result, _ := s.grab(sale, "alice")
	want(t, "the result for a good grab after all the bad ones", result, "success")
	item := s.audit(sale).Items[0]
	want(t, "number of units taken", item.Winners, 1)
	want(t, "number of units left", item.Stock, 2)
}

func TestApplyingASaleFileAgainChangesNothing(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir())
	sale := freshID()
	file := saleFile(t, sale, 8, strings.Replace(soon, "+1500ms", "+20m", 1))
	settings := func() string {
		view, left := s.view(sale)
		want(t, "number of units left", left, 8)
		text, err := json.Marshal(view)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	said := s.apply(file)
	if !regexp.MustCompile(`(?m)^ITEM +STOCK +LEFT .*\nmain +8 +8 `).MatchString(said) {
		t.Errorf("a new sale is shown without its figures:\n%s", said)
	}
	once := settings()
	s.apply(file)
	want(t, "the sale after the second time", settings(), once)
}

func TestARunningSaleKeepsItsOpeningAndTakesMoreStock(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 5, running))
	for n := range 6 {
		result, _ := s.grab(sale, fmt.Sprint("early-", n))
		want(t, "the result for the early buyer "+fmt.Sprint(n), result, map[bool]string{true: "success", false: "sold_out"}[n < 5])
	}

	moved := saleFile(t, sale, 9, strings.Replace(running, "2026-01-01", "2026-01-02", 1))
	code, _, said := command(t, "sale", "apply", moved, "--url", s.url)
	want(t, "exit code of a move of the opening", code, exitFailed)
	if !strings.Contains(said, "opens_at cannot change any more") {
		t.Errorf("a move of the opening is refused with %q", said)
	}
	answer := s.ask(http.MethodPut, "/admin/sales/"+sale, e2eAdmin, fmt.Sprintf(
		`{"id":%q,"items":[{"id":"main","stock":5}],"opens_at":"2026-01-02T00:00:00Z","closes_at":"2099-01-01T00:00:00Z","line":{"order":"off"},"hold":"0s"}`, sale))
	if kind, detail := answer.problem(); answer.status != http.StatusConflict || kind != "conflict" || !strings.Contains(detail, "opens_at") {
		t.Errorf("over HTTP it is answered with %d %s", answer.status, answer.body)
	}
	view, _ := s.view(sale)
	want(t, "the stock after the refused change", fmt.Sprint(view.Items[0].Stock), "5")

	s.apply(saleFile(t, sale, 12, running))
	report := s.crowd(sale, 60, "--http", "--ramp", "0s", "--concurrency", "16").report()
	want(t, "number of buyers after the raise", report.Results["success"], 7)
	g.wantBuyers(sale, 12)
	want(t, "number of units that the audit counts", s.audit(sale).sold(), 12)

	succeed(t, "sale", "stock", sale, "--total", "13", "--url", s.url)
	eventually(t, "one unit more is to be had", func() bool { result, _ := s.grab(sale, "late"); return result == "success" })
	succeed(t, "sale", "line", sale, "--rate", "77", "--url", s.url)
	if out := succeed(t, "sale", "extend", sale, "--closes-at", "2099-06-01T00:00:00+08:00", "--url", s.url); !strings.Contains(out, "2099-05-31 16:00:00") {
		t.Errorf("the changed sale is shown as %s", out)
	}
	line, _ := s.ask(http.MethodGet, "/admin/sales/"+sale, e2eAdmin, "").fields["line"].(map[string]any)
	want(t, "the new rate", fmt.Sprint(line["rate"]), "77")
	code, _, said = command(t, "sale", "stock", sale, "--total", "12", "--url", s.url)
	if code != exitFailed || !strings.Contains(said, "13 units that were sold") {
		t.Errorf("taking back what is sold ends with %d %s", code, said)
	}
}
