package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
)

// How often a route of shoppers may be asked, by whom it is counted. A route that is not listed fails the tests, so that none
// is added that anybody may ask without end.
const (
	byLine    = "the line"       // of user and address, in the script call that does the work
	byCaller  = "the caller"     // of user and address, before the work
	byAddress = "the address"    // nobody is known
	byNode    = "the node alone" // it is answered from memory; Redis is asked of a sale that this node does not know, or twice a second of a pass
	bySecret  = "a signature"    // what is not signed by the provider costs nothing
	bySocket  = "the socket"     // its hello is counted by the line
)

func limitsOfRoutes() map[string]string {
	return map[string]string{
		"GET /api/v1/sales":                       byNode,
		"GET /api/v1/sales/:sale":                 byNode,
		"POST /api/v1/guests":                     byAddress,
		"POST /api/v1/sales/:sale/seat":           byLine,
		"GET /api/v1/sales/:sale/seat":            byLine,
		"DELETE /api/v1/sales/:sale/seat":         byCaller,
		"GET /api/v1/sales/:sale/draw":            byNode,
		"GET /api/v1/sales/:sale/draw/entrants":   byAddress,
		"GET /api/v1/sales/:sale/draw/priorities": byNode,
		"GET /api/v1/sales/:sale/draw/mine":       byCaller,
		"POST /api/v1/sales/:sale/pass":           byLine,
		"GET /api/v1/auth":                        byNode,
		"POST /api/v1/sales/:sale/grab":           byLine,
		"POST /api/v1/seckill/:sale":              byLine,
		"GET /api/v1/orders":                      byCaller,
		"GET /api/v1/orders/:order":               byCaller,
		"POST /api/v1/orders/:order/pay":          byCaller,
		"POST /api/v1/orders/:order/cancel":       byCaller,
		"POST /api/v1/webhooks/payment":           bySecret,
		"GET /ws/v1/sales/:sale":                  bySocket,
		"GET " + jwksPath:                         byNode,
	}
}

// routesOf are those of shoppers, as "METHOD /path".
func routesOf(s *Server) []string {
	var routes []string
	for _, route := range s.echo.Router().Routes() {
		if !strings.HasPrefix(route.Path, adminAPI) && route.Method != "echo_route_not_found" {
			routes = append(routes, route.Method+" "+route.Path)
		}
	}
	return routes
}

// ask sends a request of a route.
func (b *bench) ask(route string, header ...string) answer {
	b.Helper()
	method, path, _ := strings.Cut(route, " ")
	path = strings.NewReplacer(":sale", "solo", ":order", uuid.NewString()).Replace(path)
	return b.send(method, path, "", header...)
}

func TestEveryRouteThatCostsRedisOrTheDatabaseIsLimited(t *testing.T) {
	t.Parallel()
	limits := limitsOfRoutes()
	b := newBench(t, func(o *Options) { o.AdminApart = true })
	var counted []string
	limited := &queue.Error{
		Code: queue.Limited, By: "user", Limit: 20, RetryAfter: 3 * time.Second, Reset: testNow().Add(3 * time.Second),
	}
	b.line.allow = func(user, address string) error { counted = append(counted, user+"@"+address); return limited }
	b.line.join = func(queue.JoinRequest) (queue.Seat, error) {
		counted = append(counted, "join")
		return queue.Seat{}, limited
	}
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		counted = append(counted, "grab")
		return queue.Grabbed{}, limited
	}
	found := routesOf(b.server)
	if len(found) != len(limits) {
		t.Errorf("%d routes, and %d are listed here", len(found), len(limits))
	}
	for _, route := range found {
		by, ok := limits[route]
		if !ok {
			t.Errorf("%s: nothing is known of its limit", route)
		}
		counted = nil
		a := b.ask(route, b.as("ann")...)
		want := map[string][]string{byCaller: {"ann@192.0.2.1"}, byAddress: {"@192.0.2.1"}}[by]
		if by == byLine {
			want = []string{"join"}
			if strings.HasSuffix(route, "/grab") || strings.Contains(route, "/seckill/") {
				want = []string{"grab"}
			}
		}
		if fmt.Sprint(counted) != fmt.Sprint(want) {
			t.Errorf("%s: counted %v, want %v", route, counted, want)
		}
		if want == nil {
			if a.status == http.StatusTooManyRequests {
				t.Errorf("%s: got %d %s", route, a.status, a.body)
			}
			continue
		}
		b.mustFail(a, http.StatusTooManyRequests, queue.Limited)
		if a.header.Get(headerLimit) != "20" || a.header.Get(headerRemaining) != "0" || a.header.Get("Retry-After") == "" ||
			a.header.Get(headerReset) != fmt.Sprint(testNow().Add(3*time.Second).Unix()) {
			t.Errorf("%s: the figures are %v", route, a.header)
		}
	}
}

// Whoever may ask no more soon is told so before it happens, by the call that did the work.
func TestEveryRouteThatIsLimitedSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.AdminApart = true })
	left := &queue.Allowance{Limit: 20, Remaining: 7, Reset: testNow().Add(1500 * time.Millisecond)}
	b.line.left = left
	b.line.join = func(queue.JoinRequest) (queue.Seat, error) {
		return queue.Seat{User: "ann", Allowance: left, At: 1}, nil
	}
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{Result: queue.NoTurn, Allowance: left}, nil
	}
	b.line.look = func(string, string) (queue.Seat, error) { return queue.Seat{}, nil }
	for route, by := range limitsOfRoutes() {
		a := b.ask(route, b.as("ann")...)
		want := ""
		if by == byLine || by == byCaller || by == byAddress {
			want = "20, 7, " + fmt.Sprint(testNow().Add(2*time.Second).Unix())
		}
		got := ""
		if a.header.Get(headerLimit) != "" {
			got = a.header.Get(headerLimit) + ", " + a.header.Get(headerRemaining) + ", " + a.header.Get(headerReset)
		}
		if got != want {
			t.Errorf("%s: %d, and the figures are %q, want %q", route, a.status, got, want)
		}
	}
	// A cache may keep this one for everybody.
	c := b.server.echo.NewContext(httptest.NewRequest(http.MethodGet, "/", http.NoBody), httptest.NewRecorder())
	showAllowance(c, left)
	hideAllowance(c)
	if header := c.Response().Header(); len(header) != 0 {
		t.Errorf("got %v", header)
	}
}

func TestWhatIsLeftGoesDownWithEachRequestOfASale(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5), change{queue: queue.Options{UserLimit: queue.Rate{N: 6, Per: time.Hour}}})
	ann := f.shopper("ann")
	as := []string{"Authorization", "Bearer " + ann.token}
	for i, call := range [][2]string{
		{http.MethodPost, "/seat"}, {http.MethodGet, "/seat"}, {http.MethodPost, "/grab"}, {http.MethodPost, "/grab"}, {http.MethodPost, "/pass"}, {http.MethodGet, "/seat"},
	} {
		a := f.main.ask(call[0], "/sales/"+f.sale+call[1], "", as...)
		if a.header.Get(headerLimit) != "6" || a.header.Get(headerRemaining) != fmt.Sprint(5-i) || a.header.Get(headerReset) == "" {
			t.Errorf("%s %s: %d, and the figures are %v", call[0], call[1], a.status, a.header)
		}
	}
	if a := f.main.ask(http.MethodGet, "/sales/"+f.sale+"/seat", "", as...); a.status != http.StatusTooManyRequests {
		t.Errorf("got %d with nothing left", a.status)
	}
}

func TestTheNodesLimitIsForEveryRouteButSocketsAndSignedEvents(t *testing.T) {
	t.Parallel()
	limits := limitsOfRoutes()
	for route, by := range limits {
		if by == bySocket || by == bySecret {
			continue // a shopper's frames have a limit of their own, and an event of a payment must not be lost
		}
		b := newBench(t, func(o *Options) { o.NodeLimit = queue.Rate{N: 1, Per: time.Hour} })
		b.line.allow = func(string, string) error {
			t.Errorf("%s: asked Redis beyond the limit of the node", route)
			return nil
		}
		if a := b.send(http.MethodGet, "/api/v1/sales", ""); a.status != http.StatusOK {
			t.Fatalf("got %d within the limit", a.status)
		}
		a := b.ask(route, b.as("ann")...)
		b.mustFail(a, http.StatusTooManyRequests, queue.Limited)
		if a.header.Get(headerLimit) != "1" || a.header.Get(headerReset) == "" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: the figures are %v", route, a.header)
		}
	}
}

func TestWithoutRedisOrdersAreStillPaidAndCancelled(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	paid := func(o queue.Order) (queue.Order, error) {
		return queue.Order{ID: o.ID, Sale: "solo", Item: "main", Qty: 1, Status: queue.Paid}, nil
	}
	b := newBench(t, func(o *Options) { o.Cashier = untouched(paid) })
	b.line.allow = func(string, string) error { return errDown }
	b.store.orders = []queue.Order{{ID: id, Sale: "solo", Item: "main", User: "ann", Qty: 1, Status: queue.Confirmed}}
	for _, call := range [][2]string{
		{http.MethodGet, "/api/v1/orders/" + id}, {http.MethodPost, "/api/v1/orders/" + id + "/pay"}, {http.MethodPost, "/api/v1/orders/" + id + "/cancel"},
	} {
		if a := b.send(call[0], call[1], "", b.as("ann")...); a.status != http.StatusOK {
			t.Errorf("%s %s: got %d %s", call[0], call[1], a.status, a.body)
		}
	}
}

// The fault: an in-process limiter is N times the limit on N nodes.
func TestLooksAtOrdersAndNewGuestsAreLimitedOverAllNodes(t *testing.T) {
	t.Parallel()
	trusting := func(o *Options) { o.TrustedProxies, o.Auth = []string{"127.0.0.0/8"}, []string{"jwt", "guest"} }
	for name, limits := range map[string]queue.Options{
		"user":    {UserLimit: queue.Rate{N: 6, Per: time.Hour}},
		"address": {AddressLimit: queue.Rate{N: 6, Per: time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFair(t, saleOf(5), change{queue: limits, server: trusting})
			nodes := []*node{f.main, f.node("other", change{queue: limits, server: trusting})}
			ann := f.shopper("ann-" + uuid.NewString())
			home := uuid.New()
			forwarded := func(i int) []string { // ever another address of one home
				return []string{"X-Forwarded-For", fmt.Sprintf("198.51.100.%d, 2001:db8:%x:%x::%x", i, home[0:2], home[2:4], i+1)}
			}
			order := "/orders/" + uuid.NewString()
			calls := [][2]string{
				{http.MethodGet, "/orders?sale=" + f.sale}, {http.MethodPost, order + "/cancel"}, {http.MethodDelete, "/sales/" + f.sale + "/seat"},
				{http.MethodGet, order}, {http.MethodPost, order + "/pay"},
			}
			if name == "address" {
				calls = [][2]string{{http.MethodPost, "/guests"}, {http.MethodGet, order}}
			}
			passed := 0
			for i := range 18 {
				call := calls[i%len(calls)]
				a := nodes[i%2].ask(call[0], call[1], "", append(forwarded(i), "Authorization", "Bearer "+ann.token)...)
				if a.status != http.StatusTooManyRequests {
					passed++
					if a.header.Get(headerLimit) != "6" || a.header.Get(headerRemaining) != fmt.Sprint(6-passed) || a.header.Get(headerReset) == "" {
						t.Errorf("%s %s, as number %d: the figures are %v", call[0], call[1], passed, a.header)
					}
					continue
				}
				if a.header.Get(headerLimit) != "6" || a.header.Get(headerRemaining) != "0" || a.header.Get(headerReset) == "" || a.header.Get("Retry-After") == "" {
					t.Errorf("the figures are %v", a.header)
				}
			}
			if passed != 6 {
				t.Errorf("%d passed, with a limit of 6", passed)
			}
			// Somebody else is not concerned.
			bob := f.shopper("bob-" + uuid.NewString())
			if a := f.main.ask(http.MethodGet, "/orders?sale="+f.sale, "", "X-Forwarded-For", "2001:db8:ffff:"+uuid.NewString()[:4]+"::1", "Authorization", "Bearer "+bob.token); a.status != http.StatusOK {
				t.Errorf("bob got %d %s", a.status, a.body)
			}
		})
	}
}
