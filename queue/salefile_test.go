package queue_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/queue"
)

const phoneX = `id: phone-x
title: { en: "Phone X, 1 000 units", zh: "Phone X 限量 1000 台" }
items:
  - { id: black, title: { en: Black, zh: 黑色 }, stock: 600, price: 299900 }
  - id: white
    title: White
    stock: 400
currency: CNY
opens_at: 2026-12-01T12:00:00+08:00
closes_at: 2026-12-01T13:00:00+08:00
lobby: 30m
limit: 2
line:
  order: fifo
  rate: 500
  active: 2000
  ratio: 2.5
  turn: 60s
  grace: 10m
hold: 15m
access:
  codes: [ ]
  seats_per_address: 0
  challenge_url: ""
`

func parse(t *testing.T, text string) queue.Sale {
	t.Helper()
	file, err := queue.ParseSale([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	sale, err := file.Resolve(time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sale
}

func TestASaleFileSaysEverythingOfASale(t *testing.T) {
	t.Parallel()
	want := queue.Sale{
		ID: "phone-x", Title: queue.Text{"en": "Phone X, 1 000 units", "zh": "Phone X 限量 1000 台"},
		Items: []queue.Item{
			{ID: "black", Title: queue.Text{"en": "Black", "zh": "黑色"}, Stock: 600, Price: 299900},
			{ID: "white", Title: queue.Text{"": "White"}, Stock: 400},
		},
		Currency: "CNY",
		OpensAt:  time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC), ClosesAt: time.Date(2026, 12, 1, 5, 0, 0, 0, time.UTC),
		Lobby: queue.Duration(30 * time.Minute), Limit: 2,
		Line: queue.Line{Order: queue.FIFO, Rate: 500, Active: 2000, Ratio: 2.5, Turn: queue.Duration(time.Minute), Grace: queue.Duration(10 * time.Minute)},
		Hold: queue.Duration(15 * time.Minute),
	}
	got := parse(t, phoneX)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, parse(t, string(data))); diff != "" {
		t.Fatalf("written as JSON and read again: %s", diff)
	}
}

func TestASaleOfOneItemNeedsLittle(t *testing.T) {
	t.Parallel()
	got := parse(t, "id: a\nitems: [{stock: 5}]\nopens_at: +15s\ncloses_at: +1h\n")
	if got.Items[0].ID != queue.MainItem || got.Limit != 1 || got.Line.Order != queue.FIFO || got.Line.Ratio != 5 ||
		got.Line.Turn != queue.Duration(time.Minute) || got.Hold != queue.Duration(15*time.Minute) || got.Lobby != 0 {
		t.Fatalf("the defaults are %+v", got)
	}
}

func TestARelativeTimeIsResolvedOnce(t *testing.T) {
	t.Parallel()
	file, err := queue.ParseSale([]byte("id: a\nitems: [{stock: 5}]\nopens_at: +15s\ncloses_at: +1h\n"))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	first, err := file.Resolve(now, nil)
	if err != nil || !first.OpensAt.Equal(now.Add(15*time.Second)) {
		t.Fatalf("first apply: %v %v", first.OpensAt, err)
	}
	again, err := file.Resolve(now.Add(time.Minute), &first)
	if err != nil || !again.OpensAt.Equal(first.OpensAt) || !again.ClosesAt.Equal(first.ClosesAt) {
		t.Fatalf("second apply moved the sale: %+v %v", again, err)
	}
}

func TestABrokenSaleFileNamesTheLineAndTheField(t *testing.T) {
	t.Parallel()
	change := func(old, new string) string { return strings.Replace(phoneX, old, new, 1) }
	for name, test := range map[string]struct{ file, want string }{
		"an unknown field":             {change("limit: 2", "limits: 2"), "line 12: limits is not a known field"},
		"an unknown field of the line": {change("rate: 500", "speed: 500"), "line 15: line.speed is not a known field"},
		"a field that is there twice":  {phoneX + "hold: 5m\n", "hold is there twice"},
		"an id with capitals":          {change("id: phone-x", "id: Phone"), `line 1: id must be 1 to 63 of a-z, 0-9 and -, not beginning with -, not "Phone"`},
		"no id":                        {change("id: phone-x\n", ""), "id is missing"},
		"no items":                     {"id: a\nopens_at: +1s\ncloses_at: +2s\n", "items is missing"},
		"an empty list of items":       {"id: a\nitems: []\nopens_at: +1s\ncloses_at: +2s\n", "line 2: items must have from 1 to 50 items, not 0"},
		"two items of one id":          {change("id: white", "id: black"), `has the id "black"`},
		"an item without id":           {change("  - id: white\n    title", "  - title"), "items[1].id is missing"},
		"a negative stock":             {change("stock: 600", "stock: -1"), `line 4: items[0].stock must be a whole number from 0 to 100000000, not "-1"`},
		"a stock in words":             {change("stock: 600", "stock: many"), `items[0].stock must be a whole number`},
		"a limit of 0":                 {change("limit: 2", "limit: 0"), `line 12: limit must be a whole number from 1 to 1000, not "0"`},
		"a time without a zone":        {change("12:00:00+08:00", "12:00:00"), "line 9: opens_at must be a time like"},
		"an end before the beginning":  {change("13:00:00", "11:00:00"), "line 10: closes_at must be later than opens_at"},
		"a relative end before":        {"id: a\nitems: [{stock: 5}]\nopens_at: +15s\ncloses_at: +10s\n", "line 4: closes_at must be later"},
		"a bare number as duration":    {change("turn: 60s", "turn: 60"), `line 18: line.turn must be a time from 1s to 24h0m0s, written like 90s, 10m or 1h30m, not "60"`},
		"an unknown order":             {change("order: fifo", "order: random"), `line 14: line.order must be fifo, lottery or off, not "random"`},
		"a rule that is not enforced":  {change("codes: [ ]", "codes: [ {code: a} ]"), "access.codes is not supported yet"},
		"a list for a text":            {change("currency: CNY", "currency: [CNY]"), "line 8: currency must be text, not list"},
		"a currency in words":          {change("currency: CNY", "currency: yuan"), "currency must be a currency code"},
		"broken YAML":                  {"id: [a\n", "the sale file cannot be read"},
		"nothing":                      {"", "the sale file is empty"},
		"a list":                       {"- a\n", "must be fields like id, items and opens_at, not a list"},
		"two documents":                {"id: a\n---\nid: b\n", "must hold one sale, and there is more after it"},
		"an alias":                     {"id: &a x\ntitle: *a\n", "which a sale file cannot have"},
		"a title that is too long":     {change(`"Phone X, 1 000 units"`, strings.Repeat("x", 201)), "title.en must be at most 200 characters long"},
		"a text of two lines":          {"id: a\ntitle: \"a\\nb\"\nitems: [{stock: 5}]\nopens_at: +1s\ncloses_at: +2s\n", "line 2: title must be one line without control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := queue.ParseSale([]byte(test.file))
			if queue.CodeOf(err) != queue.Invalid {
				t.Fatalf("got %v, want an Invalid error", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %q, want it to say %q", err, test.want)
			}
		})
	}
}

func FuzzParseSale(f *testing.F) {
	f.Add([]byte(phoneX))
	f.Add([]byte(`{"id":"a","items":[{"stock":1}],"opens_at":"+1s","closes_at":"+2s"}`))
	f.Add([]byte("id: [a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := queue.ParseSale(data)
		if err != nil {
			if queue.CodeOf(err) != queue.Invalid {
				t.Fatalf("a broken file is %v", err)
			}
			return
		}
		if !queue.ValidID(file.ID()) {
			t.Fatalf("accepted the id %q", file.ID())
		}
	})
}
