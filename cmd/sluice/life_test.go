package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// heldSale is a sale without a line whose orders have to be paid within a while.
const heldSale = `opens_at: +0s
closes_at: +1h
hold: %s
line: { order: "off" }`

// buy grabs a unit and waits until its order is confirmed.
func (s *site) buy(sale, user string) (order string) {
	s.t.Helper()
	result, order := s.grab(sale, user)
	if result != "success" {
		s.t.Fatalf("%s grabs: %s", user, result)
	}
	eventually(s.t, "the order of "+user+" is confirmed", func() bool { return s.status(user, order) == "confirmed" })
	return order
}

// status is the status of an order as its owner sees it.
func (s *site) status(user, order string) string {
	s.t.Helper()
	status, _ := s.ask(http.MethodGet, "/orders/"+order, tokenOf(s.t, user), "").fields["status"].(string)
	return status
}

// act pays or cancels an order and returns how that is answered: the status of the order, or the code of the problem. Whoever has
// looked at the order more often than the limit of a user allows asks again.
func (s *site) act(user, order, action string) string {
	s.t.Helper()
	var answer reply
	eventually(s.t, user+" may ask again", func() bool {
		answer = s.ask(http.MethodPost, "/orders/"+order+"/"+action, tokenOf(s.t, user), "")
		return answer.status != http.StatusTooManyRequests
	})
	if status, ok := answer.fields["status"].(string); ok {
		return status
	}
	code, _ := answer.problem()
	return code
}

// event tells the site what became of a payment, signed with that secret, and returns the status of the answer.
func (s *site) event(secret, body string) int {
	s.t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/api/v1/webhooks/payment", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestOrdersArePaidCancelledAndBoughtAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	one, two := open(t, append(g.flags, "--no-worker")...), open(t, g.flags...)
	sale := freshID()
	one.apply(saleFile(t, sale, 2, fmt.Sprintf(heldSale, "1h")))
	left := func() int64 { _, left := one.view(sale); return left }
	stock := func() string {
		answer := one.ask(http.MethodGet, "/sales/"+sale, "", "")
		s, _ := answer.fields["stock"].(string)
		return s
	}

	ann, bob := one.buy(sale, "ann"), two.buy(sale, "bob")
	eventually(t, "everything is held", func() bool { return left() == 0 && stock() == "held" })
	want(t, "paying", one.act("ann", ann, "pay"), "paid")
	want(t, "paying again, elsewhere", two.act("ann", ann, "pay"), "paid")
	want(t, "cancelling what is paid", two.act("ann", ann, "cancel"), "conflict")
	want(t, "cancelling", one.act("bob", bob, "cancel"), "cancelled")
	want(t, "cancelling again", two.act("bob", bob, "cancel"), "cancelled")
	want(t, "paying what is cancelled", two.act("bob", bob, "pay"), "conflict")
	eventually(t, "the cancelled unit is back", func() bool { return left() == 1 })

	// The delayed retry of the old grab finds the old order and takes nothing; a new request buys again.
	if result, order := one.grab(sale, "bob"); result != "success" || order != bob || left() != 1 {
		t.Errorf("the late retry got %s %s, %d left", result, order, left())
	}
	var again string
	eventually(t, "the unit has rested and is bought again", func() bool {
		answer := two.ask(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "bob"), `{"request_id":"again"}`)
		order, _ := answer.fields["order"].(map[string]any)
		again, _ = order["id"].(string)
		return answer.fields["result"] == "success"
	})
	if again == bob {
		t.Fatal("the new order has the id of the old one")
	}
	eventually(t, "the new order is confirmed", func() bool { return one.status("bob", again) == "confirmed" })
	want(t, "paying the new order", one.act("bob", again, "pay"), "paid")
	eventually(t, "nothing can come back", func() bool { return stock() == "gone" })
	want(t, "units sold", one.audit(sale).sold(), 2)
}

func TestUnpaidOrdersExpireAndTheirUnitsAreSoldAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 1, fmt.Sprintf(heldSale, "3s")))
	began := time.Now()
	order := s.buy(sale, "ann")
	if result, _ := s.grab(sale, "bob"); result != "sold_out" {
		t.Errorf("bob was told %s", result)
	}
	eventually(t, "the order expires", func() bool { return s.status("ann", order) == "expired" })
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("it expired after %s already", took)
	}
	want(t, "paying too late", s.act("ann", order, "pay"), "conflict")
	eventually(t, "somebody else gets the unit", func() bool {
		answer := s.ask(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "bob"), `{"request_id":"later"}`)
		return answer.fields["result"] == "success"
	})
	want(t, "the late retry of the expired grab", func() string { result, id := s.grab(sale, "ann"); return fmt.Sprint(result, id == order) }(), "successtrue")
	var refunds int
	if err := g.rows.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM payments WHERE refund_due = 1").Scan(&refunds); err != nil || refunds != 1 {
		t.Errorf("%d refunds are due, %v", refunds, err)
	}
}

func TestAPaymentProviderPaysOnce(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	s := open(t, append(g.flags, "--webhook-secret", "the provider's secret")...)
	sale := freshID()
	s.apply(saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h")))
	order := s.buy(sale, "ann")
	want(t, "paying by oneself", s.act("ann", order, "pay"), "forbidden")
	body := fmt.Sprintf(`{"order":%q,"status":"paid","event_id":"e-1"}`, order)
	for _, step := range []struct {
		secret, body string
		code         int
		status       string
	}{
		{"somebody's secret", body, http.StatusUnauthorized, "confirmed"},
		{"the provider's secret", strings.Replace(body, "paid", "failed", 1), http.StatusOK, "confirmed"},
		{"the provider's secret", strings.Replace(body, "e-1", "e-2", 1), http.StatusOK, "paid"},
		{"the provider's secret", strings.Replace(body, "e-1", "e-2", 1), http.StatusOK, "paid"},
	} {
		code, status := s.event(step.secret, step.body), s.status("ann", order)
		if code != step.code || status != step.status {
			t.Errorf("%s: got %d and the order %s, want %d and %s", step.body, code, status, step.code, step.status)
		}
	}
}

func TestOrdersThatCannotBeWrittenAreLookedAfter(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	// The only worker comes later, so that an operator can spoil an order on its way.
	s := open(t, append(g.flags, "--no-worker")...)
	sale := freshID()
	s.apply(saleFile(t, sale, 3, fmt.Sprintf(heldSale, "1h")))
	_, ann := s.grab(sale, "ann")
	_, bob := s.grab(sale, "bob")
	// The database refuses every row of ann and bob.
	exec := func(query string) {
		t.Helper()
		if _, err := g.rows.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	exec("ALTER TABLE orders ADD CONSTRAINT spoiled CHECK (user_id NOT IN ('ann', 'bob') OR status = 'rejected')")
	_, cat := s.grab(sale, "cat")
	begin(t, append([]string{"worker", "--ops-listen", ""}, g.flags...)...)
	eventually(t, "the good order is confirmed", func() bool { return s.status("cat", cat) == "confirmed" })
	dead := func(args ...string) string {
		t.Helper()
		return succeed(t, append(append([]string{"dead"}, args...), g.flags...)...)
	}
	eventually(t, "the others are dead letters", func() bool {
		list := dead("list", "--json")
		return strings.Contains(list, ann) && strings.Contains(list, bob) && strings.Count(list, "spoiled") == 2
	})
	if shown := dead("show", ann); !strings.Contains(shown, `"user": "ann"`) || !strings.Contains(shown, `"request_id": "request-of-ann"`) {
		t.Errorf("shown: %s", shown)
	}
	if report := s.audit(sale); !report.Balanced {
		t.Errorf("dead letters are lost to the audit: %+v", report)
	}
	want(t, "dropping", dead("drop", ann), ann+" is dropped\n")
	want(t, "the status of the dropped order", s.status("ann", ann), "rejected")
	eventually(t, "the dropped unit is back", func() bool { _, left := s.view(sale); return left == 1 })
	exec("ALTER TABLE orders DROP CONSTRAINT spoiled")
	want(t, "retrying", dead("retry", "--all"), bob+" goes to the writers again\n")
	eventually(t, "the retried order is confirmed", func() bool { return s.status("bob", bob) == "confirmed" })
	want(t, "the list in the end", dead("list"), "there are no dead letters\n")
	code, _, said := command(t, append([]string{"dead", "retry", ann}, g.flags...)...)
	if code != exitFailed || !strings.Contains(said, "there is no dead letter") {
		t.Errorf("retrying what is not there: %d %s", code, said)
	}
	want(t, "units sold", s.audit(sale).sold(), 2)
}

func TestASaleIsPutRightAfterEverythingInRedisIsLost(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 30, fmt.Sprintf(heldSale, "1h")))
	orders := map[string]string{}
	for i := range 10 {
		user := fmt.Sprint("user-", i)
		orders[user] = s.buy(sale, user)
	}
	want(t, "cancelling", s.act("user-0", orders["user-0"], "cancel"), "cancelled")
	if out := succeed(t, "sale", "recover", sale, "--url", s.url); !strings.Contains(out, sale) {
		t.Errorf("recovering by hand says %s", out)
	}
	want(t, "units sold after recovering by hand", s.audit(sale).sold(), 9)

	g.flush()
	eventually(t, "selling goes on", func() bool {
		answer, err := s.try(http.MethodPost, "/sales/"+sale+"/grab", tokenOf(t, "late"), `{"request_id":"late"}`)
		return err == nil && answer.fields["result"] == "success"
	})
	for user, order := range orders {
		result, again := s.grab(sale, user)
		if result != "success" || again != order {
			t.Errorf("%s repeats the request and gets %s %s, not order %s", user, result, again, order)
		}
	}
	eventually(t, "the last order is confirmed", func() bool { return s.audit(sale).sold() == 10 })
	if _, left := s.view(sale); left != 20 {
		t.Errorf("%d units are left, want 20", left)
	}
	eventually(t, "both recoveries are counted", func() bool {
		metrics := s.metrics()
		return strings.Contains(metrics, fmt.Sprintf("sluice_recoveries_total{sale=%q,why=\"asked\"} 1", sale)) &&
			strings.Contains(metrics, fmt.Sprintf("sluice_recoveries_total{sale=%q,why=\"lost\"} 1", sale))
	})
}

// TestBooksThatAreBentAreMadeAgainFromTheRows does what docs/operate.md says about SluiceAuditImbalance.
func TestBooksThatAreBentAreMadeAgainFromTheRows(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	s := open(t, g.flags...)
	sale := freshID()
	s.apply(saleFile(t, sale, 5, fmt.Sprintf(heldSale, "1h")))
	ann, bob := s.buy(sale, "ann"), s.buy(sale, "bob")
	rdb := g.redis()
	defer rdb.Close()
	keys := "sluice:{" + sale + "}:"
	if err := rdb.HIncrBy(t.Context(), keys+"stock", "main", 2).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.rows.ExecContext(t.Context(), "DELETE FROM orders WHERE id = '"+bob+"'"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.rows.ExecContext(t.Context(), "UPDATE items SET sold = sold - 1 WHERE sale_id = '"+sale+"'"); err != nil {
		t.Fatal(err)
	}
	balanced := func() bool {
		answer := s.ask(http.MethodGet, "/admin/sales/"+sale+"/audit", e2eAdmin, "")
		return answer.fields["balanced"] == true
	}
	want(t, "whether the bent books add up", balanced(), false)
	eventually(t, "the sale is paused", func() bool {
		return s.ask(http.MethodGet, "/admin/sales/"+sale, e2eAdmin, "").fields["state"] == "paused"
	})
	names, err := rdb.Keys(t.Context(), keys+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Unlink(t.Context(), names...).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the books add up", balanced)
	succeed(t, "sale", "resume", sale, "--url", s.url)
	if result, order := s.grab(sale, "ann"); result != "success" || order != ann {
		t.Errorf("ann repeats the request and gets %s %s, not order %s", result, order, ann)
	}
	if answer := s.ask(http.MethodGet, "/orders/"+bob, tokenOf(t, "bob"), ""); answer.status != http.StatusNotFound {
		t.Errorf("bob asks for the order that is nowhere: %d %v", answer.status, answer.fields)
	}
	s.buy(sale, "cat")
	want(t, "units sold", s.audit(sale).sold(), 2)
}

func TestALineStandsAsBeforeAfterEverythingInRedisIsLost(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	one, two := open(t, g.flags...), open(t, append(g.flags, "--no-worker")...)
	sale := freshID()
	one.apply(saleFile(t, sale, 60, `opens_at: +1500ms
closes_at: +1h
hold: 0s
line: { order: fifo, rate: 20, ratio: 3, turn: 20s }`))
	crowds := []*throng{
		one.crowd(sale, 100, "--prefix", "one", "--ramp", "1s", "--grab-delay", "100ms", "--no-audit"),
		two.crowd(sale, 100, "--prefix", "two", "--ramp", "1s", "--grab-delay", "100ms", "--no-audit"),
	}
	eventually(t, "a third of the stock is sold", func() bool { _, left := one.view(sale); return left >= 0 && left <= 40 })
	// Nobody grabs while everything is lost, and what was grabbed is written: else it is told as forgotten, which is
	// another test's.
	succeed(t, "sale", "pause", sale, "--url", one.url)
	eventually(t, "all orders are written", func() bool {
		report := one.audit(sale)
		return report.InFlight == 0 && report.Outbox == 0
	})
	sold := one.audit(sale).sold()
	g.flush()
	eventually(t, "the sale is right again, and paused as before", func() bool {
		answer := one.ask(http.MethodGet, "/admin/sales/"+sale, e2eAdmin, "")
		return answer.fields["state"] == "paused" && answer.fields["epoch"] == 2.0
	})
	succeed(t, "sale", "resume", sale, "--url", one.url)
	var told, disappointed int64
	for _, crowd := range crowds {
		report := crowd.report()
		told += int64(report.ToldUnits)
		disappointed += report.Results["sold_out"]
		want(t, "shoppers who had to start again", report.Moved, int64(0))
	}
	want(t, "units that the crowds know of", told, int64(60))
	want(t, "shoppers who heard that it is sold out", disappointed, int64(140))
	g.wantBuyers(sale, 60)
	want(t, "units sold in the end", one.audit(sale).sold(), 60)
	if sold < 20 {
		t.Errorf("only %d units were sold before the loss", sold)
	}
}
