package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func ask(t *testing.T, h http.Handler, method, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestThePageIsServedAtItsAddressesAndNowhereElse(t *testing.T) {
	t.Parallel()
	h := Handler(Options{})
	index := bodyOf(t, ask(t, h, "GET", "/").Body)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/", 200},
		{"GET", "/s/phone-x", 200},
		{"GET", "/s/phone-x/", 200},
		{"GET", "/s/Phone", 404},
		{"GET", "/s/", 404},
		{"GET", "/s/a/b", 404},
		{"GET", "/index.html", 404},
		{"GET", "/../embed.go", 404},
		{"GET", "/elsewhere", 404},
		{"GET", "/assets/none.js", 404},
		{"POST", "/", 405},
	} {
		res := ask(t, h, c.method, c.path)
		if res.StatusCode != c.status {
			t.Errorf("%s %s: status %d, want %d", c.method, c.path, res.StatusCode, c.status)
		}
		if c.status == 200 && res.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: Cache-Control %q: an old page would name files that are gone", c.path, res.Header.Get("Cache-Control"))
		}
		isPage := bodyOf(t, res.Body) == index
		if wanted := c.status == 200 || c.status == 404 && !strings.HasPrefix(c.path, "/assets/"); isPage != wanted {
			t.Errorf("%s %s: the page was served: %v, want %v", c.method, c.path, isPage, wanted)
		}
	}
}

func TestTheClientMayBeLoadedByPagesOfAnyOrigin(t *testing.T) {
	t.Parallel()
	h := Handler(Options{})
	res := ask(t, h, "GET", "/client/sluice.js")
	if body := bodyOf(t, res.Body); res.StatusCode != 200 || !strings.Contains(body, "export {") {
		t.Errorf("got %d and %d bytes, want a module", res.StatusCode, len(body))
	}
	if got := res.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
		t.Errorf("Content-Type: got %q", got)
	}
	if got := res.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("Access-Control-Allow-Origin: got %q, want *", got)
	}
	for _, path := range []string{"/", "/client/other.js"} {
		if got := ask(t, h, "GET", path).Header.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s: Access-Control-Allow-Origin: got %q, want none", path, got)
		}
	}
}

func TestTheOperatorsPageIsServedBelowAdminAndShownInNoFrame(t *testing.T) {
	t.Parallel()
	shop, console := "<title>shop</title>", "<title>console</title>"
	build := fstest.MapFS{"index.html": {Data: []byte(shop)}, "admin.html": {Data: []byte(console)}, "assets/a.js": {Data: []byte("a")}}
	framed := Options{FrameAncestors: []string{"https://shop.example"}}
	with := newHandler(build, framed)
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/admin", 200, console},
		{"GET", "/admin/", 200, console},
		{"GET", "/admin/sales/phone-x", 200, console},
		{"GET", "/admin/../x", 200, console}, // whatever follows is the page's own
		{"HEAD", "/admin", 200, ""},
		{"POST", "/admin", 405, "only GET and HEAD are answered here\n"},
		{"GET", "/admins", 404, shop},
		{"GET", "/admin.html", 404, shop},
		{"GET", "/", 200, shop},
	} {
		res := ask(t, with, c.method, c.path)
		if body := bodyOf(t, res.Body); res.StatusCode != c.status || body != c.body {
			t.Errorf("%s %s: got %d %q, want %d %q", c.method, c.path, res.StatusCode, body, c.status, c.body)
		}
		if c.status == 200 && res.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: Cache-Control %q", c.path, res.Header.Get("Cache-Control"))
		}
		admin := c.path == "/admin" || strings.HasPrefix(c.path, "/admin/")
		policy := res.Header.Get("Content-Security-Policy")
		if admin != strings.HasSuffix(policy, "frame-ancestors 'none'") || !strings.HasPrefix(policy, "default-src 'self'; connect-src 'self'") {
			t.Errorf("%s: policy %q", c.path, policy)
		}
	}
	delete(build, "admin.html")
	without := newHandler(build, framed)
	for _, path := range []string{"/admin", "/admin/sales"} {
		res := ask(t, without, "GET", path)
		if body := bodyOf(t, res.Body); res.StatusCode != 404 || body != shop {
			t.Errorf("%s in a build without it: got %d %q", path, res.StatusCode, body)
		}
	}
}

func TestEveryFileThatThePageNamesIsServedForAYear(t *testing.T) {
	t.Parallel()
	h := Handler(Options{})
	index := bodyOf(t, ask(t, h, "GET", "/").Body)
	named := regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(index, -1)
	types := map[string]string{"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}
	seen := map[string]bool{}
	for _, match := range named {
		res := ask(t, h, "GET", match[1])
		ext := match[1][strings.LastIndex(match[1], ".")+1:]
		seen[ext] = true
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != types[ext] {
			t.Errorf("%s: %d %q", match[1], res.StatusCode, res.Header.Get("Content-Type"))
		}
		if got := res.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
			t.Errorf("%s: Cache-Control %q", match[1], got)
		}
	}
	if !seen["js"] || !seen["css"] {
		t.Fatalf("the page names no script or no style: %v", named)
	}
}

func TestThePageSpeaksToNoOtherHostAndRunsNoInlineScript(t *testing.T) {
	t.Parallel()
	index := bodyOf(t, ask(t, Handler(Options{}), "GET", "/").Body)
	for _, bad := range []string{"//", "<style", "style=", "onload=", "javascript:"} {
		if strings.Contains(index, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, script := range regexp.MustCompile(`<script[^>]*>`).FindAllString(index, -1) {
		if !strings.Contains(script, "src=") {
			t.Errorf("inline script %s: the policy forbids it", script)
		}
	}
}

func TestSecurityHeadersComeWithEveryAnswer(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/s/a", "/nothing", "/assets/nothing.js"} {
		res := ask(t, Handler(Options{}), "GET", path)
		policy := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{
			"default-src 'self'", "connect-src 'self'", "img-src 'self' data:", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'",
		} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy %q lacks %q", path, policy, want)
			}
		}
		if res.Header.Get("X-Content-Type-Options") != "nosniff" || res.Header.Get("Referrer-Policy") == "" {
			t.Errorf("%s: headers %v", path, res.Header)
		}
	}
	framed := ask(t, Handler(Options{FrameAncestors: []string{"'self'", "https://shop.example"}}), "GET", "/")
	if got := framed.Header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors 'self' https://shop.example") {
		t.Errorf("policy %q", got)
	}
}

func TestWhoHasTheFileIsToldSo(t *testing.T) {
	t.Parallel()
	h := Handler(Options{})
	for _, coding := range []string{"", "gzip"} {
		tag := ask(t, h, "GET", "/", "Accept-Encoding", coding).Header.Get("ETag")
		if tag == "" {
			t.Fatal("no ETag")
		}
		if res := ask(t, h, "GET", "/", "If-None-Match", tag, "Accept-Encoding", coding); res.StatusCode != 304 {
			t.Errorf("coding %q: status %d for the tag just given", coding, res.StatusCode)
		}
		if res := ask(t, h, "GET", "/", "If-None-Match", `"other"`, "Accept-Encoding", coding); res.StatusCode != 200 {
			t.Errorf("coding %q: status %d for another tag", coding, res.StatusCode)
		}
	}
}

func TestCompressionIsForThoseWhoAcceptIt(t *testing.T) {
	t.Parallel()
	f := newFile("a.js", []byte(strings.Repeat("let it be; ", 500)))
	serve := http.HandlerFunc(f.serve)
	plain := bodyOf(t, ask(t, serve, "GET", "/").Body)
	for header, zipped := range map[string]bool{
		"": false, "br": false, "gzip": true, "br, GZIP": true, "gzip;q=0.1, br": true, "gzip; q=0": false, "gzip;q=0.000": false,
		"gzip;q=1.0": true, "x-gzip": false,
	} {
		res := ask(t, serve, "GET", "/", "Accept-Encoding", header)
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != zipped {
			t.Errorf("Accept-Encoding %q: compressed %v", header, got)
			continue
		}
		if res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: no Vary", header)
		}
		if !zipped {
			continue
		}
		z, err := gzip.NewReader(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if bodyOf(t, z) != plain {
			t.Error("the compressed file is not the file")
		}
	}
}
