package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/queue"
)

// till is a cashier that writes down what it was asked for.
type till struct {
	mu     sync.Mutex
	asked  []string
	answer func(order string) (queue.Order, error)
}

func (c *till) note(what, order string) (queue.Order, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, what+" "+order)
	return c.answer(order)
}

func (c *till) Pay(_ context.Context, order string) (queue.Order, error) { return c.note("pay", order) }
func (c *till) Cancel(_ context.Context, order string) (queue.Order, error) {
	return c.note("cancel", order)
}
func (c *till) Payment(_ context.Context, event, order, status string) (queue.Order, error) {
	return c.note(event+" "+status, order)
}

// tillBench is ordersBench with a cashier, whose orders are paid unless the test says otherwise.
func tillBench(t *testing.T, webhook ...string) (*bench, *till) {
	b := ordersBench(t)
	c := &till{answer: func(order string) (queue.Order, error) {
		return queue.Order{ID: order, Sale: "solo", Item: "main", Qty: 1, Status: queue.Paid}, nil
	}}
	b.server.opts.Cashier = c
	settings := b.server.current().Settings
	for _, secret := range webhook {
		settings.WebhookSecrets = append(settings.WebhookSecrets, []byte(secret))
	}
	must[func()](t)(b.server.Prepare(settings))()
	return b, c
}

func TestOnlyItsOwnerPaysOrCancelsAnOrder(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"pay", "cancel"} {
		b, c := tillBench(t)
		path := func(order string) string { return "/api/v1/orders/" + order + "/" + action }
		b.mustFail(b.send(http.MethodPost, path(bobsPaid), "", b.as("ann")...), http.StatusNotFound, queue.NoSuchOrder)
		b.mustFail(b.send(http.MethodPost, path(nobodys), "", b.as("ann")...), http.StatusNotFound, queue.NoSuchOrder)
		b.mustFail(b.send(http.MethodPost, path(bobsPaid), ""), http.StatusUnauthorized, queue.Unauthenticated)
		if len(c.asked) != 0 {
			t.Fatalf("the cashier was asked to %v", c.asked)
		}
		a := b.send(http.MethodPost, path(bobsPaid), "", b.as("bob")...)
		if a.status != http.StatusOK || a.field(t, "status") != "paid" || !slices.Equal(c.asked, []string{action + " " + bobsPaid}) {
			t.Errorf("got %d %s after %v", a.status, a.body, c.asked)
		}
	}
}

func TestAnOrderWithoutARowCannotBeChangedYet(t *testing.T) {
	t.Parallel()
	b, c := tillBench(t)
	for _, action := range []string{"pay", "cancel"} {
		a := b.send(http.MethodPost, "/api/v1/orders/"+annsMark+"/"+action, "", b.as("ann")...)
		b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: nothing says when to try again", action)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("the cashier was asked to %v", c.asked)
	}
}

func TestAConflictOfTheCashierIsOne(t *testing.T) {
	t.Parallel()
	b, c := tillBench(t)
	c.answer = func(order string) (queue.Order, error) {
		return queue.Order{ID: order, Status: queue.Expired}, &queue.Error{Code: queue.Conflict, Message: "too late"}
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/orders/"+bobsPaid+"/pay", "", b.as("bob")...), http.StatusConflict, queue.Conflict)
}

func TestPaymentEventsMustBeSigned(t *testing.T) {
	t.Parallel()
	b, c := tillBench(t, "new secret", "old secret")
	sign := func(secret, body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(body))
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	body := fmt.Sprintf(`{"order":%q,"status":"paid","event_id":"e1","amount":5}`, bobsPaid)
	for name, signature := range map[string]string{
		"none":            "",
		"without a kind":  strings.TrimPrefix(sign("new secret", body), "sha256="),
		"of another body": sign("new secret", body+" "),
		"of a stranger":   sign("secret", body),
		"no hex":          "sha256=zz",
		"empty":           "sha256=",
	} {
		a := b.send(http.MethodPost, "/api/v1/webhooks/payment", body, headerSignature, signature)
		if a.status != http.StatusUnauthorized {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
	if len(c.asked) != 0 {
		t.Fatalf("the cashier was told %v", c.asked)
	}
	for _, secret := range []string{"new secret", "old secret"} {
		a := b.send(http.MethodPost, "/api/v1/webhooks/payment", body, headerSignature, sign(secret, body))
		if a.status != http.StatusOK || a.field(t, "status") != "paid" {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if want := []string{"event-e1 paid " + bobsPaid, "event-e1 paid " + bobsPaid}; !slices.Equal(c.asked, want) {
		t.Errorf("the cashier was told %v", c.asked)
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		code   queue.Code
	}{
		"no JSON":       {"paid", http.StatusBadRequest, queue.BadRequest},
		"no status":     {fmt.Sprintf(`{"order":%q,"event_id":"e"}`, bobsPaid), http.StatusUnprocessableEntity, queue.Invalid},
		"other status":  {fmt.Sprintf(`{"order":%q,"status":"Paid","event_id":"e"}`, bobsPaid), http.StatusUnprocessableEntity, queue.Invalid},
		"no event":      {fmt.Sprintf(`{"order":%q,"status":"paid"}`, bobsPaid), http.StatusUnprocessableEntity, queue.Invalid},
		"a long event":  {fmt.Sprintf(`{"order":%q,"status":"paid","event_id":%q}`, bobsPaid, strings.Repeat("e", 101)), http.StatusUnprocessableEntity, queue.Invalid},
		"no real order": {`{"order":"1","status":"paid","event_id":"e"}`, http.StatusNotFound, queue.NoSuchOrder},
	} {
		t.Run(name, func(t *testing.T) {
			b.mustFail(b.send(http.MethodPost, "/api/v1/webhooks/payment", tc.body, headerSignature, sign("new secret", tc.body)), tc.status, tc.code)
		})
	}
	// An order that has no row may be about to get one.
	c.answer = func(string) (queue.Order, error) {
		return queue.Order{}, &queue.Error{Code: queue.NoSuchOrder, Message: "there is none"}
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/webhooks/payment", body, headerSignature, sign("new secret", body)), http.StatusServiceUnavailable, queue.Unavailable)
	// Where a provider takes the money, nobody else says that it is there.
	b.mustFail(b.send(http.MethodPost, "/api/v1/orders/"+bobsPaid+"/pay", "", b.as("bob")...), http.StatusForbidden, queue.Forbidden)
}

func TestWithoutAWebhookSecretNoEventCounts(t *testing.T) {
	t.Parallel()
	b, _ := tillBench(t)
	b.mustFail(b.send(http.MethodPost, "/api/v1/webhooks/payment", "{}", headerSignature, "sha256=00"), http.StatusForbidden, queue.Forbidden)
}
