package server

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sluice/queue"
)

// What stands here is said over real connections, by callers who do not keep to HTTP or to JSON.

// wireSite is a server whose line answers without Redis.
type wireSite struct {
	*bench
	address string
}

func newWireSite(t *testing.T) *wireSite {
	t.Helper()
	b := newBench(t, nil)
	b.line.grab = func(queue.GrabRequest) (queue.Grabbed, error) { return queue.Grabbed{Result: queue.NoTurn}, nil }
	site := httptest.NewUnstartedServer(nil)
	site.Config = NewHTTPServer("", b.server.Handler())
	site.Start()
	t.Cleanup(site.Close)
	return &wireSite{b, site.Listener.Addr().String()}
}

// says sends that, ends the sending, and returns all answers.
func (s *wireSite) says(sent string) []answer {
	s.Helper()
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patient))
	go func() { // a server that has heard enough does not read the rest
		if _, err := io.WriteString(conn, sent); err == nil {
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	var answers []answer
	for reader := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(reader, nil)
		var network net.Error
		if errors.As(err, &network) && network.Timeout() {
			s.Errorf("%.60q: neither answered nor ended", sent)
		}
		if err != nil {
			return answers
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		answers = append(answers, answer{resp.StatusCode, resp.Header, body})
	}
}

const host = " HTTP/1.1\r\nHost: sluice.example\r\n"

func TestOtherMethodsAreRefusedAndEchoNothing(t *testing.T) {
	t.Parallel()
	s := newWireSite(t)
	for _, method := range []string{"TRACE", "TRACK", "PUT", "PROPFIND", "PURGE", "get", "G3T~"} {
		for _, path := range []string{"/api/v1/sales", "/api/v1/sales/solo/grab", "/api/v1/orders", jwksPath} {
			answers := s.says(method + " " + path + host + "Authorization: Bearer hush\r\nCookie: hush\r\n\r\n")
			if len(answers) != 1 || answers[0].status != http.StatusMethodNotAllowed || answers[0].header.Get("Allow") == "" {
				t.Errorf("%s %s: got %+v", method, path, answers)
				continue
			}
			s.mustFail(answers[0], http.StatusMethodNotAllowed, methodNotAllowed)
			if strings.Contains(fmt.Sprint(answers[0].header, string(answers[0].body)), "hush") {
				t.Errorf("%s %s: what was sent comes back: %v %s", method, path, answers[0].header, answers[0].body)
			}
		}
	}
}

func TestAnAddressOrAHeaderThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	s := newWireSite(t)
	for sent, want := range map[string]int{
		"GET /api/v1/sales?a=" + strings.Repeat("a", 7000) + host + "\r\n":                            http.StatusOK,
		"GET /api/v1/sales?a=" + strings.Repeat("a", 9000) + host + "\r\n":                            http.StatusRequestURITooLong,
		"GET /api/v1/sales/" + strings.Repeat("a", 9000) + host + "\r\n":                              http.StatusRequestURITooLong,
		"GET /api/v1/sales?a=" + strings.Repeat("a", 30_000) + host + "\r\n":                          http.StatusRequestHeaderFieldsTooLarge,
		"GET /api/v1/sales" + host + strings.Repeat("A: b\r\n", 4000) + "\r\n":                        http.StatusRequestHeaderFieldsTooLarge,
		"GET /api/v1/sales" + host + "A: " + strings.Repeat("b", 30_000) + "\r\n\r\n":                 http.StatusRequestHeaderFieldsTooLarge,
		"GET /api/v1/sales" + host + strings.Repeat("a", 30_000) + ": b\r\n\r\n":                      http.StatusRequestHeaderFieldsTooLarge,
		"GET /api/v1/sales" + host + strings.Repeat("A: b\r\n", 200) + "\r\n":                         http.StatusOK,
		"GET /api/v1/sales" + host + "Authorization: Bearer " + strings.Repeat("a", 9e3) + "\r\n\r\n": http.StatusOK, // nobody is asked who they are
	} {
		answers := s.says(sent)
		if len(answers) != 1 || answers[0].status != want {
			t.Errorf("%.60q: got %+v, want %d", sent, answers, want)
			continue
		}
		if want == http.StatusRequestURITooLong {
			s.mustFail(answers[0], want, queue.BadRequest)
		}
	}
}

func TestWhatIsNoHTTPOrMoreThanOneRequestIsNotTakenForAnother(t *testing.T) {
	t.Parallel()
	s := newWireSite(t)
	get := "GET /api/v1/sales" + host
	post := "POST /api/v1/sales/solo/grab" + host + "Content-Type: application/json\r\nAuthorization: " + s.as("ann")[1] + "\r\n"
	hidden := "GET /api/v1/admin/sales" + host + "\r\n"
	for name, c := range map[string]struct {
		sent string
		want []int
	}{
		"HTTP/1.0":                    {"GET /api/v1/sales HTTP/1.0\r\n\r\n", []int{200}},
		"HTTP/1.0, and more":          {"GET /api/v1/sales HTTP/1.0\r\n\r\n" + hidden, []int{200}},
		"no host":                     {"GET /api/v1/sales HTTP/1.1\r\n\r\n", []int{400}},
		"two hosts":                   {get + "Host: b\r\n\r\n", []int{400}},
		"one after the other":         {get + "\r\n" + post + "Content-Length: 2\r\n\r\n{}" + get + "\r\n", []int{200, 200, 200}},
		"two lengths":                 {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}" + hidden, []int{400}},
		"a length with a sign":        {post + "Content-Length: +2\r\n\r\n{}" + hidden, []int{400}},
		"a length that is none":       {post + "Content-Length: 0x2\r\n\r\n{}" + hidden, []int{400}},
		"a length beyond any":         {post + "Content-Length: 99999999999999999999\r\n\r\n{}", []int{400}},
		"more than comes":             {post + "Content-Length: 1000\r\n\r\n{}", []int{400}},
		"chunks of another coding":    {post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden, []int{501}},
		"a coding twice":              {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, []int{501}},
		"a space before the colon":    {post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden, []int{400}},
		"chunks and a length":         {post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hidden, []int{200, 401}}, // by the chunks, and who hid it is nobody
		"a length and chunks":         {post + "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" + hidden, []int{200, 401}},
		"a chunk that is no number":   {post + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n" + hidden, []int{400}},
		"a chunk longer than it says": {post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n" + hidden, []int{400}},
		"chunks that end too early":   {post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", []int{400}},
		"chunks without end":          {post + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("400\r\n"+strings.Repeat(" ", 1024)+"\r\n", 4096), []int{413}},
		"a body without end":          {post + "Content-Length: 9000000\r\n\r\n" + strings.Repeat(" ", 9_000_000), []int{413}},
		"a path that is no text":      {"GET /api/v1/sales/%ff%fe%00" + host + "\r\n", []int{404}},
		"a path of raw bytes":         {"GET /api/v1/sales/\xff\xfe" + host + "\r\n", []int{404}},
		"headers that are no text":    {get + "Accept-Language: \xff\xfe\r\nX-Request-Id: \xff\r\nOrigin: \xff\r\n\r\n", []int{200}},
		"a header with a null":        {get + "A: \x00\r\n\r\n", []int{400}},
		"another protocol":            {"*1\r\n$8\r\nFLUSHALL\r\n", []int{400}},
	} {
		answers := s.says(c.sent)
		var got []int
		for _, a := range answers {
			got = append(got, a.status)
			if !utf8.Valid(a.body) || bytes.Contains(a.body, []byte("goroutine")) {
				t.Errorf("%s: the answer is %q", name, a.body)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v: %+v", name, got, c.want, answers)
		}
	}
}

func TestJSONThatIsTooDeepTooLargeOrSaidTwiceIsRefusedOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := newWireSite(t)
	for route, field := range map[string]string{
		"POST /api/v1/sales/solo/seat":         "seat",
		"POST /api/v1/sales/solo/grab":         "qty",
		"POST /api/v1/seckill/solo":            "qty",
		"PATCH /api/v1/admin/sales/solo/line":  "rate",
		"POST /api/v1/admin/sales/solo/extend": "closes_at",
		"POST /api/v1/admin/sales/solo/stock":  "total",
	} {
		who := s.as("ann")
		if strings.Contains(route, "/admin/") {
			who = s.asAdmin()
		}
		for name, c := range map[string]struct {
			body string
			want int
		}{
			"deep":                   {`{"` + field + `":` + strings.Repeat("[", 30_000), 400},
			"deep, and closed":       {`{"` + field + `":` + strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000) + "}", 400},
			"deep objects":           {strings.Repeat(`{"`+field+`":`, 5000), 400},
			"100,000 deep":           {`{"` + field + `":` + strings.Repeat("[", 100_000), 413},
			"deep, of no known name": {`{"x":` + strings.Repeat("[", 30_000), 400},
			"a huge number":          {`{"` + field + `":1e999999}`, 400},
			"a number of 60,000":     {`{"` + field + `":` + strings.Repeat("9", 60_000) + "}", 400},
			"twice":                  {`{"` + field + `":null,"` + field + `":null}`, 400},
			"twice, in another way":  {`{"` + field + `":null,"` + strings.ToUpper(field) + `":null}`, 400},
			"twice, escaped":         {`{"` + field + `":null,"\u00` + fmt.Sprintf("%02x", field[0]) + field[1:] + `":null}`, 400},
			"two objects":            {`{}{}`, 400},
			"no end":                 {`{"` + field, 400},
		} {
			method, path, _ := strings.Cut(route, " ")
			answers := s.says(fmt.Sprintf("%s %s%sAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				method, path, host, who[1], len(c.body), c.body))
			if len(answers) != 1 || answers[0].status != c.want && (c.want != 400 || answers[0].status != 422) || len(answers[0].body) > 1000 {
				t.Errorf("%s, %s: got %+v, want %d", route, name, answers, c.want)
			}
		}
	}
	// A frame of a socket is judged by the same rules.
	for _, frame := range []string{
		strings.Repeat("[", 100_000), strings.Repeat(`{"type":`, 100_000), `{"type":"grab","qty":1e999999}`, `{"type":"grab","qty":1,"qty":2}`,
		`{"type":"grab","TYPE":"leave"}`, `{"type":"leave"}{"type":"leave"}`, `{"type":"grab","qty":` + strings.Repeat("9", 4000) + "}",
	} {
		var got struct {
			Type string `json:"type"`
			Qty  int64  `json:"qty"`
		}
		if err := decodeFrame([]byte(frame), &got); err == nil || len(reason(err)) > 123 {
			t.Errorf("%.60q: read as %+v, %v", frame, got, err)
		}
	}
}
