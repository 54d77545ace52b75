package main

import (
	"strings"
	"testing"
)

// TestAShopperBuysInARealBrowser sends a browser through a sale behind a small crowd. The script of the journey looks at
// everything that the shopper sees; here its order is looked for in the database.
func TestAShopperBuysInARealBrowser(t *testing.T) {
	t.Parallel()
	const crowd = 40
	g, s := forShoppers(t)
	sale := freshID()
	// There is enough for everyone, and the crowd is in line first: it only makes the browser wait.
	s.apply(saleFile(t, sale, crowd+10, `opens_at: +1h
closes_at: +2h
hold: 0s
line: { order: fifo, rate: 12, ratio: 4, turn: 60s }`))
	shoppers := s.crowd(sale, crowd, "--no-audit", "--ramp", "0s", "--grab-delay", "200ms")
	eventually(t, "the crowd has joined the line", func() bool {
		view, _ := s.view(sale)
		return view.Waiting != nil && *view.Waiting == crowd
	})
	journey := travel(t, s, "journeys/buy", sale)
	eventually(t, "the browser has joined the line", func() bool {
		view, _ := s.view(sale)
		return journey.ended() || view.Waiting != nil && *view.Waiting == crowd+1
	})
	succeed(t, "sale", "open", sale, "--url", s.url)
	journey.arrives(nil)
	want(t, "number of buyers in the crowd", shoppers.report().Results["success"], crowd)

	g.wantBuyers(sale, crowd+1)
	for _, user := range buyers(t, g.rows, sale) {
		if !strings.HasPrefix(user, "crowd-") {
			return
		}
	}
	t.Error("the order of the browser is not in the database")
}
