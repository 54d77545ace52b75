package server

import (
	"net/http"
	"testing"
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
		for _, path := range []string{"/api/v1/sales", "/api/v1/nothing", "/api/v1/orders", "/api/v1/admin/sales"} {
			h := b.send(http.MethodGet, path, "").header
			if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
				h.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" || (h.Get("Strict-Transport-Security") != "") != secure {
				t.Errorf("%s: got %v", path, h)
			}
		}
	}
}
