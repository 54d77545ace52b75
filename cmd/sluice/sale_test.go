package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// adminCall is a call of the admin API as the stub saw it.
type adminCall struct{ method, path, contentType, token, body string }

// admin is a stub whose admin API answers each call the same way and remembers the last one.
func admin(t *testing.T, status int, answer any) (url string, last *adminCall) {
	s := newStub(t, nil)
	last = new(adminCall)
	s.mux.HandleFunc("/api/v1/admin/sales", func(w http.ResponseWriter, r *http.Request) { writeJSON(w, status, answer) })
	s.mux.HandleFunc("/api/v1/admin/sales/", func(w http.ResponseWriter, r *http.Request) {
		*last = adminCall{r.Method, r.URL.Path, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), bodyOf(t, r)}
		if status >= 400 {
			writeProblem(w, status, answer.(object))
			return
		}
		writeJSON(w, status, answer)
	})
	return s.URL, last
}

func sampleSale() object {
	opens := time.Now().Add(3*time.Hour + 30*time.Second)
	return object{
		"id": "phone-x", "title": object{"zh": "电话", "en": "Phone X"}, "state": "lobby", "stock": "held",
		"opens_at": opens.UTC().Format(time.RFC3339), "closes_at": opens.Add(50 * time.Hour).UnixMilli(), "limit": 2, "hold": "15m0s",
		"line":    object{"order": "fifo", "rate": 500, "active": 0, "ratio": 2.5, "turn": "1m0s", "grace": "10m0s"},
		"items":   []object{{"id": "black", "title": "Black", "stock": 600, "left": 12}, {"id": "white", "stock": 400}},
		"waiting": 15000, "turns": 7,
	}
}

func TestSaleFileIsSentAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]struct{ text, kind string }{
		"sale.yaml": {"# a comment\nid: phone-x\nopens_at: +15s\n", "application/yaml"},
		"sale.json": {`{"items": [], "id": "phone-x"}`, "application/json"},
		"json":      {` {"id":"phone-x"}`, "application/json"},
	}
	for name, file := range files {
		url, last := admin(t, 200, sampleSale())
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(file.text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, said := sluice(t, "", "sale", "apply", path, "--url", url+"/", "--admin-token", "admin")
		want(t, "exit code", code, 0)
		want(t, "standard error", said, "")
		want(t, "request", *last, adminCall{"PUT", "/api/v1/admin/sales/phone-x", file.kind, "Bearer admin", file.text})
		if !strings.Contains(out, "phone-x") {
			t.Errorf("printed %q", out)
		}
	}

	url, last := admin(t, 200, sampleSale())
	code, _, _ := sluice(t, "id: phone-x\n", "sale", "apply", "-", "--url", url)
	want(t, "exit code of standard input", code, 0)
	want(t, "request from standard input", *last, adminCall{"PUT", "/api/v1/admin/sales/phone-x", "application/yaml", "", "id: phone-x\n"})
}

func TestSaleFileWithoutAUsableIDIsNotSent(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"title: x\n":                     "it has no field id",
		"id: Phone X\n":                  `id "Phone X"`,
		"id: ../sales\n":                 `id "../sales"`,
		"id: -x\n":                       `id "-x"`,
		"a: b\nid: [x\nitems: 1":         "line ",
		"":                               "it has no field id",
		"just words":                     "line 1",
		"id: " + strings.Repeat("a", 64): "1 to 63",
	} {
		code, out, said := sluice(t, text, "sale", "apply", "-", "--url", "http://127.0.0.1:1")
		want(t, "exit code", code, 1)
		want(t, "standard output", out, "")
		if !strings.HasPrefix(said, "sluice: standard input: ") || !strings.Contains(said, says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%q: said %q, want one sentence with %q in it", text, said, says)
		}
	}
}

func TestProblemsOfTheServerBecomeOneSentence(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		answer object
		says   string
	}{
		{422, object{"code": "invalid", "title": "Invalid", "detail": "The stock must not be negative.", "line": 7, "field": "items[0].stock"},
			"sluice: apply standard input: The stock must not be negative (line 7, field items[0].stock)\n"},
		{422, object{"detail": "line 7: items[0].stock must not be negative", "line": 7, "field": "items[0].stock"},
			"sluice: apply standard input: line 7: items[0].stock must not be negative\n"},
		{401, object{"code": "unauthenticated", "title": "Unauthenticated"},
			"sluice: apply standard input: Unauthenticated: give the server's admin token with --admin-token or --admin-token-file\n"},
		{503, object{"detail": "The sale is recovering.", "retry_after_ms": 1500}, "sluice: apply standard input: The sale is recovering: try again in 1.5s\n"},
		{409, object{}, "sluice: apply standard input: Conflict\n"},
	}
	for _, test := range tests {
		url, _ := admin(t, test.status, test.answer)
		code, out, said := sluice(t, "id: phone-x", "sale", "apply", "-", "--url", url)
		want(t, "exit code", code, 1)
		want(t, "standard output", out, "")
		want(t, "sentence", said, test.says)
	}
}

func TestAnswersOfOthersAreNotTakenForProblems(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.mux.HandleFunc("/api/v1/admin/sales/phone-x", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html>nginx</html>"))
	})
	code, _, said := sluice(t, "", "sale", "show", "phone-x", "--url", s.URL)
	want(t, "exit code", code, 1)
	want(t, "sentence", said, "sluice: show phone-x: "+s.URL+"/api/v1/admin/sales/phone-x answered 502 Bad Gateway\n")
}

func TestSaleIsShownWithLocalAndRelativeTimes(t *testing.T) {
	t.Parallel()
	sale := sampleSale()
	url, last := admin(t, 200, sale)
	code, out, _ := sluice(t, "", "sale", "show", "phone-x", "--url", url)
	want(t, "exit code", code, 0)
	want(t, "request", last.method+" "+last.path, "GET /api/v1/admin/sales/phone-x")
	opens, err := time.Parse(time.RFC3339, sale["opens_at"].(string))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"sale    phone-x\n", "title   Phone X\n", "state   lobby, stock held\n",
		"opens   " + opens.Local().Format("2006-01-02 15:04:05 MST") + " (in 3h)\n", "(in 2d 5h)\n",
		"line    fifo, rate 500, active unbounded, ratio 2.5, turn 1m, grace 10m\n",
		"limit   2 an order\n", "hold    15m\n", "now     15000 waiting, 7 with a turn\n",
		"black  600    12    Black\n", "white  400    -     \n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("lacks %q:\n%s", line, out)
		}
	}
}

func TestSalesAreListedInEitherForm(t *testing.T) {
	t.Parallel()
	for _, answer := range []any{[]object{sampleSale()}, object{"sales": []object{sampleSale()}}} {
		url, _ := admin(t, 200, answer)
		code, out, _ := sluice(t, "", "sale", "list", "--url", url)
		want(t, "exit code", code, 0)
		if lines := strings.Split(out, "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "phone-x  lobby, stock held  ") || !strings.HasSuffix(lines[1], "15000    Phone X") {
			t.Errorf("printed:\n%s", out)
		}
	}
	url, _ := admin(t, 200, []object{})
	_, out, _ := sluice(t, "", "sale", "list", "--url", url)
	want(t, "empty list", out, "no sales yet; make one with: sluice sale apply FILE\n")
}

func TestStepsArePosted(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"open", "pause", "resume", "close"} {
		url, last := admin(t, 200, sampleSale())
		code, out, _ := sluice(t, "", "sale", step, "phone-x", "--url", url, "--json")
		want(t, "exit code", code, 0)
		want(t, "request", last.method+" "+last.path, "POST /api/v1/admin/sales/phone-x/"+step)
		if !strings.HasPrefix(out, "{") || !strings.Contains(out, `"waiting":15000`) {
			t.Errorf("%s --json printed %q", step, out)
		}
	}
}

func TestSaleNamesCannotLeadElsewhere(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"sale open", "sale show", "audit", "crowd --secret s --sale"} {
		for _, name := range []string{"..", "a/../b", "a?b", "A", "a%2fb"} {
			url, last := admin(t, 200, sampleSale())
			code, _, said := sluice(t, "", append(strings.Fields(command), name, "--url", url)...)
			want(t, "exit code of "+command+" "+name, code, exitUsage)
			want(t, "request of "+command+" "+name, *last, adminCall{})
			if !strings.Contains(said, "begin with a letter or digit") {
				t.Errorf("said %q", said)
			}
		}
	}
}

func TestAdminTokenMayComeFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, last := admin(t, 200, sampleSale())
	code, _, _ := sluice(t, "", "sale", "show", "phone-x", "--url", url, "--admin-token-file", file)
	want(t, "exit code", code, 0)
	want(t, "token", last.token, "Bearer from the file")
	code, _, said := sluice(t, "", "sale", "show", "phone-x", "--url", url, "--admin-token-file", file, "--admin-token", "x")
	want(t, "exit code of both", code, 2)
	if !strings.Contains(said, "keep one") {
		t.Errorf("said %q", said)
	}
}

func TestAuditExitsByItsVerdict(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	s.setAudit(40)
	code, out, said := sluice(t, "", "audit", stubSale, "--url", s.URL, "--admin-token", "admin")
	want(t, "exit code", code, 0)
	want(t, "standard error", said, "")
	for _, text := range []string{"ITEM  TOTAL  STOCK  WINNERS  SOLD  LIVE\n", "main    100     60       40    40    40\n", "verdict     holds at "} {
		if !strings.Contains(out, text) {
			t.Errorf("lacks %q:\n%s", text, out)
		}
	}

	s.mu.Lock()
	s.audit["balanced"] = false
	s.audit["unmatched"] = []object{{"order": "o-1", "user": "alice", "why": "a mark without an order"}}
	s.audit["problems"] = []string{"1 order is unmatched"}
	s.mu.Unlock()
	code, out, said = sluice(t, "", "audit", stubSale, "--url", s.URL, "--admin-token", "admin")
	want(t, "exit code of an audit that does not hold", code, 1)
	want(t, "standard error", said, "sluice: the audit of phone-x does not hold: 1 order is unmatched\n")
	for _, text := range []string{"o-1 of alice: a mark without an order", "problem     1 order is unmatched", "DOES NOT HOLD"} {
		if !strings.Contains(out, text) {
			t.Errorf("lacks %q:\n%s", text, out)
		}
	}
	code, out, _ = sluice(t, "", "audit", stubSale, "--url", s.URL, "--admin-token", "admin", "--json")
	want(t, "exit code with --json", code, 1)
	if !strings.HasPrefix(out, `{"at":`) {
		t.Errorf("--json printed %q", out)
	}
}

func TestTimesAreToldInTheirTwoLargestUnits(t *testing.T) {
	t.Parallel()
	for d, text := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 59*time.Second + 700*time.Millisecond: "1m", 61 * time.Minute: "1h 1m", 49 * time.Hour: "2d 1h",
	} {
		want(t, d.String(), coarse(d), text)
	}
}
