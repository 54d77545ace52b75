package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"sluice/hub"
	"sluice/queue"
)

// These look for inputs that break something; testdata/fuzz has those that are worth keeping. Each also says what must
// hold of whatever an input brings about.

// fuzzed is a bench for one input after another, whose line and stores refuse what must never reach them.
type fuzzed struct {
	*bench
	change func(*Options)
}

// next has the bench speak for the test of the next input. The first makes the bench.
func (f *fuzzed) next(t *testing.T) *bench {
	if f.bench == nil {
		f.bench = fuzzBench(t, f.change)
		f.bench.made = true // field names in other letters are taken as well, and more that no client needs to know
	}
	f.bench.T = t
	return f.bench
}

func fuzzBench(t *testing.T, change func(*Options)) *bench {
	b := newBench(t, change)
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) {
		if req.User != "ann" || !validAddress(req.Address) {
			b.Errorf("%+v reached the line", req)
		}
		return queue.Seat{User: req.User, Status: queue.Turn, Ticket: 1, Number: 1, At: testNow().UnixMilli(), Deadline: testNow().UnixMilli()}, nil
	}
	b.line.look = func(_, user string) (queue.Seat, error) {
		return queue.Seat{User: user, Status: queue.Waiting, Ticket: 12, Number: 12}, nil
	}
	b.line.leave = func(string, string, int64) error { return nil }
	b.line.grab = func(req queue.GrabRequest) (queue.Grabbed, error) {
		sale := phoneX()
		if _, ok := sale.Item(req.Item); req.Sale == sale.ID && !ok || req.User != "ann" || req.Qty < 1 || req.Qty > sale.Limit ||
			!validRequestID(req.RequestID) || !validAddress(req.Address) {
			b.Errorf("%+v reached the line", req)
		}
		return queue.Grabbed{Result: queue.Success, Order: &queue.Order{ID: annsPaid, Sale: req.Sale, Item: req.Item, User: req.User, Qty: req.Qty, Status: queue.Reserved}}, nil
	}
	b.server.opts.AuditLog = fuzzLog{b}
	b.server.opts.Cashier = &till{answer: func(order string) (queue.Order, error) {
		if uuid.Validate(order) != nil {
			b.Errorf("the order %q reached the cashier", order)
		}
		return queue.Order{ID: order, Sale: "solo", Item: "main", Qty: 1, Status: queue.Paid}, nil
	}}
	return b
}

// fuzzLog is an audit log that is asked for pages.
type fuzzLog struct{ b *bench }

func (l fuzzLog) Log(context.Context, Change) error { return nil }

func (l fuzzLog) Entries(_ context.Context, _ string, before int64, limit int) ([]LogEntry, error) {
	if before < 0 || limit < 2 || limit > longestPage+1 {
		l.b.Errorf("a page of %d below %d reached the log", limit, before)
	}
	return nil, nil
}

// validAddress says whether the limit of addresses can count it: an address, or a network of IPv6.
func validAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	_, notNetwork := netip.ParsePrefix(text)
	return err == nil || notNetwork == nil
}

// mustBeSound checks that an answer is one that a shopper, a proxy and an operator can work with.
func (b *bench) mustBeSound(a answer) {
	b.Helper()
	if a.status >= http.StatusInternalServerError {
		b.Errorf("got %d %s", a.status, a.body)
	}
	if strings.Trim(a.header.Get("X-Request-Id"), tokenChars) != "" {
		b.Errorf("the request id is %q", a.header.Get("X-Request-Id"))
	}
	if a.status < http.StatusBadRequest {
		return
	}
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		b.Errorf("a refusal of the type %q: %s", a.header.Get("Content-Type"), a.body)
	}
	if p.Status != a.status || p.Code == "" || len(p.Detail) < 10 || len(p.Detail) > 400 || strings.ContainsAny(p.Detail, "\r\n") {
		b.Errorf("the refusal says %q", a.body)
	}
}

func FuzzHeaders(f *testing.F) {
	secret := string(testSecret())
	token, err := mintUser([]byte(secret), "ann")
	if err != nil {
		f.Fatal(err)
	}
	pair := MintHMAC([]byte(secret), "ann", testNow().Add(time.Hour))
	f.Add("Bearer "+token, "", "", "203.0.113.7, 192.0.2.9", "zh-CN,zh;q=0.9", "https://shop.example", "r-1", "bytes=0-1")
	f.Add("", "ann", pair, "::ffff:1.2.3.4, unknown", "*;q=NaN", "null", "a b", "bytes=-1,9-1")
	f.Add("bearer  "+token+" ", "bob", pair, ",", "zh-u-co-phonebk-x-1", "https://shop.example.evil.example", "\x7f", "lines=1")
	f.Add("Basic YTpi", "", "", "fe80::1%eth0", strings.Repeat("zh,", 90), "http://\xff", strings.Repeat("x", 65), "bytes=18446744073709551616-")
	bench := &fuzzed{change: func(o *Options) {
		o.TrustedProxies, o.Origins = []string{"192.0.2.0/24"}, []string{"https://shop.example"}
	}}
	f.Fuzz(func(t *testing.T, authorization, user, signature, forwarded, language, origin, id, span string) {
		b := bench.next(t)
		header := []string{
			"Authorization", authorization, headerUser, user, headerToken, signature, "X-Forwarded-For", forwarded,
			"Accept-Language", language, "Origin", origin, "X-Request-Id", id, "Range", span,
		}
		a := b.send(http.MethodPost, "/api/v1/sales/phone-x/grab", `{"item":"black"}`, header...)
		b.mustBeSound(a)
		if a.status == http.StatusOK && !strings.Contains(authorization, token) && !strings.EqualFold(signature, pair) { // the same digits, in capitals
			t.Errorf("nobody got through with %q, %q and %q", authorization, user, signature)
		}
		if allowed := a.header.Get("Access-Control-Allow-Origin"); allowed != "" && !strings.EqualFold(allowed, "https://shop.example") { // hosts have no case
			t.Errorf("the origin %q is allowed", allowed)
		}
		b.mustBeSound(b.send(http.MethodGet, "/api/v1/admin/about", "", header...))
		if a := b.send(http.MethodGet, "/api/v1/sales", "", header...); a.status != http.StatusOK {
			t.Errorf("whoever asks for what everybody may see got %d %s", a.status, a.body)
		}
	})
}

// fuzzedBodies are the routes that take one.
func fuzzedBodies() []string {
	return []string{
		"POST /api/v1/sales/phone-x/grab", "POST /api/v1/sales/phone-x/seat", "POST /api/v1/seckill/solo", "PUT /api/v1/admin/sales/solo?dry_run=true",
		"PATCH /api/v1/admin/sales/solo/line", "POST /api/v1/admin/sales/solo/extend", "POST /api/v1/admin/sales/solo/stock",
	}
}

func FuzzBodies(f *testing.F) {
	f.Add(uint8(0), "application/json", `{"item":"black","qty":2,"request_id":"r-1"}`)
	f.Add(uint8(0), "application/json; charset=utf-8", `{"item":"black","item":"white","qty":1e0}`)
	f.Add(uint8(1), "application/json", `{"seat":"x.y"}`)
	f.Add(uint8(2), "", "\ufeff{}")
	f.Add(uint8(3), "application/yaml", "id: solo\nitems: [{stock: 5}]\nopens_at: +1s\ncloses_at: +1h\n")
	f.Add(uint8(4), "application/json", `{"rate":1e308,"active":-1,"ratio":null}`)
	f.Add(uint8(5), "application/json", `{"closes_at":"9999-12-31T23:59:60Z"}`)
	f.Add(uint8(6), "text/plain", `{"item":"main","total":9223372036854775807}`)
	f.Add(uint8(0), "application/json", strings.Repeat(`{"item":`, 200))
	bench := &fuzzed{}
	f.Fuzz(func(t *testing.T, route uint8, kind, body string) {
		b := bench.next(t)
		method, path, _ := strings.Cut(fuzzedBodies()[int(route)%len(fuzzedBodies())], " ")
		header := b.as("ann")
		if strings.Contains(path, "admin") {
			header = b.asAdmin()
		}
		b.mustBeSound(b.send(method, path, body, append(header, "Content-Type", kind)...))
	})
}

func FuzzPaymentEvents(f *testing.F) {
	const secret = "the provider's"
	f.Add(`{"order":"`+annsPaid+`","status":"paid","event_id":"1"}`, "")
	f.Add(`{"order":"`+annsPaid+`","status":"paid","event_id":"1"}`, "sha256=00")
	f.Add(`{"order":"{`+annsPaid+`}","status":"","event_id":""}`, "")
	f.Add(`{"order":7}{}`, "sha256="+strings.Repeat("0", 64))
	f.Add("null", "sha1="+strings.Repeat("0", 40))
	bench := &fuzzed{change: func(o *Options) { o.WebhookSecrets = [][]byte{[]byte(secret)} }}
	f.Fuzz(func(t *testing.T, body, signature string) {
		b := bench.next(t)
		a := b.send(http.MethodPost, "/api/v1/webhooks/payment", body, headerSignature, signature)
		b.mustBeSound(a)
		if a.status < 300 {
			t.Errorf("%q was taken for the signature of %q", signature, body)
		}
		b.mustBeSound(b.send(http.MethodPost, "/api/v1/webhooks/payment", body, headerSignature, signatureOf(secret, body)))
	})
}

func FuzzListQueries(f *testing.F) {
	f.Add("q=ann&status=paid&limit=200&before=" + annsPaid)
	f.Add("q=%25_%5c%27&limit=0&status=PAID&before=x")
	f.Add("q=%00&limit=99999999999999999999&sale=solo&before=-1")
	f.Add("q=%ff;a=b&limit=%31&&before=1")
	f.Add("limit=1&limit=2&sale[]=x&sale=" + strings.Repeat("a", 200))
	bench := &fuzzed{}
	f.Fuzz(func(t *testing.T, query string) {
		b := bench.next(t)
		for _, list := range []string{"/api/v1/admin/sales/solo/orders", "/api/v1/admin/audit-log", "/api/v1/admin/sales/solo/orders.csv"} {
			req := httptest.NewRequest(http.MethodGet, list, nil)
			req.URL.RawQuery = query
			req.Header.Set("Authorization", "Bearer "+testAdminToken)
			rec := httptest.NewRecorder()
			b.server.Handler().ServeHTTP(rec, req)
			a := answer{rec.Code, rec.Header(), rec.Body.Bytes()}
			b.mustBeSpecified(req, nil, a)
			b.mustBeSound(a)
		}
		c := b.server.echo.NewContext(&http.Request{URL: &url.URL{RawQuery: query}}, nil)
		if filter, err := orderFilter(c); err == nil && (filter.Limit < 1 || filter.Limit > longestPage || filter.Before != "" && uuid.Validate(filter.Before) != nil) {
			t.Errorf("%q was understood as %+v", query, filter)
		}
	})
}

// FuzzFrames is a conversation over a socket: each line of script is a message, in which $token and $seat stand for those
// of the shopper.
func FuzzFrames(f *testing.F) {
	const hello = `{"type":"hello","token":"$token"}` + "\n"
	f.Add(hello + `{"type":"grab","id":"r1","item":"black","qty":2}` + "\n" + `{"type":"leave"}`)
	f.Add(hello + hello + `{"type":"hello","token":"$token","seat":"$seat","order":"` + annsPaid + `"}`)
	f.Add(`{"type":"leave"}` + "\n" + hello)
	f.Add(hello + `{"type":"grab","id":"","item":null,"qty":1e0}` + "\n" + `{"type":"grab","id":7}`)
	f.Add(hello + `{"type":"grab","id":"\ud800","item":"blac\u0000k","qty":9223372036854775807}`)
	f.Add(hello + `{"type":"grab"}{"type":"leave"}`)
	f.Add(`{"type":"hello","token":"$seat"}`)
	f.Add(hello + `{"type":"` + strings.Repeat("é", 300) + `"}`)
	f.Add(hello + strings.Repeat("[", 1000))
	bench := &fuzzed{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { bench.server.Handler().ServeHTTP(w, r) }))
	f.Cleanup(site.Close)
	f.Fuzz(func(t *testing.T, script string) {
		b := bench.next(t)
		panics := slog.New(panicLog{t})
		sockets := hub.New(hub.Options{Logger: panics, MessagesPerSecond: -1})
		defer sockets.Close()
		b.server.opts.Hub = sockets
		sale := phoneX()
		here := newRoom(sale.ID, queue.New(nil, queue.Options{}), b.line, b.server.passes, b.server.presentOrder, b.server.fate, panics)
		b.server.registry.rooms[sale.ID] = &openRoom{room: here}
		seat, err := b.server.current().identities.MintSeat(SeatToken{Sale: sale.ID, User: "ann", Ticket: 1})
		if err != nil {
			t.Fatal(err)
		}
		script = strings.NewReplacer("$token", strings.TrimPrefix(b.as("ann")[1], "Bearer "), "$seat", seat).Replace(script)
		conn, resp, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(site.URL, "http")+"/ws/v1/sales/"+sale.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		defer conn.Close()
		for n, message := range strings.Split(script, "\n") {
			if n == 20 || conn.WriteMessage(websocket.TextMessage, []byte(message)) != nil {
				break // the server has had enough
			}
		}
		here.Tick(openSnapshot(sale), nil, queue.Lost{})
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patient))
		_ = conn.SetReadDeadline(time.Now().Add(patient))
		for {
			_, data, err := conn.ReadMessage()
			var closed *websocket.CloseError
			switch {
			case err == nil:
				if f := (frame{}); json.Unmarshal(data, &f) != nil || f.Type == "" || f.At == 0 {
					t.Errorf("the server said %q", data)
				}
				continue
			case !errors.As(err, &closed):
				t.Errorf("the connection ended with %v", err)
			case !slices.Contains([]int{closeLeft, closeBadMessage, closeBadToken, closeNoSale}, closed.Code):
				t.Errorf("the connection was closed with %d %q", closed.Code, closed.Text)
			}
			return
		}
	})
}

// panicLog is a log in which nothing may be said to have panicked.
type panicLog struct{ t *testing.T }

func (panicLog) Enabled(context.Context, slog.Level) bool { return true }
func (l panicLog) WithAttrs([]slog.Attr) slog.Handler     { return l }
func (l panicLog) WithGroup(string) slog.Handler          { return l }
func (l panicLog) Handle(_ context.Context, r slog.Record) error {
	if text := fmt.Sprint(r.Message); strings.Contains(text, "panic") {
		r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		l.t.Error(text)
	}
	return nil
}

// signatureOf is the X-Signature of a body.
func signatureOf(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
