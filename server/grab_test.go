package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice/queue"
)

const anOrder = "01938f3e-7b2a-7c4d-8e5f-0123456789ab"

func TestAGrabIsAnsweredAsTheContractSays(t *testing.T) {
	t.Parallel()
	order := &queue.Order{
		ID: anOrder, Sale: "phone-x", Item: "black", User: "ann", Qty: 1, Status: queue.Reserved,
		CreatedAt: testNow().UnixMilli(), PayBy: testNow().UnixMilli() + 900_000,
	}
	cancelled := *order
	cancelled.Status = queue.Cancelled
	wire := map[string]any{
		"id": anOrder, "sale": "phone-x", "item": "black", "qty": 1.0, "status": "reserved",
		"created_at": float64(order.CreatedAt), "pay_by": float64(order.PayBy),
	}
	for name, tc := range map[string]struct {
		grabbed queue.Grabbed
		want    map[string]any // without msg
		msg     string
	}{
		"success": {queue.Grabbed{Result: queue.Success, Order: order, Left: 9},
			map[string]any{"code": 0.0, "result": "success", "order": wire}, "You got it."},
		"an order that does not stand any more": {queue.Grabbed{Result: queue.Success, Order: &cancelled},
			map[string]any{"code": 0.0, "result": "success", "order": map[string]any{
				"id": anOrder, "sale": "phone-x", "item": "black", "qty": 1.0, "status": "cancelled",
				"created_at": float64(order.CreatedAt), "pay_by": float64(order.PayBy),
			}}, "You got it earlier; that order no longer stands."},
		"already": {queue.Grabbed{Result: queue.Already, Order: order},
			map[string]any{"code": -1.0, "result": "already", "order": wire}, "You already have an order in this sale."},
		"sold out, held": {queue.Grabbed{Result: queue.SoldOut, Stock: queue.Held},
			map[string]any{"code": -2.0, "result": "sold_out", "stock": "held"}, "None left right now; unpaid orders may give some back."},
		"sold out, gone": {queue.Grabbed{Result: queue.SoldOut, Stock: queue.Gone},
			map[string]any{"code": -2.0, "result": "sold_out", "stock": "gone"}, "Sold out."},
		"fewer left than wanted": {queue.Grabbed{Result: queue.SoldOut, Stock: queue.Available, Left: 1},
			map[string]any{"code": -2.0, "result": "sold_out", "stock": "available", "left": 1.0}, "Only 1 left."},
		"no turn": {queue.Grabbed{Result: queue.NoTurn, State: queue.Open},
			map[string]any{"code": -3.0, "result": "no_turn"}, "It is not your turn: you have not been called yet, or your turn is over."},
		"scheduled": {queue.Grabbed{Result: queue.NotOpen, State: queue.Scheduled},
			map[string]any{"code": -4.0, "result": "not_open", "state": "scheduled"}, "The sale has not opened yet."},
		"paused": {queue.Grabbed{Result: queue.NotOpen, State: queue.Paused},
			map[string]any{"code": -4.0, "result": "not_open", "state": "paused"}, "The sale is paused; nobody loses a turn."},
		"closed": {queue.Grabbed{Result: queue.NotOpen, State: queue.Closed},
			map[string]any{"code": -4.0, "result": "not_open", "state": "closed"}, "The sale is over."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return tc.grabbed, nil }
			for _, path := range []string{"/api/v1/sales/phone-x/grab", "/api/v1/seckill/phone-x"} {
				a := b.send(http.MethodPost, path, `{"item":"black"}`, b.as("ann")...)
				var got map[string]any
				if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK {
					t.Fatalf("got %d %s", a.status, a.body)
				}
				if got["msg"] != tc.msg {
					t.Errorf("says %q, want %q", got["msg"], tc.msg)
				}
				delete(got, "msg")
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("the answer differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestTheResultIsToldInTheLanguageAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{Result: queue.SoldOut, Stock: queue.Gone}, nil
	}
	a := b.send(http.MethodPost, "/api/v1/seckill/solo", "", append(b.as("ann"), "Accept-Language", "zh-CN,zh;q=0.9")...)
	if got := a.field(t, "msg"); got != "已售罄。" {
		t.Errorf("got %v", got)
	}
}

func TestAGrabReachesTheLineAsItWasMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sale, body string
		want       queue.GrabRequest
	}{
		"everything given": {"phone-x", `{"item":"white","qty":2,"request_id":"r 1"}`,
			queue.GrabRequest{Sale: "phone-x", User: "ann", Address: "192.0.2.1", Item: "white", Qty: 2, RequestID: "r 1"}},
		"qty left out": {"phone-x", `{"item":"white","request_id":"r"}`,
			queue.GrabRequest{Sale: "phone-x", User: "ann", Address: "192.0.2.1", Item: "white", Qty: 1, RequestID: "r"}},
		"no body, one item": {"solo", "",
			queue.GrabRequest{Sale: "solo", User: "ann", Address: "192.0.2.1", Item: queue.MainItem, Qty: 1}},
		"an empty object, one item": {"solo", " {} ",
			queue.GrabRequest{Sale: "solo", User: "ann", Address: "192.0.2.1", Item: queue.MainItem, Qty: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			var got []queue.GrabRequest
			b.line.grab = func(req queue.GrabRequest) (queue.Grabbed, error) {
				got = append(got, req)
				return queue.Grabbed{Result: queue.NoTurn}, nil
			}
			for range 2 {
				if a := b.send(http.MethodPost, "/api/v1/seckill/"+tc.sale, tc.body, b.as("ann")...); a.status != http.StatusOK {
					t.Fatalf("got %d %s", a.status, a.body)
				}
			}
			if tc.want.RequestID == "" {
				if got[0].RequestID == got[1].RequestID || !validRequestID(got[0].RequestID) {
					t.Errorf("request ids %q and %q", got[0].RequestID, got[1].RequestID)
				}
				got[0].RequestID = ""
			}
			if got[0].NewOrderID == nil {
				t.Error("nobody makes the id of the order")
			}
			got[0].NewOrderID = nil
			if diff := cmp.Diff(tc.want, got[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGrabThatMakesNoSenseIsRefusedBeforeTheLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sale, body string
		status     int
		code       queue.Code
		says       string
	}{
		"no item where there are two":  {"phone-x", `{}`, 422, queue.Invalid, "say which item"},
		"an unknown item":              {"phone-x", `{"item":"red"}`, 404, queue.NoSuchItem, `"red"`},
		"qty 0":                        {"phone-x", `{"item":"black","qty":0}`, 422, queue.Invalid, "between 1 and 2"},
		"qty -1":                       {"phone-x", `{"item":"black","qty":-1}`, 422, queue.Invalid, "between 1 and 2"},
		"qty above the limit":          {"phone-x", `{"item":"black","qty":3}`, 422, queue.Invalid, "between 1 and 2"},
		"qty in quotes":                {"phone-x", `{"item":"black","qty":"1"}`, 400, queue.BadRequest, `"qty" must be a whole number`},
		"qty 1.5":                      {"phone-x", `{"item":"black","qty":1.5}`, 400, queue.BadRequest, `"qty" must be a whole number`},
		"qty beyond any number":        {"phone-x", `{"item":"black","qty":99999999999999999999}`, 400, queue.BadRequest, `"qty" must be a whole number`},
		"item as a number":             {"phone-x", `{"item":1}`, 400, queue.BadRequest, `"item" must be a string`},
		"an unknown field":             {"phone-x", `{"item":"black","colour":"red"}`, 400, queue.BadRequest, `"colour"`},
		"an array":                     {"solo", `[]`, 400, queue.BadRequest, "JSON object"},
		"null":                         {"solo", `null`, 400, queue.BadRequest, "JSON object"},
		"two objects":                  {"solo", `{}{}`, 400, queue.BadRequest, "nothing after it"},
		"an object and a bracket":      {"solo", `{}]`, 400, queue.BadRequest, "nothing after it"},
		"no JSON":                      {"solo", `{qty:1}`, 400, queue.BadRequest, "no JSON"},
		"half an object":               {"solo", `{"qty":1`, 400, queue.BadRequest, "ends too early"},
		"a long request id":            {"solo", `{"request_id":"` + strings.Repeat("a", 65) + `"}`, 422, queue.Invalid, "1 to 64"},
		"a request id with a line end": {"solo", `{"request_id":"a\nb"}`, 422, queue.Invalid, "printable"},
		"a body of 64 KiB and more":    {"solo", `{"request_id":"` + strings.Repeat("a", maxBody) + `"}`, 413, tooLarge, "65536 bytes"},
		"an unknown sale":              {"nowhere", `{}`, 404, queue.NoSuchSale, ""},
		"a sale id which cannot be":    {"No_Way", `{}`, 404, queue.NoSuchSale, `"No_Way"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.line.grab = func(req queue.GrabRequest) (queue.Grabbed, error) {
				t.Errorf("the line was asked for %v", req)
				return queue.Grabbed{}, nil
			}
			a := b.send(http.MethodPost, "/api/v1/sales/"+tc.sale+"/grab", tc.body, b.as("ann")...)
			b.mustFail(a, tc.status, tc.code)
			if detail, _ := a.field(t, "detail").(string); !strings.Contains(detail, tc.says) {
				t.Errorf("says %q, want it to say %q", detail, tc.says)
			}
		})
	}
}

func TestABodyOfAnotherTypeIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return queue.Grabbed{Result: queue.NoTurn}, nil }
	for kind, ok := range map[string]bool{
		"application/json":                  true,
		"application/json; charset=utf-8":   true,
		"APPLICATION/JSON":                  true,
		"":                                  true,
		"text/plain":                        false,
		"application/x-www-form-urlencoded": false,
		"application/jsonx":                 false,
		";":                                 false,
	} {
		a := b.send(http.MethodPost, "/api/v1/seckill/solo", `{}`, append(b.as("ann"), "Content-Type", kind)...)
		if !ok {
			b.mustFail(a, http.StatusUnsupportedMediaType, unsupportedMedia)
		} else if a.status != http.StatusOK {
			t.Errorf("%q: got %d %s", kind, a.status, a.body)
		}
	}
}

func TestNobodyGrabsWithoutProvingWhoTheyAre(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, header := range map[string][]string{
		"nothing":                  {},
		"X-User-Id alone":          {"X-User-Id", "ann"},
		"X-Token alone":            {"X-Token", MintHMAC(testSecret(), "ann", testNow().AddDate(0, 0, 1))},
		"the admin token":          b.asAdmin(),
		"a token without Bearer":   {"Authorization", strings.TrimPrefix(b.as("ann")[1], "Bearer ")},
		"another scheme":           {"Authorization", strings.Replace(b.as("ann")[1], "Bearer", "Basic", 1)},
		"a user id beside a token": {"Authorization", "Bearer x", "X-User-Id", "ann"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range []struct{ method, path string }{
				{http.MethodPost, "/api/v1/sales/solo/grab"},
				{http.MethodPost, "/api/v1/seckill/solo"},
				{http.MethodPost, "/api/v1/sales/solo/seat"},
				{http.MethodGet, "/api/v1/sales/solo/seat"},
				{http.MethodDelete, "/api/v1/sales/solo/seat"},
				{http.MethodGet, "/api/v1/orders"},
				{http.MethodGet, "/api/v1/orders/" + anOrder},
			} {
				a := b.send(call.method, call.path, "", header...)
				b.mustFail(a, http.StatusUnauthorized, queue.Unauthenticated)
				if a.header.Get("WWW-Authenticate") != "Bearer" {
					t.Errorf("%s %s does not say how to authenticate", call.method, call.path)
				}
			}
		})
	}
}

func TestAFailureOfTheLineIsNeverAResult(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, failure := range []error{errDown, errors.New("read tcp: i/o timeout"), context.DeadlineExceeded} {
		b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return queue.Grabbed{}, failure }
		a := b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...)
		b.mustFail(a, http.StatusServiceUnavailable, queue.Unavailable)
	}
}

func TestASuccessIsToldOnlyOnceItsRowIsThere(t *testing.T) {
	t.Parallel()
	var awaited []string
	var failure error
	b := newBench(t, func(o *Options) {
		o.AwaitRow = func(_ context.Context, order queue.Order) error {
			awaited = append(awaited, order.ID)
			return failure
		}
	})
	result := queue.Success
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) {
		return queue.Grabbed{Result: result, Order: &queue.Order{ID: anOrder, Sale: "solo", Item: "main", Qty: 1, Status: queue.Reserved}}, nil
	}
	if a := b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...); a.status != http.StatusOK || len(awaited) != 1 || awaited[0] != anOrder {
		t.Errorf("got %d %s after waiting for %v", a.status, a.body, awaited)
	}
	failure = errors.New("disk full")
	b.mustFail(b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...), http.StatusServiceUnavailable, queue.Unavailable)
	result = queue.Already
	if a := b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as("ann")...); a.status != http.StatusOK || len(awaited) != 2 {
		t.Errorf("got %d %s after waiting for %v", a.status, a.body, awaited)
	}
}

func TestGrabsAreCountedByTheirResult(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(o *Options) { o.Registerer = registry })
	b.line.grab = func(req queue.GrabRequest) (queue.Grabbed, error) {
		switch req.User {
		case "ann":
			return queue.Grabbed{Result: queue.Success, Order: &queue.Order{ID: anOrder, Sale: "solo", Item: "main", Qty: 1, Status: queue.Reserved}}, nil
		case "bob":
			return queue.Grabbed{Result: queue.SoldOut, Stock: queue.Gone}, nil
		}
		return queue.Grabbed{}, &queue.Error{Code: queue.Limited, Message: "slow down", By: "user", Limit: 20}
	}
	for _, user := range []string{"ann", "bob", "bob", "cat"} {
		b.send(http.MethodPost, "/api/v1/seckill/solo", "", b.as(user)...)
	}
	b.send(http.MethodPost, "/api/v1/seckill/made-up-by-a-caller", "", b.as("ann")...)
	err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP sluice_grabs_total Grabs by their result.
# TYPE sluice_grabs_total counter
sluice_grabs_total{result="limited",sale="solo"} 1
sluice_grabs_total{result="sold_out",sale="solo"} 2
sluice_grabs_total{result="success",sale="solo"} 1
# HELP sluice_limited_total Requests refused because of a limit: of this node, or of a user or address over all nodes.
# TYPE sluice_limited_total counter
sluice_limited_total{by="user"} 1
`), "sluice_grabs_total", "sluice_limited_total")
	if err != nil {
		t.Error(err)
	}
}
