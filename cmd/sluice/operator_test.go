package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// liveFrame is what these tests look at of a frame for operators.
type liveFrame struct {
	Node   string
	Line   *struct{ Waiting int64 }
	Orders struct{ Taken, Written, Outbox, Broker, Dead *int64 }
	Audit  *struct {
		Balanced bool
		Problems []string
	}
	Nodes []struct {
		Node        string
		Connections int
		Grabs       map[string]int64
	}
	Troubles []string
}

// watch opens the live stream of a sale and returns what reads its next frame; false means that the stream has ended.
func (s *site) watch(sale string) (next func() (liveFrame, bool)) {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/admin/sales/"+sale+"/live", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+e2eAdmin)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { stop(); resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("watch %s: %s", sale, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	return func() (f liveFrame, ok bool) {
		s.t.Helper()
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), "data: "); found {
				if err := json.Unmarshal([]byte(text), &f); err != nil {
					s.t.Fatalf("understand a frame: %v\n%s", err, text)
				}
				return f, true
			}
		}
		return f, false
	}
}

// seen reads frames up to one that is as wanted.
func seen(t *testing.T, next func() (liveFrame, bool), what string, wanted func(liveFrame) bool) (f liveFrame) {
	t.Helper()
	eventually(t, what, func() bool {
		var ok bool
		if f, ok = next(); !ok {
			t.Fatalf("the stream ended before this was so: %s", what)
		}
		return wanted(f)
	})
	return f
}

func TestAnOperatorWatchesASaleOnAllNodes(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	one := open(t, append(g.flags, "--broker-ui-url", "https://rabbit.example:15672", "--limit-node", "50000/s")...)
	two := open(t, append(g.flags, "--no-worker", "--webhook-secret", "hook")...)
	sale := freshID()
	file := saleFile(t, sale, 20, running)
	one.apply(file)
	eventually(t, "the second server knows the sale", func() bool {
		return two.ask(http.MethodGet, "/sales/"+sale, "", "").status == http.StatusOK
	})

	about := one.ask(http.MethodGet, "/admin/about", e2eAdmin, "").fields
	want(t, "the broker's page", about["broker_ui_url"], any("https://rabbit.example:15672"))
	want(t, "how orders are paid", about["payment"], any("demo"))
	want(t, "the limits", fmt.Sprint(about["limits"]), "map[address: node:50000/s user:20/s]")
	if version, _ := about["version"].(string); !strings.Contains(version, "go1.") || strings.HasPrefix(version, "sluice") {
		t.Errorf("the version is %q", version)
	}
	other := two.ask(http.MethodGet, "/admin/about", e2eAdmin, "").fields
	want(t, "how orders are paid elsewhere", other["payment"], any("provider"))
	if _, there := other["broker_ui_url"]; there {
		t.Errorf("a page of the broker out of nowhere: %v", other)
	}

	north, south := one.watch(sale), two.watch(sale)
	first, _ := north()
	if first.Node != about["node"] {
		t.Errorf("the first frame is of %q, the server is %v", first.Node, about["node"])
	}
	for i := range 5 {
		site := []*site{one, two}[i%2]
		if result, _ := site.grab(sale, fmt.Sprint("user-", i)); result != "success" {
			t.Fatalf("user %d: %s", i, result)
		}
	}
	for _, next := range []func() (liveFrame, bool){north, south} {
		shown := seen(t, next, "all orders are written and the audit holds", func(f liveFrame) bool {
			o := f.Orders
			return len(f.Troubles) == 0 && o.Taken != nil && *o.Taken == 5 && *o.Written == 5 && *o.Outbox == 0 && *o.Broker == 0 &&
				f.Audit != nil && f.Audit.Balanced
		})
		grabs := map[string]int64{}
		for _, node := range shown.Nodes {
			grabs[node.Node] = node.Grabs["success"]
		}
		if len(grabs) != 2 || grabs[fmt.Sprint(about["node"])] != 3 || grabs[fmt.Sprint(other["node"])] != 2 || *shown.Orders.Dead != 0 {
			t.Errorf("seen on %s: %+v", shown.Node, shown.Nodes)
		}
	}

	// A server that ends in order sends who watches elsewhere, and is no node any more.
	_ = two.cmd.Process.Signal(syscall.SIGTERM)
	for ok := true; ok; {
		_, ok = south()
	}
	want(t, "exit code", two.wait(), exitOK)
	seen(t, north, "the second server is gone", func(f liveFrame) bool { return len(f.Nodes) == 1 })
}

func TestAnOperatorLooksThroughOrdersAndChanges(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h")))
	ann := s.buy(sale, "=ann")
	bob := s.buy(sale, "bob")
	want(t, "paying", s.act("bob", bob, "pay"), "paid")

	// More than are read at once, as they lie there after a large sale.
	const many = 2500
	var rows []string
	for i := range many {
		rows = append(rows, fmt.Sprintf("('00000000-0000-7000-8000-%012x', '%s', 'main', 'crowd-%d', 1, 'cancelled', NULL, 'r', %d, 0, 0, 0)", i, sale, i, 1000+i))
	}
	insert := "INSERT INTO orders (id, sale_id, item_id, user_id, qty, status, live, request_id, created_at, expires_at, paid_at, updated_at) VALUES "
	if _, err := g.rows.ExecContext(t.Context(), insert+strings.Join(rows, ", ")); err != nil {
		t.Fatal(err)
	}
	find := func(query string) (found []string, next string) {
		t.Helper()
		answer := s.ask(http.MethodGet, "/admin/sales/"+sale+"/orders"+query, e2eAdmin, "")
		if answer.status != http.StatusOK {
			t.Fatalf("find %s: %d %s", query, answer.status, answer.body)
		}
		for _, order := range answer.fields["orders"].([]any) {
			found = append(found, order.(map[string]any)["id"].(string))
		}
		return found, answer.fields["next"].(string)
	}
	newest, next := find("?limit=2")
	want(t, "the newest", fmt.Sprint(newest), fmt.Sprint([]string{bob, ann}))
	want(t, "where the next page begins", next, ann)
	count := 0
	for next := ""; ; {
		var page []string
		page, next = find("?status=cancelled&q=crowd-1&limit=200&before=" + next)
		if count += len(page); next == "" {
			break
		}
	}
	want(t, "cancelled orders of users that begin with crowd-1", count, 1111)
	found, _ := find("?q=%3Dann")
	want(t, "who is found", fmt.Sprint(found), fmt.Sprint([]string{ann}))
	found, _ = find("?q=" + bob)
	want(t, "which order is found", fmt.Sprint(found), fmt.Sprint([]string{bob}))
	found, _ = find("?q=BOB")
	want(t, "who is found in capitals", len(found), 0)

	answer := s.ask(http.MethodGet, "/admin/sales/"+sale+"/orders.csv", e2eAdmin, "")
	records, err := csv.NewReader(strings.NewReader(string(answer.body))).ReadAll()
	if err != nil || len(records) != 1+many+2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for i := range many {
		if records[1+i][3] != fmt.Sprint("crowd-", i) {
			t.Fatalf("record %d is %q", i, records[1+i])
		}
	}
	want(t, "ann's record", fmt.Sprint(records[many+1][:4]), fmt.Sprint([]string{ann, sale, "main", "'=ann"}))
	want(t, "the status of bob's", records[many+2][5], "paid")

	file := fmt.Sprintf(`{"id":%q,"items":[{"id":"main","stock":%%d}],"opens_at":"+0s","closes_at":"+1h","hold":"1h","line":{"order":"off"}}`, sale)
	eventually(t, "three are left", func() bool { _, left := s.view(sale); return left == 3 })
	dry := s.ask(http.MethodPut, "/admin/sales/"+sale+"?dry_run=true", e2eAdmin, fmt.Sprintf(file, 9))
	if dry.status != http.StatusOK || !strings.Contains(string(dry.body), `"stock":9`) || !strings.Contains(string(dry.body), `"left":7`) {
		t.Errorf("the dry run: %d %s", dry.status, dry.body)
	}
	if dry = s.ask(http.MethodPut, "/admin/sales/"+sale+"?dry_run=true", e2eAdmin, fmt.Sprintf(file, 1)); dry.status != http.StatusConflict {
		t.Errorf("a dry run below what was sold: %d %s", dry.status, dry.body)
	}
	succeed(t, "sale", "stock", sale, "--total", "8", "--url", s.url)
	succeed(t, "sale", "pause", sale, "--url", s.url)
	log := s.ask(http.MethodGet, "/admin/audit-log?limit=2&sale="+sale, e2eAdmin, "").fields
	var actions []string
	for _, entry := range log["entries"].([]any) {
		e := entry.(map[string]any)
		if who, _ := e["who"].(string); !strings.HasPrefix(who, "admin from ") || e["sale"] != sale || e["before"] == nil || e["after"] == nil {
			t.Errorf("got %v", e)
		}
		actions = append(actions, e["action"].(string))
	}
	want(t, "the newest changes", strings.Join(actions, " "), "pause stock")
	rest := s.ask(http.MethodGet, fmt.Sprintf("/admin/audit-log?sale=%s&before=%.0f", sale, log["next"]), e2eAdmin, "").fields
	if entries := rest["entries"].([]any); len(entries) != 1 || entries[0].(map[string]any)["before"] != nil || rest["next"] != 0.0 {
		t.Errorf("the rest is %v", rest)
	}
}
