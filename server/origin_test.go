package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

func TestOriginsAreComparedWhole(t *testing.T) {
	t.Parallel()
	set, err := parseOrigins([]string{"https://shop.example", "http://Stage.example:8080/", "https://other.example:443"})
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]bool{
		"https://shop.example":              true,
		"https://SHOP.example":              true,
		"https://shop.example:443":          true,
		"https://other.example":             true,
		"http://stage.example:8080":         true,
		"https://own.example":               true,
		"http://own.example":                true, // a proxy may end TLS before us
		"http://shop.example":               false,
		"https://shop.example:444":          false,
		"https://shop.example.evil.example": false,
		"https://evilshop.example":          false,
		"https://shop.example@evil.example": false,
		"https://evil@shop.example":         false,
		"https://shop.example/":             false,
		"https://shop.example?x":            false,
		"https://shop.example#x":            false,
		"https://own.example:8443":          false,
		"file://shop.example":               false,
		"null":                              false,
		"*":                                 false,
		"":                                  false,
		"https://":                          false,
		"https://:443":                      false,
	} {
		if got := set.allows(origin, "own.example"); got != want {
			t.Errorf("%q: got %v", origin, got)
		}
	}
	for _, text := range []string{"*", "https://*.shop.example", "shop.example", "https://shop.example/path", "ftp://shop.example", "null", ""} {
		if _, err := parseOrigins([]string{text}); err == nil {
			t.Errorf("%q was taken for an origin", text)
		}
	}
}

func TestTheAdminAPIIsOpenToNoOtherOrigin(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Origins = []string{"https://shop.example"} })
	for _, method := range []string{http.MethodOptions, http.MethodGet} {
		a := b.send(method, "/api/v1/admin/sales", "", append(b.asAdmin(), "Origin", "https://shop.example", "Access-Control-Request-Method", "GET")...)
		if a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %v", method, a.header)
		}
	}
}

func TestAnswersOfTheAPIAreNeverRunOrFramed(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		b := newBench(t, func(o *Options) { o.Secure = secure })
		b.server.SetReady(false) // a stream would not end
		b.line.join = func(req queue.JoinRequest) (queue.Seat, error) { return queue.Seat{User: req.User}, nil }
		b.line.look = func(string, string) (queue.Seat, error) { return queue.Seat{}, nil }
		b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return queue.Grabbed{Result: queue.NoTurn}, nil }
		routes := []string{"GET /api/v1/nothing", "PATCH /api/v1/orders", "GET /nothing"}
		for _, route := range b.server.echo.Router().Routes() {
			routes = append(routes, route.Method+" "+route.Path)
		}
		done := 0 // answers that are no problem
		for _, route := range routes {
			if strings.HasPrefix(route, "echo_route_not_found") {
				continue
			}
			for _, header := range [][]string{nil, b.as("ann"), b.asAdmin(), {"Authorization", "Bearer wrong"}} {
				a := b.ask(route, header...)
				h := a.header
				if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
					h.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" || (h.Get("Strict-Transport-Security") != "") != secure {
					t.Errorf("%s: got %d %v", route, a.status, h)
				}
				public := a.status == http.StatusOK && slices.Contains([]string{"GET /api/v1/sales", "GET /api/v1/sales/:sale", "GET " + jwksPath}, route)
				if kept := h.Get("Cache-Control"); (kept == "no-store") == public || len(h.Values("Cache-Control")) != 1 {
					t.Errorf("%s: got %d with Cache-Control %q", route, a.status, h.Values("Cache-Control"))
				}
				if a.status < http.StatusBadRequest {
					done++
				}
			}
		}
		if done < 20 {
			t.Errorf("only %d answers were no refusals", done)
		}
	}
}

func TestAFailureIsNotKeptWhereItsAnswerWouldBe(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.server.echo.GET("/fail", func(c *echo.Context) error {
		c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=3600")
		return errDown
	})
	a := b.send(http.MethodGet, "/fail", "")
	b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)
	if got := a.header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
		t.Errorf("got %q", got)
	}
}
