package server

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnAPIPathIsNeverAnsweredWithAPage(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) {
		o.Web = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("a page")) })
	})
	for _, path := range []string{"/", "/sale/phone-x", "/assets/app.js"} {
		if a := b.send(http.MethodGet, path, ""); a.status != http.StatusOK || string(a.body) != "a page" {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/api/v1/nothing", "/api/v2/sales", "/ws/v9/sales/phone-x"} {
		b.mustFail(b.send(http.MethodGet, path, ""), http.StatusNotFound, notFound)
	}
	a := b.send(http.MethodPatch, "/api/v1/sales", "")
	b.mustFail(a, http.StatusMethodNotAllowed, methodNotAllowed)
	if a.header.Get("Allow") == "" {
		t.Error("405 does not say what is allowed")
	}
	b.mustFail(b.send(http.MethodGet, "/api/v1/sales/phone-x/grab", "", b.as("ann")...), http.StatusMethodNotAllowed, methodNotAllowed)
}

func TestOnlyListedOriginsMayCallFromTheirPages(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Origins = []string{"https://shop.example"} })
	for origin, allowed := range map[string]bool{
		"https://shop.example":           true,
		"http://shop.example":            false,
		"https://shop.example.evil.test": false,
		"https://evil.test":              false,
		"null":                           false,
	} {
		a := b.send(http.MethodOptions, "/api/v1/sales/solo/grab", "",
			"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")
		if got := a.header.Get("Access-Control-Allow-Origin") == origin; got != allowed {
			t.Errorf("%s: got %d %v", origin, a.status, a.header)
		}
		if a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", origin)
		}
	}
	b = newBench(t, nil)
	if a := b.send(http.MethodGet, "/api/v1/sales", "", "Origin", "https://shop.example"); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without a list: got %v", a.header)
	}
}

func TestHeadersHaveALimit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	site := httptest.NewUnstartedServer(nil)
	site.Config = NewHTTPServer("", b.server.Handler())
	site.Start()
	defer site.Close()
	for size, want := range map[int]int{8 << 10: http.StatusOK, 64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL+"/api/v1/sales", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Padding", strings.Repeat("a", size))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("with %d bytes: got %d, want %d", size, resp.StatusCode, want)
		}
	}
}

func TestEachWeakSecretIsWarnedOf(t *testing.T) {
	t.Parallel()
	for secret, want := range map[string]bool{"hunter2": true, string(testSecret()): false} {
		for setting, give := range map[string]func(*Options){
			"--secret":           func(o *Options) { o.Secrets = [][]byte{[]byte(secret)} },
			"--admin-token":      func(o *Options) { o.AdminToken = secret },
			"--webhook-secret":   func(o *Options) { o.WebhookSecrets = [][]byte{testSecret(), []byte(secret)} },
			"--challenge-secret": func(o *Options) { o.ChallengeSecret = secret },
		} {
			var buffer bytes.Buffer
			newBench(t, func(o *Options) {
				o.AdminToken = string(testSecret())
				give(o)
				o.Logger = slog.New(slog.NewTextHandler(&buffer, nil))
			})
			warned := strings.Contains(buffer.String(), "guessed") && strings.Contains(buffer.String(), "setting="+setting+" bytes=7 want=32")
			if warned != want || strings.Contains(buffer.String(), secret) {
				t.Errorf("%s of %d bytes: %s", setting, len(secret), &buffer)
			}
		}
	}
}
