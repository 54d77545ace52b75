package main

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// Each of these sends a shopper on the journey of that name in web/e2e/journeys. What the shopper sees is looked at there;
// here it is compared with the database.

func TestALotteryIsCheckedAndPaidByKeyboardInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/lottery", sale).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "paid")
}

func TestAnOrderIsCancelledAndMadeAgainInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/cancel", sale).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "cancelled confirmed")
	want(t, "units sold", s.audit(sale).sold(), 1)
}

func TestAPlaceOutlivesTheServerInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/restart", sale).arrives(map[string]func(){
		"stop": func() {
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			want(t, "exit code", s.wait(), exitOK)
		},
		"kill":  func() { s.kill() },
		"start": func() { s = openAt(t, s.address(), g.flags...) },
	})
	want(t, "the orders", statuses(t, g.rows, sale), "confirmed")
}

func TestAPlaceIsKeptWhileAShopperIsAwayInARealBrowser(t *testing.T) {
	t.Parallel()
	_, s := forShoppers(t)
	travel(t, s, "journeys/away", freshID()).arrives(nil)
}

func TestAWrongClockChangesNothingInARealBrowser(t *testing.T) {
	t.Parallel()
	_, s := forShoppers(t)
	travel(t, s, "journeys/clock", freshID()).arrives(nil)
}

func TestASlowNetworkIsEnoughInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/slow", sale).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "confirmed")
}

func TestAPlaceIsMissedAndGivenUpInARealBrowser(t *testing.T) {
	t.Parallel()
	_, s := forShoppers(t)
	travel(t, s, "journeys/missed", freshID()).arrives(nil)
}

func TestAUnitComesBackInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/soldout", sale).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "cancelled paid")
}

func TestASaleIsPausedAndClosedInARealBrowser(t *testing.T) {
	t.Parallel()
	_, s := forShoppers(t)
	travel(t, s, "journeys/paused", freshID()).arrives(nil)
}

func TestAShopFramesThePageInARealBrowser(t *testing.T) {
	t.Parallel()
	// The shop is of another site than the page: one is called localhost, the other by its number.
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><iframe width="900" height="700" src="%s"></iframe>`,
			html.EscapeString(r.URL.Query().Get("page")))
	}))
	defer shop.Close()
	address := strings.Replace(shop.URL, "127.0.0.1", "localhost", 1)
	g, s := forShoppers(t, "--frame-ancestors", address)
	closed := open(t, append(g.flags, "--no-worker")...)
	sale := freshID()
	travel(t, s, "journeys/frame", sale, "SHOP="+address, "CLOSED="+closed.url).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "confirmed")
}

func TestOnePlaceOnTwoDevicesInARealBrowser(t *testing.T) {
	t.Parallel()
	g, s := forShoppers(t)
	sale := freshID()
	travel(t, s, "journeys/share", sale).arrives(nil)
	want(t, "the orders", statuses(t, g.rows, sale), "confirmed")
}

func TestAShopperWhoLooksElsewhereIsCalledInARealBrowser(t *testing.T) {
	t.Parallel()
	_, s := forShoppers(t)
	travel(t, s, "journeys/call", freshID()).arrives(nil)
}
