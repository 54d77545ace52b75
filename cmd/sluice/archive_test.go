package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
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
