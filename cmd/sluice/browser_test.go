package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAShopperBuysInARealBrowser sends a browser through a sale behind a small crowd. The script of the journey looks at
// everything that the shopper sees; here its order is looked for in the database.
func TestAShopperBuysInARealBrowser(t *testing.T) {
	t.Parallel()
	const crowd = 40
	browser := setting(t, "SLUICE_TEST_CHROMIUM")
	web := filepath.Join("..", "..", "web")
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		t.Fatalf("the browser is driven by playwright-core, which is not installed; install it with: cd web && npm ci (%v)", err)
	}

	g := newGround(t, "mysql")
	s := open(t, append(g.flags, "--auth", "jwt,hmac,guest")...)
	sale := freshID()
	// There is enough for everyone, and the crowd is in line first: it only makes the browser wait.
	s.apply(saleFile(t, sale, crowd+10, `opens_at: +1h
closes_at: +2h
hold: 0s
line: { order: fifo, rate: 6, ratio: 4, turn: 60s }`))
	shoppers := s.crowd(sale, crowd, "--no-audit", "--ramp", "0s", "--grab-delay", "200ms")
	eventually(t, "the crowd has joined the line", func() bool {
		view, _ := s.view(sale)
		return view.Waiting != nil && *view.Waiting == crowd
	})

	shots := t.ArtifactDir()
	cmd := exec.Command("node", "e2e/journey.mjs")
	cmd.Dir = web
	cmd.Env = append(withoutSettings(os.Environ()), "BASE_URL="+s.url, "SALE="+sale, "SHOTS="+shots, "SLUICE_TEST_CHROMIUM="+browser)
	journey := launch(t, "the browser", cmd)
	eventually(t, "the browser has joined the line", func() bool {
		view, _ := s.view(sale)
		return journey.ended() || view.Waiting != nil && *view.Waiting == crowd+1
	})
	succeed(t, "sale", "open", sale, "--url", s.url)
	if code := journey.wait(); code != 0 {
		t.Fatalf("the journey ends with %d: %s", code, journey.err.String())
	}
	want(t, "number of buyers in the crowd", shoppers.report().Results["success"], crowd)

	g.wantBuyers(sale, crowd+1)
	for _, user := range buyers(t, g.rows, sale) {
		if !strings.HasPrefix(user, "crowd-") {
			return
		}
	}
	t.Error("the order of the browser is not in the database")
}
