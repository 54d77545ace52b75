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
		"a bare number as duration":    {change("turn: 60s", "turn: 60"), `line 18: line.turn must be a time from 1s to 24h, written like 90s, 10m or 1h30m, not "60"`},
		"an unknown order":             {change("order: fifo", "order: random"), `line 14: line.order must be fifo, lottery or off, not "random"`},
		"a code that is too short":     {change("codes: [ ]", "codes: [ {code: abc} ]"), "line 22: access.codes[0].code must be 4 to 64 ASCII letters, digits and signs, without spaces"},
		"a code with a space":          {change("codes: [ ]", "codes: [ {code: secret word} ]"), "access.codes[0].code must be 4 to 64"},
		"a code that is too long":      {change("codes: [ ]", "codes: [ {code: "+strings.Repeat("x", 65)+"} ]"), "access.codes[0].code must be 4 to 64"},
		"a code of another script":     {change("codes: [ ]", "codes: [ {code: 邀请码邀请码} ]"), "access.codes[0].code must be 4 to 64"},
		"codes without a code":         {change("codes: [ ]", "codes: [ {uses: 3} ]"), "access.codes[0].code is missing"},
		"a code twice":                 {change("codes: [ ]", "codes:\n    - { code: abcd }\n    - { code: abcd }"), "line 24: access.codes[1] has the code that stands on line 23 already"},
		"negative uses":                {change("codes: [ ]", "codes: [ {code: abcd, uses: -1} ]"), "access.codes[0].uses must be a whole number from 0 to 100000000"},
		"a priority beyond a byte":     {change("codes: [ ]", "codes: [ {code: abcd, priority: 256} ]"), "access.codes[0].priority must be a whole number from 0 to 255"},
		"codes that are a text":        {change("codes: [ ]", "codes: some"), "access.codes must be a list, not a text"},
		"too many codes":               {change("codes: [ ]", "codes: ["+strings.Repeat("{code: abcd},", 10_001)+"]"), "access.codes must have at most 10000 codes, not 10001"},
		"a range that is none":         {change("codes: [ ]", "allow: [ 10.0.0.0/33 ]"), "access.allow[0] looks like an address or a range and is none"},
		"an address that is none":      {change("codes: [ ]", "deny: [ ann, 10.0.0.256 ]"), "line 22: access.deny[1] looks like an address or a range and is none"},
		"a range with bits beyond":     {change("codes: [ ]", "deny: [ 10.1.2.3/8 ]"), "access.deny[0] is 10.1.2.3/8, which has bits beyond its length: write 10.0.0.0/8"},
		"an empty user":                {change("codes: [ ]", "deny: [ '' ]"), "access.deny[0] must be a user id of 1 to 128 bytes, an address, or a range"},
		"too many seats of an address": {change("seats_per_address: 0", "seats_per_address: 101"), "access.seats_per_address must be a whole number from 0 to 100"},
		"a verifier in the open":       {change(`challenge_url: ""`, "challenge_url: http://verifier.example/"), "access.challenge_url must be an https URL"},
		"a verifier that is no URL":    {change(`challenge_url: ""`, "challenge_url: turnstile"), "access.challenge_url must be an https URL"},
		"a verifier with a password":   {change(`challenge_url: ""`, "challenge_url: https://a:b@verifier.example/"), "without a name and password"},
		"a rule that there is not":     {change("codes: [ ]", "invite: [ ]"), "access.invite is not a known field; there are allow, challenge_url, codes, deny, seats_per_address"},
		"rules without a line":         {strings.Replace(change("codes: [ ]", "deny: [ ann ]"), "order: fifo", "order: off", 1), "access needs a line"},
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

func TestASaleFileSaysWhoMayTakeASeat(t *testing.T) {
	t.Parallel()
	text := strings.Replace(phoneX, "  codes: [ ]\n  seats_per_address: 0\n  challenge_url: \"\"\n", `  codes:
    - { code: EARLY-2026, uses: 500, priority: 2 }
    - { code: 00123456 }
    - code: "for everybody else!"
      uses: 0
  allow: [ 192.0.2.0/24, "2001:db8::/32", ann ]
  deny: [ 192.0.2.7, google:12345 ]
  seats_per_address: 4
  challenge_url: https://challenges.cloudflare.com/turnstile/v0/siteverify
`, 1)
	text = strings.Replace(text, "for everybody else!", "for-everybody-else!", 1)
	sale := parse(t, text)
	want := queue.Access{
		Codes: queue.Codes{
			{Code: "EARLY-2026", Uses: 500, Priority: 2}, {Code: "00123456", Uses: 1}, {Code: "for-everybody-else!", Uses: 0},
		},
		Allow: []string{"192.0.2.0/24", "2001:db8::/32", "ann"}, Deny: []string{"192.0.2.7", "google:12345"},
		SeatsPerAddress: 4, ChallengeURL: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
	}
	if diff := cmp.Diff(want, sale.Access); diff != "" {
		t.Fatal(diff)
	}
	// What is stored, and what is read of it again.
	data, err := json.Marshal(sale)
	if err != nil {
		t.Fatal(err)
	}
	var stored queue.Sale
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sale, stored); diff != "" {
		t.Fatal(diff)
	}
}

// TestCodesAreKeptByAFileThatDoesNotShowThem: what an operator reads of a sale can be applied again, and changes no code.
func TestCodesAreKeptByAFileThatDoesNotShowThem(t *testing.T) {
	t.Parallel()
	sale := parse(t, strings.Replace(phoneX, "codes: [ ]", "codes: [ {code: SECRET-A}, {code: SECRET-B, uses: 9} ]", 1))
	data, err := json.Marshal(sale.Hidden())
	if err != nil || strings.Contains(string(data), "SECRET") || !strings.Contains(string(data), `"codes":"2 kept"`) {
		t.Fatalf("shown is %s, %v", data, err)
	}
	file, err := queue.ParseSale(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := file.Resolve(time.Now(), &sale)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sale, again); diff != "" {
		t.Fatal(diff)
	}
	changed := sale
	changed.Access.Codes = sale.Access.Codes[:1]
	for what, before := range map[string]*queue.Sale{"of a sale that is new": nil, "whose codes have changed since": &changed} {
		if _, err := file.Resolve(time.Now(), before); queue.CodeOf(err) != queue.Conflict || !strings.Contains(err.Error(), "2 codes are kept") {
			t.Errorf("codes %s are kept: %v", what, err)
		}
	}
}

func FuzzParseSale(f *testing.F) {
	f.Add([]byte(phoneX))
	f.Add([]byte(`{"id":"a","items":[{"stock":1}],"opens_at":"+1s","closes_at":"+2s"}`))
	f.Add([]byte("id: [a"))
	f.Add([]byte("id: a\ntitle: \"<script>\\u202e\"\nitems: [{stock: 1_000}]\nopens_at: 2026-12-01T12:00:00.123456789+23:59\ncloses_at: 9999-12-31T23:59:59Z\n"))
	f.Add([]byte("a: &a [*a]\n<<: *a\nid: !!binary YQ==\n"))
	f.Add([]byte("id: a\nitems: [{stock: 0x10, price: 1e3}]\nopens_at: +1s\ncloses_at: +2562047h\nline: {order: fifo, ratio: .nan, rate: 0.5, turn: 1h30m}\n"))
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
		now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
		sale, err := file.Resolve(now, nil)
		if err != nil {
			if queue.CodeOf(err) != queue.Invalid {
				t.Fatalf("a file that cannot be applied is %v", err)
			}
			return
		}
		// What is taken is stored as JSON, in Redis and in the database, and shown to operators as a sale file.
		stored, err := json.Marshal(sale)
		if err != nil {
			t.Fatal(err)
		}
		var read queue.Sale
		if err := json.Unmarshal(stored, &read); err != nil {
			t.Fatalf("%s cannot be read again: %v", stored, err)
		}
		if diff := cmp.Diff(sale, read); diff != "" {
			t.Fatalf("stored and read again: %s", diff)
		}
		if again, err := queue.ParseSale(stored); err != nil {
			t.Fatalf("%s is no sale file: %v", stored, err)
		} else if applied, err := again.Resolve(now, nil); err != nil || !cmp.Equal(sale, applied) {
			t.Fatalf("applied again: %v %s", err, cmp.Diff(sale, applied))
		}
	})
}
