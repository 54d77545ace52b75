package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"sluice/server"
)

// keptLine is a connection that is kept for one request after another, as long as the server keeps it.
type keptLine struct {
	address string
	conn    *net.TCPConn
	reader  *bufio.Reader
}

func (l *keptLine) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// carry sends a request and returns the whole answer. One that was cut off comes with an error.
func (l *keptLine) carry(method string, sent []byte) (*http.Response, []byte, error) {
	kept := l.conn != nil
	if !kept {
		conn, err := dialed(l.address)
		if err != nil {
			return nil, nil, err
		}
		l.conn, l.reader = conn, bufio.NewReader(conn)
	}
	_ = l.conn.SetDeadline(time.Now().Add(longest))
	_, wrote := l.conn.Write(sent)
	// A server that refuses a body without reading it answers and closes; the answer may still be there.
	resp, err := http.ReadResponse(l.reader, &http.Request{Method: method})
	if err != nil {
		l.close()
		if kept && (wrote != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			return l.carry(method, sent) // it was closed before this request
		}
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.Close || wrote != nil {
		l.close()
	}
	return resp, body, err
}

// request is one request that HTTP allows, whatever it asks for.
type request struct {
	method, target string
	header         []string
	body           []byte
	who            string // "" = nobody who is anybody, "user" or "admin"
	needs          string // what the route asks for, likewise
	late           bool   // 503 is the right answer: nothing is known of the order yet
}

// route is an address of the API, with {sale} and {order} in it.
type route struct{ method, path, needs string }

func routes() []route {
	return []route{
		{"GET", "/api/v1/sales", ""},
		{"GET", "/api/v1/sales/{sale}", ""},
		{"POST", "/api/v1/guests", ""},
		{"POST", "/api/v1/sales/{sale}/seat", "user"},
		{"GET", "/api/v1/sales/{sale}/seat", "user"},
		{"DELETE", "/api/v1/sales/{sale}/seat", "user"},
		{"GET", "/api/v1/sales/{sale}/draw", ""},
		{"GET", "/api/v1/sales/{sale}/draw/entrants", ""},
		{"GET", "/api/v1/sales/{sale}/draw/mine", "user"},
		{"POST", "/api/v1/sales/{sale}/grab", "user"},
		{"POST", "/api/v1/sales/{sale}/grab", "user"},
		{"POST", "/api/v1/seckill/{sale}", "user"},
		{"GET", "/api/v1/orders", "user"},
		{"GET", "/api/v1/orders/{order}", "user"},
		{"POST", "/api/v1/orders/{order}/pay", "user"},
		{"POST", "/api/v1/orders/{order}/cancel", "user"},
		{"POST", "/api/v1/webhooks/payment", "provider"},
		{"GET", "/ws/v1/sales/{sale}", ""},
		{"GET", "/api/v1/admin/sales", "admin"},
		{"PUT", "/api/v1/admin/sales/{sale}", "admin"},
		{"PUT", "/api/v1/admin/sales/{sale}", "admin"},
		{"GET", "/api/v1/admin/sales/{sale}", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/open", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/pause", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/resume", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/close", "admin"},
		{"PATCH", "/api/v1/admin/sales/{sale}/line", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/extend", "admin"},
		{"POST", "/api/v1/admin/sales/{sale}/stock", "admin"},
		{"GET", "/api/v1/admin/sales/{sale}/audit", "admin"},
		{"GET", "/api/v1/admin/sales/{sale}/live", "admin"},
		{"GET", "/api/v1/admin/sales/{sale}/orders", "admin"},
		{"GET", "/api/v1/admin/sales/{sale}/orders.csv", "admin"},
		{"GET", "/api/v1/admin/audit-log", "admin"},
		{"GET", "/api/v1/admin/about", "admin"},
		{"GET", "/{sale}", ""},
		{"GET", "/s/{sale}", ""},
		{"GET", "/assets/{sale}", ""},
		{"GET", "/admin/{sale}", ""},
	}
}

// request makes one up.
func (f *forger) request() *request {
	chosen := one(f, routes()...)
	r := &request{method: chosen.method, needs: chosen.needs}
	if f.odds(5) {
		r.method = one(f, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE", "get", "G3T~")
	}
	r.identify(f)
	sales := []string{f.siege.sale, f.siege.sale, f.siege.lottery, f.siege.spare, f.name()}
	if r.who == "admin" {
		sales = []string{f.siege.spare, f.name()} // who has that token may do what it allows
	}
	path := strings.ReplaceAll(chosen.path, "{sale}", one(f, sales...))
	path = strings.ReplaceAll(path, "{order}", one(f, f.siege.prey, f.uuid(), strings.ToUpper(f.siege.prey), f.name()))
	if f.odds(6) {
		path = f.bend(path)
	}
	r.target = path + f.query()
	if chosen.needs == "admin" && strings.HasSuffix(chosen.path, "/live") && r.who == "admin" {
		r.who, r.header = "", nil // a stream has no end to wait for
	}
	if r.method != "GET" && r.method != "HEAD" || f.odds(20) {
		r.body = f.body(chosen)
	}
	switch {
	case f.odds(3):
		r.header = append(r.header, "Content-Type: "+one(f, "text/plain", "multipart/form-data", "application/json; charset=utf-16",
			";;;", "application/xml", "application/x-www-form-urlencoded", "application/json, text/html", "\"", "application/yaml", ""))
	case r.body != nil:
		r.header = append(r.header, "Content-Type: application/json")
	}
	if chosen.needs == "provider" {
		signature := one(f, "", "sha256=", "sha256=00", "sha1="+strings.Repeat("0", 64), "sha256="+strings.Repeat("g", 64), strings.Repeat("f", 64), "sha256="+strings.Repeat("F", 4000))
		if f.odds(2) { // the provider itself, which has lost its mind
			signature, r.who, r.late = signatureOf(r.body), "provider", true
		}
		r.header = append(r.header, "X-Signature: "+signature)
	}
	for range f.IntN(4) {
		r.header = append(r.header, f.header())
	}
	return r
}

// identify says who sends it, which is hardly ever true.
func (r *request) identify(f *forger) {
	n := f.IntN(hostileUsers)
	user, token := f.siege.users[n], f.siege.tokens[n]
	parts := strings.Split(token, ".")
	encode := base64.RawURLEncoding.EncodeToString
	hour := time.Now().Add(time.Hour)
	sign := func(method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
		signed, err := jwt.NewWithClaims(method, claims).SignedString(key)
		if err != nil {
			f.siege.t.Errorf("sign a token: %v", err)
		}
		return signed
	}
	switch f.IntN(12) {
	case 0, 1, 2, 3, 4:
		r.who, r.header = "user", []string{"Authorization: Bearer " + token}
	case 5:
		r.who, r.header = "user", []string{"X-User-Id: " + user, "X-Token: " + server.MintHMAC([]byte(e2eSecret), user, hour)}
	case 6, 7:
		r.who, r.header = "admin", []string{"Authorization: Bearer " + e2eAdmin}
	case 8: // another's name on what is one's own
		r.header = []string{"X-User-Id: shopper-before", "X-Token: " + server.MintHMAC([]byte(e2eSecret), user, hour)}
	case 9:
		r.header = []string{one(f, "X-User-Id: shopper-before", "Authorization:", "Authorization: Bearer", "Authorization: Bearer ",
			"Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("admin:"+e2eAdmin)), "Authorization: "+token, "Cookie: token="+token)}
	default:
		r.header = []string{"Authorization: Bearer " + one(f,
			parts[0]+"."+encode([]byte(`{"sub":"shopper-before"}`))+"."+parts[2],
			encode([]byte(`{"alg":"none"}`))+"."+parts[1]+".",
			encode([]byte(`{"alg":"RS256","jku":"http://127.0.0.1/"}`))+"."+parts[1]+"."+parts[2],
			sign(jwt.SigningMethodHS256, []byte("a guess"), jwt.MapClaims{"sub": user}),
			sign(jwt.SigningMethodHS384, []byte(e2eSecret), jwt.MapClaims{"sub": user}),
			sign(jwt.SigningMethodHS256, []byte(e2eSecret), jwt.MapClaims{"sub": user, "exp": 1}),
			sign(jwt.SigningMethodHS256, []byte(e2eSecret), jwt.MapClaims{"sub": user, "nbf": hour.Unix()}),
			sign(jwt.SigningMethodHS256, []byte(e2eSecret), jwt.MapClaims{"sub": one[any](f, "", nil, 7, []string{user}, "a\x00b", strings.Repeat("x", 129))}),
			f.siege.seat, e2eAdmin+" ", "\""+e2eAdmin+"\"", e2eAdmin[:len(e2eAdmin)-1], strings.Repeat("A", 9000), parts[0]+"."+parts[1], "..", token+".", "\xff\xfe",
		)}
		if strings.HasSuffix(r.header[0], e2eAdmin+" ") {
			r.who = "admin" // a space at the end means nothing
		}
	}
	if f.odds(30) {
		r.header = append(r.header, "Authorization: Bearer x") // only one of the two can count
		r.who = one(f, r.who)
	}
}

// name is what somebody might call a sale or an order, as a path has it.
func (f *forger) name() string {
	return one(f, hostileMark, hostileMark+"-"+f.uuid(), "%00", hostileMark+"%00", "..%2f..%2fadmin", "%2e%2e", "%ff%fe", "%F0%9F%98%80", "a%20b",
		"%27%3BDROP%20TABLE%20orders%3B--", "%7B"+hostileMark+"%7D", "*", hostileMark+"%0d%0aX-Evil:%201", "_nodes", "sales", "-", "A", "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 3000), "urn:uuid:"+f.siege.prey, "{"+f.siege.prey+"}", "__proto__", "%25%30%30", "a;b=c", ":sale", "%E2%80%AE")
}

// bend is the path in another way, which may lead anywhere.
func (f *forger) bend(path string) string {
	return one(f, path+"/", "/"+path, strings.Replace(path, "/v1/", "/v1//", 1), strings.Replace(path, "/v1/", "/v1/./", 1),
		strings.Replace(path, "/v1/", "/v1/x/../", 1), strings.Replace(path, "/v1/", "%2fv1%2f", 1), strings.ToUpper(path), path+";a=b", path+"%00", path+".json",
		"http://evil.example"+path, "/./"+path, strings.Replace(path, "/api/", "/api%2f", 1), path+"%2e%2e%2f", strings.Replace(path, "api", "%61pi", 1))
}

func (f *forger) query() string {
	if f.odds(2) {
		return ""
	}
	value := one(f, "-1", "0", "1e9", "NaN", "99999999999999999999", "%00", "%ff", "%25", "_", "%5c", "%27%20OR%201=1--", "%zz", "true", "maybe", "2026-01-01",
		f.siege.prey, f.siege.sale, hostileMark, strings.Repeat("a", 5000), "%F0%9F%98%80", "%ed%a0%80", "a&a=b", "", "%0d%0aX-Evil:1", "[]", ";")
	return "?" + one(f, "sale", "limit", "before", "q", "status", "dry_run", "token", "pass", "%00", "sale[]", "") + "=" + value
}

func (f *forger) header() string {
	address := one(f, "1.2.3.4", "unknown", "::1", "[::1]:80", "999.1.1.1", "fe80::1%25eth0", "1.2.3.4, 10.0.0.1", "_hidden", "127.0.0.1", ",", strings.Repeat("1.1.1.1,", 200), "::ffff:1.2.3.4", "\xff")
	return one(f,
		"X-Forwarded-For: "+address, "X-Real-IP: "+address, "Forwarded: for="+address,
		"Accept-Language: "+one(f, "zh", "*", "zh;q=NaN", strings.Repeat("a-", 100), "en;q=0.1;q=9,,,", "\xff", strings.Repeat("zh,", 2000), "x-y-z-0", "i-klingon"),
		"Origin: "+one(f, "null", "https://evil.example", "https://shop.example", "https://shop.example.evil.example", "http://", "\xff", "https://shop.example, https://evil.example"),
		"X-Request-Id: "+one(f, "a b", strings.Repeat("x", 65), "\xff\xfe", "<script>", "\\r\\nX-Evil: 1", "ok-1", hostileMark),
		"Range: "+one(f, "bytes=0-", "bytes=-1", "bytes=9-1", "bytes=0-0,1-1,2-2,3-3", "lines=1", "bytes="+strings.Repeat("0-1,", 1000), "bytes=18446744073709551616-"),
		"If-None-Match: "+one(f, "*", "\"", "W/", strings.Repeat("\"a\",", 1000)), "If-Modified-Since: never",
		"Accept: "+one(f, "text/html", "*/*;q=x", "application/xml"), "Accept-Encoding: "+one(f, "gzip;q=0", "br", "identity;q=0", strings.Repeat("gzip,", 500)),
		"Content-Encoding: gzip", "Cookie: "+strings.Repeat("a=b; ", 500), "Upgrade: "+one(f, "websocket", "h2c", "TLS/1.3"), "X-HTTP-Method-Override: DELETE",
		"X-Sluice-Pass: x", "Last-Event-ID: x", "Access-Control-Request-Method: "+one(f, "PUT", "\xff"), "Sec-WebSocket-Key: x", "Te: trailers", "Via: 1.1 x",
	)
}

// body is what may be sent to a route.
func (f *forger) body(to route) []byte {
	if strings.HasPrefix(to.path, "/api/v1/admin/sales/") && to.method == "PUT" && f.odds(2) {
		return f.saleFile()
	}
	if f.odds(3) {
		return f.object(to)
	}
	return one(f, func() []byte { return nil },
		func() []byte {
			return []byte(one(f, "null", "true", "[]", "{}", "\"\"", "0", "NaN", "{", "}", "[{}]", "{}{}", "{} x", "{\"a\"}", "'", "<a/>", "a=b", "\x00", "{\"\\u0000\":1}"))
		},
		func() []byte { return bytes.Repeat([]byte(one(f, "[", `{"item":`, "{\"a\":[")), 1+f.IntN(10_000)) },
		func() []byte { return append([]byte("\xef\xbb\xbf"), f.object(to)...) },
		func() []byte { object := f.object(to); return object[:f.IntN(len(object)+1)] },
		func() []byte {
			object := f.object(to)
			for range 1 + f.IntN(4) {
				object[f.IntN(len(object))] = byte(f.Uint32())
			}
			return object
		},
		func() []byte { return []byte(`{"item":"` + strings.Repeat("a", 1<<(10+f.IntN(11))) + `"}`) },
		func() []byte { return f.noise(f.IntN(2000)) },
	)()
}

// object is JSON with the fields that a route knows, and values that it does not.
func (f *forger) object(to route) []byte {
	fields := []string{"item", "qty", "request_id"}
	switch {
	case strings.HasSuffix(to.path, "/seat"):
		fields = []string{"seat", "code", "challenge"}
	case strings.Contains(to.path, "webhooks"):
		fields = []string{"order", "status", "event_id"}
	case strings.Contains(to.path, "admin"):
		fields = []string{"rate", "active", "ratio", "closes_at", "item", "total"}
	}
	fields = append(fields, one(f, "__proto__", "user", "", "Item", "item\\u0000", "qty"))
	var members []string
	for range f.IntN(6) {
		members = append(members, fmt.Sprintf(`"%s":%s`, one(f, fields...), f.value()))
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// value is one of JSON, more or less.
func (f *forger) value() string {
	return one(f, "null", "true", "0", "1", "-1", "-0", "1.5", "1e400", "9223372036854775807", "9223372036854775808", "NaN", "Infinity", "01", "0x1", "[]", "{}", `""`, `"main"`,
		`"\ud800"`, `"\u0000"`, `"`+"\xff\xfe"+`"`, `"😀"`, `"paid"`, `"refunded"`, `"`+hostileMark+`"`, `"'; DROP TABLE orders; --"`, `"{sluice}"`, `"a|b|c"`, `"\r\nX-Evil: 1"`, `"=1+1"`,
		`"`+f.siege.prey+`"`, `"`+f.uuid()+`"`, `"`+f.siege.seat+`"`, `"`+strings.Repeat("a", f.IntN(5000))+`"`, "["+strings.Repeat("1,", 2000)+"1]", `"2026-01-01T00:00:00Z"`, `"9999999-01-01"`, `"+1h"`)
}

// saleFile is one that somebody with the token of operators made a mess of.
func (f *forger) saleFile() []byte {
	good := fmt.Sprintf("id: %s\ntitle: { en: A, zh: B }\nitems:\n  - { id: main, stock: 5, price: 1 }\nopens_at: 2026-01-01T00:00:00Z\ncloses_at: 2099-01-01T00:00:00Z\nhold: 1h\nline: { order: off }\n", f.siege.spare)
	return []byte(one(f,
		"a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\nid: *c\n", strings.Repeat("- ", 5000)+"a", strings.Repeat("{a: ", 5000), "id: !!binary aGVsbG8=\n", "? [a]\n: b\n", "%YAML 9.9\n---\n", good+"---\n"+good, "\t", "id: |\n  a\n", "<<: *x\n",
		good+"hold: 5m\n", good+"unknown: 1\n", strings.Replace(good, "5,", one(f, "-5,", "1e9,", ".inf,", "0x10,", "9223372036854775808,", "~,", "'5',", "100000001,"), 1),
		strings.Replace(good, "2099", one(f, "0000", "99999", "2099-13", "1969", "2020"), 1), strings.Replace(good, "order: off", "order: "+one(f, "OFF", "lottery, beacon: x", "[off]", "fifo, turn: -1s", "fifo, rate: .nan", "fifo, ratio: 1e308"), 1),
		strings.Replace(good, "en: A", one(f, "en: \"<script>alert(1)</script>\"", "en: \"\\u202e\"", "en: \"\\0\"", "\"\\xff\": A", strings.Repeat("en: A, ", 100)+"en: A", "en: "+strings.Repeat("x", 5000)), 1),
		strings.Replace(good, "items:\n", "items:\n"+strings.Repeat("  - { id: x, stock: 1 }\n", 51), 1), good[:f.IntN(len(good))], string(f.noise(500)), strings.Repeat("#", 2<<20),
		strings.Replace(good, "id: ", "id: "+hostileMark+"-", 1)+"access: { codes: [ ] }\n",
	))
}

// bytes are the request as it goes over the wire.
func (r *request) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: sluice.example\r\n", r.method, r.target)
	for _, line := range r.header {
		b.WriteString(line + "\r\n")
	}
	if r.body != nil {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.body))
	}
	b.WriteString("\r\n")
	b.Write(r.body)
	return b.Bytes()
}

func (r *request) send(line *keptLine) effect {
	v := effect{kind: "request", sent: r.bytes()}
	resp, body, err := line.carry(r.method, v.sent)
	if err != nil {
		v.answer = "cut off"
		if timedOut(err) {
			v.wrong = "it is not answered"
		} else if len(r.body) < 64<<10 {
			v.wrong = "there is no answer: " + err.Error()
		}
		return v
	}
	v.answer = resp.Status[:3]
	v.wrong = r.wrong(resp, body)
	if v.wrong != "" {
		v.wrong += fmt.Sprintf("\nanswer: %s %q %.500q", resp.Status, resp.Header, body)
	}
	return v
}

// wrong is what is wrong with an answer.
func (r *request) wrong(resp *http.Response, body []byte) string {
	page := strings.HasPrefix(resp.Header.Get("Content-Security-Policy"), "default-src 'self'") // those have a form of their own
	media := resp.Header.Get("Content-Type")
	switch {
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusServiceUnavailable:
		return "a status that only a broken server has"
	case resp.StatusCode == http.StatusServiceUnavailable && !r.late:
		return "it is called unavailable, and all is well"
	case resp.Header.Get("X-Evil") != "":
		return "a header of the attacker is in the answer"
	case !page && strings.Contains(media, "html"):
		return "the API answers with a page"
	case page && bytes.Contains(body, []byte("alert(1)")):
		return "what was sent is in the page"
	case resp.StatusCode < 300 && !page && r.needs != "" && r.needs != r.who && r.method != http.MethodOptions && r.method != http.MethodHead:
		return fmt.Sprintf("it takes a right of %q, and %q got through", r.needs, r.who)
	case resp.StatusCode >= 400 && !page:
		return problemWrong(resp, r.method, body)
	}
	return ""
}

// inside is what only somebody who looks inside should read.
var inside = regexp.MustCompile(`(?i)\b(sql|redis|runtime error|json:|strconv|invalid character|goroutine|panic|pq:|EOF|nil|map\[|struct)\b|\.go:\d|0x[0-9a-f]{6}`)

// problemWrong is what is wrong with a refusal, which must say in a sentence why it is one.
func problemWrong(resp *http.Response, method string, body []byte) string {
	if media := resp.Header.Get("Content-Type"); media != "application/problem+json" {
		return fmt.Sprintf("a refusal of the type %q", media)
	}
	if method == http.MethodHead {
		return ""
	}
	var p struct {
		Status              int
		Code, Title, Detail string
	}
	if err := json.Unmarshal(body, &p); err != nil || !utf8.Valid(body) {
		return fmt.Sprintf("a refusal that is no JSON: %v", err)
	}
	switch {
	case p.Status != resp.StatusCode, p.Code == "", p.Title == "":
		return "a refusal with a part missing"
	case len(p.Detail) < 10, len(p.Detail) > 400, strings.ContainsAny(p.Detail, "\r\n"):
		return "the reason is no sentence"
	case inside.MatchString(p.Detail):
		return "the reason is in words of those who wrote the program"
	}
	return ""
}
