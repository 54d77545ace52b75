package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"sluice/queue"
)

// admits asks a node about a pass, as a proxy does.
func (n *node) admits(pass string) int {
	n.Helper()
	req := must[*http.Request](n.T)(http.NewRequestWithContext(n.Context(), http.MethodGet, n.url+"/api/v1/auth?sale="+n.sale, nil))
	req.Header.Set("X-Sluice-Pass", pass)
	resp := must[*http.Response](n.T)(http.DefaultClient.Do(req))
	resp.Body.Close()
	return resp.StatusCode
}

// renew asks a node for the shopper's pass.
func (s *shopper) renew(n *node) string {
	s.Helper()
	req := must[*http.Request](s.T)(http.NewRequestWithContext(s.Context(), http.MethodPost, n.url+"/api/v1/sales/"+s.sale+"/pass", nil))
	req.Header.Set("Authorization", "Bearer "+s.token)
	resp := must[*http.Response](s.T)(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	var answer passAnswer
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Pass == "" {
		s.Fatalf("no pass for %s: %d %v", s.user, resp.StatusCode, err)
	}
	return answer.Pass
}

// passIn is what the pass in a frame says; there must be one.
func (n *node) passIn(f frame) passClaims {
	n.Helper()
	claims, err := n.server.passes.verify(f.Pass, n.sale)
	if err != nil {
		n.Fatalf("no pass in %s: %v", f.text, err)
	}
	return claims
}

func TestTurnSuccessAndStateCarryAPassWhichAnyNodeTakesUntilTheOrderEnds(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`, `hold: 5m`))
	ann := f.shopper("ann")
	tab, welcome, turn := ann.called(f.main)
	second, _, same := ann.resume(f.main)
	passes := []string{turn.Pass, same.Pass}
	for _, turn := range []frame{turn, same} {
		if got := f.main.passIn(turn); got.Subject != "ann" || got.Seat != welcome.Number || got.Order != "" || got.Ends != turn.Until/1000 {
			t.Errorf("the pass of the turn is %+v, in %s", got, turn.text)
		}
	}
	tab.grab("r")
	success := tab.await("success")
	order := success.order(t)
	if got := f.main.passIn(success); got.Subject != "ann" || got.Seat != welcome.Number || got.Order != order.ID || got.Ends != order.PayBy/1000 {
		t.Errorf("the pass of the order is %+v, in %s", got, success.text)
	}
	if news := second.await("order"); news.Pass != "" {
		t.Errorf("news of an order carry a pass: %s", news.text)
	}
	_, _, state := ann.resume(f.main)
	if got := f.main.passIn(state); state.Type != "order" || got.Order != order.ID {
		t.Errorf("the pass in the state is %+v, in %s", got, state.text)
	}
	tab.grab("r2")
	if already := tab.await("already"); already.Pass != "" {
		t.Errorf("got %s", already.text)
	}
	passes = append(passes, success.Pass, state.Pass)
	other := f.node("other")
	for _, n := range []*node{f.main, other} {
		for _, pass := range passes {
			if got := n.admits(pass); got != http.StatusNoContent {
				t.Errorf("got %d for %s", got, pass)
			}
		}
	}
	if _, err := f.line.Release(t.Context(), f.sale, []queue.Order{f.rowOf(order, "ann", queue.Cancelled)}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*node{f.main, other} {
		for _, pass := range passes {
			eventually(t, "the pass is refused", func() bool { return n.admits(pass) == http.StatusForbidden })
		}
	}
	tab.await("order")
	tab.grab("r")
	if late := tab.await("success"); late.Pass != "" {
		t.Errorf("an order that has ended has a pass: %s", late.text)
	}
}

func TestATurnThatMovesCarriesANewerPass(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(5, `line: { order: fifo }`))
	tab, _, turn := f.shopper("ann").called(f.main)
	must[queue.Sale](t)(f.line.Pause(t.Context(), f.sale))
	tab.await("paused")
	if got := f.main.admits(turn.Pass); got != http.StatusNoContent {
		t.Errorf("in a pause: got %d", got)
	}
	must[queue.Sale](t)(f.line.Resume(t.Context(), f.sale))
	later := tab.await("turn")
	if got := f.main.passIn(later); later.Pass == turn.Pass || got.Ends != later.Until/1000 {
		t.Errorf("after a pause: got %+v in %s", got, later.text)
	}
	tab.say(`{"type":"leave"}`)
	tab.ends()
	eventually(t, "who has left is refused", func() bool { return f.main.admits(later.Pass) == http.StatusForbidden })
}

func TestWithoutALineWhoAsksHasAPassWhileThereIsSomethingToGrab(t *testing.T) {
	t.Parallel()
	f := newFair(t, saleOf(1, `line: { order: off }`))
	ann := f.shopper("ann")
	_, _, turn := ann.enter(f.main)
	buyer, _, _ := f.shopper("bob").enter(f.main)
	if turn.Type != "turn" || turn.Pass != "" {
		t.Errorf("unasked came %s", turn.text)
	}
	pass := ann.renew(f.main)
	got, err := f.main.server.passes.verify(pass, f.sale)
	if err != nil || got.Subject != "ann" || got.Seat != 0 || got.Ends-got.IssuedAt != int64(passLife.Seconds()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := f.main.admits(pass); got != http.StatusNoContent {
		t.Errorf("got %d", got)
	}
	buyer.grab("r")
	success := buyer.await("success")
	eventually(t, "who got nothing is refused", func() bool { return f.main.admits(pass) == http.StatusForbidden })
	if got := f.main.admits(success.Pass); got != http.StatusNoContent {
		t.Errorf("the buyer: got %d", got)
	}
}
