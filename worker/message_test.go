package worker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"sluice/docs/spec"
	"sluice/queue"
)

func TestAMQPMessageHasTheFieldsOfTheContract(t *testing.T) {
	t.Parallel()
	body, err := encodeOrder(queue.Order{
		ID: "0190", Sale: "phone-x", Item: "black", User: "ann", Qty: 2, RequestID: "r1", CreatedAt: 1796097600123, PayBy: 1796098500123,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the message", string(body), `{"v":1,"id":"0190","sale":"phone-x","item":"black","user":"ann","qty":2,`+
		`"request_id":"r1","at":1796097600123,"pay_by":1796098500123}`)
}

func TestAMQPMessageIsAsSpecified(t *testing.T) {
	t.Parallel()
	documents, err := spec.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, payBy := range []int64{0, 1796098500123} {
		body, err := encodeOrder(queue.Order{
			ID: uuid.NewString(), Sale: "phone-x", Item: "black", User: "ann", Qty: 2, RequestID: "r1", CreatedAt: 1796097600123, PayBy: payBy,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := documents.Published("sluice.orders", body); err != nil {
			t.Error(err)
		}
		for _, wrong := range []string{`"v":2`, `"v":"1"`, `"new":0,"v":1`, `"w":1`} {
			if documents.Published("sluice.orders", []byte(strings.Replace(string(body), `"v":1`, wrong, 1))) == nil {
				t.Errorf("%s: not noticed", wrong)
			}
		}
	}
	if documents.Published("sluice.other", []byte(`{}`)) == nil {
		t.Error("an exchange that nothing says anything about: not noticed")
	}
}

func TestAMQPMessageBringsEveryOrderBackAsItWas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, 40, 128)
		order := queue.Order{
			ID:        text.Draw(t, "id"),
			Sale:      text.Draw(t, "sale"),
			Item:      text.Draw(t, "item"),
			User:      text.Draw(t, "user"),
			Qty:       rapid.Int64Min(1).Draw(t, "qty"),
			RequestID: rapid.StringN(0, 40, 128).Draw(t, "request"),
			Status:    queue.Reserved,
			CreatedAt: rapid.Int64Min(1).Draw(t, "at"),
			PayBy:     rapid.Int64Min(0).Draw(t, "pay by"),
		}
		body, err := encodeOrder(order)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeOrder(body)
		if err != nil {
			t.Fatal(err)
		}
		if back != order {
			t.Fatalf("%+v came back as %+v", order, back)
		}
	})
}

func TestAMQPMessageThatIsNoOrderSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := map[string]any{"v": 1, "id": "0190", "sale": "phone-x", "item": "black", "user": "ann", "qty": 1, "at": 5, "pay_by": 0}
	but := func(field string, value any) string {
		changed := map[string]any{}
		for name, v := range good {
			changed[name] = v
		}
		if changed[field] = value; value == nil {
			delete(changed, field)
		}
		body, err := json.Marshal(changed)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if _, err := decodeOrder([]byte(but("color", "red"))); err != nil {
		t.Errorf("a field that was added later is not read over: %v", err)
	}
	for body, want := range map[string]string{
		"":                       "not an order in JSON",
		"hello":                  "not an order in JSON",
		"[]":                     "not an order in JSON",
		but("v", 1) + "x":        "not an order in JSON",
		"{}":                     "no version",
		"null":                   "no version",
		but("v", nil):            "no version",
		but("v", 2):              "version 2; this program reads version 1",
		but("v", 0):              "version 0",
		but("v", "1"):            "not an order in JSON",
		but("id", ""):            "no id",
		but("id", 7):             "not an order",
		`{"id":7,"v":2}`:         "version 2",
		but("sale", nil):         "no sale",
		but("item", nil):         "no item",
		but("user", nil):         "no user",
		but("qty", 0):            "0 units",
		but("qty", -1):           "-1 units",
		but("qty", 1.5):          "not an order",
		but("qty", 1e30):         "not an order",
		but("at", nil):           "when the grab was",
		but("pay_by", -1):        "before 1970",
		"\xff\xfe" + but("v", 1): "not an order in JSON",
		`{"v":1,"id":"a","id":"`: "not an order in JSON",
	} {
		order, err := decodeOrder([]byte(body))
		if err == nil {
			t.Errorf("%q was read as %+v", body, order)
			continue
		}
		wantCode(t, err, queue.Invalid)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error %q does not say %q", body, err, want)
		}
		if order != (queue.Order{}) {
			t.Errorf("%q: half an order came with the error: %+v", body, order)
		}
	}
}

func FuzzDecodeOrder(f *testing.F) {
	f.Add([]byte(`{"v":1,"id":"0190","sale":"phone-x","item":"black","user":"ann","qty":2,"request_id":"r1","at":1796097600123,"pay_by":0}`))
	f.Add([]byte(`{"v":1,"V":2,"id":"a","ID":"b","sale":"s","item":"i","user":"\ud800","qty":1,"at":1}`))
	f.Add([]byte(`{"v":1,"id":"a","sale":"s","item":"i","user":"u","qty":1e0,"at":9223372036854775807,"pay_by":-0}`))
	f.Add([]byte(`{"v":"1"}`))
	f.Add([]byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, body []byte) {
		order, err := decodeOrder(body)
		if err != nil {
			if queue.CodeOf(err) != queue.Invalid || order != (queue.Order{}) {
				t.Fatalf("%q is %+v, %v", body, order, err)
			}
			return
		}
		if order.ID == "" || order.Qty < 1 || order.CreatedAt < 1 || order.PayBy < 0 || order.Status != queue.Reserved {
			t.Fatalf("%q was read as %+v", body, order)
		}
		again, err := encodeOrder(order)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decodeOrder(again); err != nil || back != order {
			t.Fatalf("%+v came back as %+v, %v", order, back, err)
		}
	})
}
