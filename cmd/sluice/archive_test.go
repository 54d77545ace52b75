package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func TestAnArchivedSaleIsOverEverywhereAndItsOrdersStay(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	one, two := open(t, g.flags...), open(t, append(g.flags, "--no-worker")...)
	sale := freshID()
	file := saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h"))
	one.apply(file)
	refused := func(because string) {
		t.Helper()
		code, _, said := command(t, "sale", "archive", sale, "--url", one.url)
		if code == exitOK || !strings.Contains(said, because) {
			t.Errorf("archive exits with %d and says %q, want it to say %q", code, said, because)
		}
	}
	ann, bob := one.buy(sale, "ann"), one.buy(sale, "bob")
	refused("it is open; it closes at")
	succeed(t, "sale", "close", sale, "--url", one.url)
	refused("2 orders are not paid; the last one expires at")
	want(t, "paying", one.act("ann", ann, "pay"), "paid")
	refused("1 order is not paid; the last one expires at")
	want(t, "cancelling", one.act("bob", bob, "cancel"), "cancelled")
	eventually(t, "it is archived", func() bool {
		code, out, _ := command(t, "sale", "archive", sale, "--url", one.url)
		return code == exitOK && strings.Contains(out, "archived")
	})
	succeed(t, "sale", "archive", sale, "--url", two.url) // again, elsewhere

	over := func(s *site) {
		t.Helper()
		eventually(t, "the node knows that it is over", func() bool {
			return s.ask(http.MethodPost, "/sales/"+sale+"/seat", tokenOf(t, "eve"), "").status == http.StatusNotFound
		})
		shown := s.ask(http.MethodGet, "/sales/"+sale, "", "")
		want(t, "the state that shoppers see", fmt.Sprintf("%d %v", shown.status, shown.fields["state"]), "200 closed")
		late := s.ask(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "eve"), "")
		want(t, "a late grab", fmt.Sprintf("%d %v %v", late.status, late.fields["result"], late.fields["state"]), "200 not_open closed")
		result, order := s.grab(sale, "ann")
		want(t, "a winner who asks again", result+" "+order, "success "+ann)
		mine := s.ask(http.MethodGet, "/orders?sale="+sale, tokenOf(t, "ann"), "")
		if mine.status != http.StatusOK || !strings.Contains(string(mine.body), ann) {
			t.Errorf("ann's orders: %d %s", mine.status, mine.body)
		}
		want(t, "ann's order", s.status("ann", ann), "paid")
		if listed := s.ask(http.MethodGet, "/sales", "", ""); strings.Contains(string(listed.body), sale) {
			t.Errorf("it is still listed: %s", listed.body)
		}
		found := s.ask(http.MethodGet, "/admin/sales/"+sale+"/orders", e2eAdmin, "")
		if found.status != http.StatusOK || !strings.Contains(string(found.body), bob) {
			t.Errorf("an operator finds %d %s", found.status, found.body)
		}
		for _, try := range []struct{ method, path, body string }{
			{http.MethodPut, "", "id: " + sale + "\nitems: [ { stock: 9 } ]\nopens_at: +1s\ncloses_at: +1h\n"},
			{http.MethodPut, "?dry_run=true", "id: " + sale + "\nitems: [ { stock: 9 } ]\nopens_at: +1s\ncloses_at: +1h\n"},
			{http.MethodPost, "/extend", `{"closes_at":"2099-01-01T00:00:00Z"}`},
			{http.MethodPost, "/stock", `{"total":9}`},
		} {
			answer := s.ask(try.method, "/admin/sales/"+sale+try.path, e2eAdmin, try.body)
			code, detail := answer.problem()
			if answer.status != http.StatusConflict || code != "conflict" || !strings.Contains(detail, "is archived and cannot be changed") {
				t.Errorf("%s %s: %d %s", try.method, try.path, answer.status, answer.body)
			}
		}
	}
	over(one)
	over(two)
	want(t, "units sold", one.audit(sale).sold(), 1)

	g.flush()
	again := freshID() // once this one can be sold, a sale that was to be brought back would be there too
	one.apply(saleFile(t, again, 5, fmt.Sprintf(heldSale, "1h")))
	one.buy(again, "ann")
	over(two)
	out := succeed(t, "sale", "list", "--archived", "--url", one.url)
	if !strings.Contains(out, sale) || strings.Contains(out, again) {
		t.Errorf("those that are archived: %s", out)
	}

	succeed(t, "sale", "archive", sale, "--purge-users", "--url", two.url)
	eventually(t, "the users are purged", func() bool {
		return strings.Contains(succeed(t, "sale", "show", sale, "--url", two.url), "its users were purged")
	})
	want(t, "units sold", one.audit(sale).sold(), 1)
	if mine := two.ask(http.MethodGet, "/orders?sale="+sale, tokenOf(t, "ann"), ""); strings.Contains(string(mine.body), ann) {
		t.Errorf("ann's order still names her: %s", mine.body)
	}
	log := one.ask(http.MethodGet, "/admin/audit-log?sale="+sale, e2eAdmin, "")
	if strings.Count(string(log.body), `"action":"archive"`) != 1 || strings.Count(string(log.body), `"action":"purge"`) != 1 {
		t.Errorf("the audit log: %s", log.body)
	}
}

// While a sale is taken out of Redis, nodes that still have its room are asked everything that shoppers ask.
func TestNoNodeTakesAnArchivedSaleForALostOne(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	flags := slices.Concat(g.flags, []string{"--limit-user", "0"})
	one, two := open(t, flags...), open(t, slices.Concat(flags, []string{"--no-worker"})...)
	sale, other := freshID(), freshID()
	for _, id := range []string{sale, other} {
		one.apply(saleFile(t, id, 5, fmt.Sprintf(heldSale, "1h")))
	}
	ann, kept := one.buy(sale, "ann"), one.buy(other, "ann")
	want(t, "paying", one.act("ann", ann, "pay"), "paid")
	pass, _ := one.ask(http.MethodPost, "/sales/"+sale+"/pass", tokenOf(t, "ann"), "").fields["pass"].(string)
	succeed(t, "sale", "close", sale, "--url", one.url)
	nodes := []*site{one, two}
	for _, node := range nodes {
		eventually(t, "the node knows that it is closed", func() bool {
			return node.ask(http.MethodGet, "/sales/"+sale, "", "").fields["state"] == "closed"
		})
		watching := node.connect(sale, "ann") // somebody is there when it ends
		want(t, "the first frame", next(t, watching)["type"], any("welcome"))
	}

	path := "/sales/" + sale
	questions := []struct {
		method, path, user, body string
		fine                     func(reply) bool
	}{
		{"GET", "/orders", "ann", "", func(r reply) bool {
			return r.status == 200 && strings.Contains(string(r.body), ann) && strings.Contains(string(r.body), kept)
		}},
		{"GET", "/orders?sale=" + sale, "ann", "", func(r reply) bool { return r.status == 200 && strings.Contains(string(r.body), ann) }},
		{"GET", "/orders/" + ann, "ann", "", func(r reply) bool { return r.status == 200 && r.fields["status"] == "paid" }},
		{"GET", "/orders/" + unknownOrder, "ann", "", func(r reply) bool { return r.status == 404 }},
		{"GET", path, "", "", func(r reply) bool { return r.status == 200 && r.fields["state"] == "closed" }},
		{"GET", "/sales", "", "", func(r reply) bool { return r.status == 200 && strings.Contains(string(r.body), other) }},
		{"POST", path + "/grab", "ann", `{"request_id":"request-of-ann"}`, func(r reply) bool { return r.status == 200 && r.fields["result"] == "success" }},
		{"POST", path + "/grab", "ann", `{"request_id":"another"}`, func(r reply) bool { return r.status == 200 && r.fields["result"] == "already" }},
		{"POST", "/seckill/" + sale, "eve", "", func(r reply) bool { return r.status == 200 && r.fields["state"] == "closed" }},
		{"POST", path + "/seat", "eve", "", func(r reply) bool { return r.status == 409 || r.status == 404 }},
		{"GET", path + "/seat", "ann", "", func(r reply) bool { return r.status == 200 || r.status == 404 }},
		{"DELETE", path + "/seat", "eve", "", func(r reply) bool { return r.status == 204 || r.status == 404 }},
		{"POST", path + "/pass", "ann", "", func(r reply) bool { return r.status == 200 || r.status == 404 }},
		{"GET", path + "/draw", "", "", func(r reply) bool { return r.status == 404 || r.status == 409 }},
	}
	over := make(chan struct{})
	var asking sync.WaitGroup
	for _, node := range nodes {
		for _, q := range questions {
			token := ""
			if q.user != "" {
				token = tokenOf(t, q.user)
			}
			asking.Go(func() {
				for wrong := 0; wrong == 0; {
					answer, err := node.try(q.method, q.path, token, q.body)
					if err != nil || !q.fine(answer) {
						t.Errorf("%s %s of %q: %d %s, %v", q.method, q.path, q.user, answer.status, answer.body, err)
						wrong++
					}
					select {
					case <-over:
						return
					default:
					}
				}
			})
		}
		asking.Go(func() {
			for open := true; open; {
				if status := node.authorizes(pass, sale); status != http.StatusNoContent && status != http.StatusForbidden {
					t.Errorf("a pass: %d", status)
					return
				}
				if frames, code := node.hears(sale, "ann"); code != 4404 && !strings.Contains(frames, ann) {
					t.Errorf("a socket: %s, closed with %d", frames, code)
					return
				}
				select {
				case <-over:
					open = false
				default:
				}
			}
		})
	}
	eventually(t, "it is archived", func() bool {
		code, _, _ := command(t, "sale", "archive", sale, "--url", one.url)
		return code == exitOK
	})
	for _, node := range nodes {
		eventually(t, "the node does not list it", func() bool {
			return !strings.Contains(string(node.ask(http.MethodGet, "/sales", "", "").body), sale)
		})
	}
	close(over)
	asking.Wait()
	for _, node := range nodes {
		log := node.err.String()
		if strings.Contains(log, "level=ERROR") || strings.Contains(log, "level=WARN") {
			t.Errorf("%s logs trouble:\n%s", node.url, log)
		}
	}
}

// unknownOrder is the id of an order that nobody has.
const unknownOrder = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"

// hears is what a shopper who connects is sent as far as the first state, and by which code that ends before; 0 = it does not.
func (s *site) hears(sale, user string) (frames string, code int) {
	ws := s.connect(sale, user)
	defer ws.Close()
	_ = ws.SetReadDeadline(time.Now().Add(longest))
	for range 2 {
		_, frame, err := ws.ReadMessage()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return frames, closed.Code
		}
		frames += string(frame)
	}
	return frames, 0
}
