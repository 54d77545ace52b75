package main

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"
)

// passExamples are the files that docs/passes.md explains.
const passExamples = root + "/docs/examples/passes"

// passSale is a sale in which everybody who comes has a turn at once.
const passSale = `opens_at: 2026-01-01T00:00:00Z
closes_at: 2099-01-01T00:00:00Z
hold: 10m
line: { order: fifo, turn: 10m }`

// caller is a shopper with a turn, over a socket.
type caller struct {
	*site
	sale, user string
	conn       *websocket.Conn
	pass       string // of the turn
}

// call has a shopper come and be called.
func (s *site) call(sale, user string) *caller {
	s.t.Helper()
	c := &caller{site: s, sale: sale, user: user, conn: s.dial(sale, nil)}
	c.hello()
	c.pass, _ = c.hear("turn")["pass"].(string)
	return c
}

func (c *caller) hello() {
	c.t.Helper()
	c.say(map[string]string{"type": "hello", "token": tokenOf(c.t, c.user)})
}

func (c *caller) say(frame any) {
	c.t.Helper()
	if err := c.conn.WriteJSON(frame); err != nil {
		c.t.Fatal(err)
	}
}

// hear waits for a frame of that type.
func (c *caller) hear(kind string) map[string]any {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(longest))
	for {
		var frame map[string]any
		if err := c.conn.ReadJSON(&frame); err != nil {
			c.t.Fatalf("no %s came: %v", kind, err)
		}
		switch frame["type"] {
		case kind:
			return frame
		case "error": // something was slow
			c.hello()
		}
	}
}

// claimsOf is what a pass says by the keys that the site publishes: what a shop knows, and nothing more.
func (s *site) claimsOf(pass, sale string) jwt.MapClaims {
	s.t.Helper()
	resp, err := http.Get(s.url + "/.well-known/jwks.json")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var set struct{ Keys []struct{ Kid, X string } }
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		s.t.Fatal(err)
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(pass, claims, func(t *jwt.Token) (any, error) {
		for _, key := range set.Keys {
			if key.Kid == t.Header["kid"] {
				x, err := base64.RawURLEncoding.DecodeString(key.X)
				return ed25519.PublicKey(x), err
			}
		}
		return nil, fmt.Errorf("no key %v", t.Header["kid"])
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer("sluice"), jwt.WithAudience(sale), jwt.WithExpirationRequired())
	if err != nil {
		s.t.Fatalf("the pass %s: %v", pass, err)
	}
	return claims
}

// authorizes is how the site answers a proxy about a pass.
func (s *site) authorizes(pass, sale string) int {
	s.t.Helper()
	return s.ask(http.MethodGet, "/auth?sale="+sale, pass, "").status
}

// forgeries are passes that no back end may take, made of a good one with what only the server has: its key.
func forgeries(t *testing.T, good jwt.MapClaims, pass string) map[string]string {
	t.Helper()
	seed, err := hkdf.Key(sha256.New, []byte(e2eSecret), nil, "sluice pass v1", ed25519.SeedSize)
	if err != nil {
		t.Fatal(err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	token, parts, err := jwt.NewParser().ParseUnverified(pass, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	sign := func(by ed25519.PrivateKey, changes jwt.MapClaims) string {
		claims := maps.Clone(good)
		maps.Copy(claims, changes)
		maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
		forged := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
		forged.Header["kid"] = token.Header["kid"]
		text, err := forged.SignedString(by)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	encode := base64.RawURLEncoding.EncodeToString
	head := func(alg string) string {
		return encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"JWT"}`, alg, token.Header["kid"])) + "." + parts[1]
	}
	mac := hmac.New(sha256.New, key.Public().(ed25519.PublicKey))
	mac.Write([]byte(head("HS256")))
	now := time.Now().Unix()
	return map[string]string{
		"nothing":                      "",
		"nonsense":                     "a.b.c",
		"alg none":                     head("none") + ".",
		"alg none, with a signature":   head("none") + "." + parts[2],
		"alg HS256, by the public key": head("HS256") + "." + encode(mac.Sum(nil)),
		"another key":                  sign(ed25519.NewKeyFromSeed(make([]byte, 32)), nil),
		"no signature":                 parts[0] + "." + parts[1] + ".",
		"cut off":                      pass[:len(pass)-1],
		"more behind it":               pass + "A",
		"expired":                      sign(key, jwt.MapClaims{"exp": now - 60}),
		"no end":                       sign(key, jwt.MapClaims{"exp": nil}),
		"of tomorrow":                  sign(key, jwt.MapClaims{"nbf": now + 86400}),
		"another issuer":               sign(key, jwt.MapClaims{"iss": "somebody"}),
		"another sale":                 sign(key, jwt.MapClaims{"aud": "another", "sale": "another"}),
		"another sale, our audience":   sign(key, jwt.MapClaims{"sale": "another"}),
		"our sale, another audience":   sign(key, jwt.MapClaims{"aud": "another"}),
	}
}

// shopUser has what a header cannot hold as it is.
const shopUser = "安 ann+1@shop.example"

func TestAShopOfAnotherOriginLetsInOnlyThoseWhoBelong(t *testing.T) {
	t.Parallel()
	s := open(t, "--data-dir", t.TempDir())
	sale := freshID()
	s.apply(saleFile(t, sale, 5, passSale))
	shopper := s.call(sale, shopUser)
	shops, gate := newShops(t, s, sale), newGate(t, s, sale)
	forged := forgeries(t, s.claimsOf(shopper.pass, sale), shopper.pass)

	checkDoor(t, s, sale)
	for name, at := range shops {
		mustShow(t, "a good pass, "+name, at, shopper.pass, http.StatusOK, shopUser)
		for what, pass := range forged {
			mustShow(t, what+", "+name, at, pass, http.StatusUnauthorized, "")
		}
	}
	checkGate(t, gate, s.call(sale, shopUser+"2"), forged)
	s.kill() // passes are verified without it, and at the door nobody is told that their turn is over
	for name, at := range shops {
		mustShow(t, "a good pass without Sluice, "+name, at, shopper.pass, http.StatusOK, shopUser)
	}
	if resp, body := gate.get("/?pass=" + shopper.pass); resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("nginx without Sluice: got %d %q", resp.StatusCode, body)
	}
}

// checkDoor follows the passes of a shopper through turn, order and cancellation.
func checkDoor(t *testing.T, s *site, sale string) {
	ann := s.call(sale, "ann")
	if claims := s.claimsOf(ann.pass, sale); claims["sub"] != "ann" || claims["sale"] != sale || claims["order"] != nil {
		t.Errorf("the pass of the turn says %v", claims)
	}
	want(t, "answer about the turn", s.authorizes(ann.pass, sale), http.StatusNoContent)
	want(t, "answer about another sale", s.authorizes(ann.pass, "another"), http.StatusUnauthorized)
	ann.say(map[string]string{"type": "grab", "id": "r"})
	success := ann.hear("success")
	order := success["order"].(map[string]any)["id"].(string)
	bought, _ := success["pass"].(string)
	if claims := s.claimsOf(bought, sale); claims["order"] != order {
		t.Errorf("the pass of the order says %v", claims)
	}
	renewed := s.ask(http.MethodPost, "/sales/"+sale+"/pass", tokenOf(t, "ann"), "")
	again, _ := renewed.fields["pass"].(string)
	passes := []string{ann.pass, bought, again}
	for _, pass := range passes {
		want(t, "answer about the order", s.authorizes(pass, sale), http.StatusNoContent)
	}
	eventually(t, "the order is cancelled", func() bool { return s.act("ann", order, "cancel") == "cancelled" })
	for _, pass := range passes {
		eventually(t, "the pass is refused", func() bool { return s.authorizes(pass, sale) == http.StatusForbidden })
		s.claimsOf(pass, sale) // whoever asks nobody cannot know
	}
	want(t, "renewal", s.ask(http.MethodPost, "/sales/"+sale+"/pass", tokenOf(t, "ann"), "").status, http.StatusForbidden)
}

// newShops starts the examples of back ends and returns where they are.
func newShops(t *testing.T, s *site, sale string) map[string]string {
	t.Helper()
	shops := map[string]string{}
	for name, shop := range startShops(t, "SLUICE="+s.url, "SALE="+sale) {
		shops[name] = shop.says(`listening on (\S+)`)
	}
	return shops
}

// startShops starts the examples of back ends with settings, "NAME=value".
func startShops(t *testing.T, settings ...string) map[string]*process {
	t.Helper()
	shops := map[string]*process{}
	for name, cmd := range shopCommands(t) {
		shops[name] = startShop(t, name, cmd, settings...)
	}
	return shops
}

func startShop(t *testing.T, name string, cmd *exec.Cmd, settings ...string) *process {
	t.Helper()
	cmd.Env = append(append(os.Environ(), "PORT=0"), settings...)
	return launch(t, "the shop "+name, cmd)
}

// shopCommands are what the examples of back ends are started by.
func shopCommands(t *testing.T) map[string]*exec.Cmd {
	t.Helper()
	built := filepath.Join(t.TempDir(), "shop")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", built, passExamples+"/go").CombinedOutput(); err != nil {
		t.Fatalf("build the example in Go: %v\n%s", err, out)
	}
	commands := map[string]*exec.Cmd{
		"in Go":   exec.Command(built),
		"in Node": exec.Command("node", passExamples+"/node/shop.mjs"),
	}
	// Java is no need of the other tests: this one runs where it is there.
	if java, err := exec.LookPath("java"); err == nil {
		if jars, _ := filepath.Glob("/usr/share/java/jackson-*.jar"); len(jars) > 0 {
			commands["in Java"] = exec.Command(java, "-cp", strings.Join(jars, ":"), passExamples+"/java/Shop.java")
		}
	}
	return commands
}

func TestAShopSaysWhyAPassIsRefused(t *testing.T) {
	t.Parallel()
	s, sale, pass := openWithTurn(t)
	for name, shop := range startShops(t, "SLUICE="+s.url, "SALE="+sale, "ISSUER=https://another.example") {
		mustShow(t, "another ISSUER, "+name, shop.says(`listening on (\S+)`), pass, http.StatusUnauthorized, "")
		shop.says(`a pass was refused: its issuer is "sluice" .* ISSUER is "(https://another\.example)"`)
		if strings.Contains(shop.err.String(), pass) {
			t.Errorf("%s logs the pass:\n%s", name, shop.err.String())
		}
	}
}

func TestAShopThatCannotReadKeysRefusesNobody(t *testing.T) {
	t.Parallel()
	s, sale, pass := openWithTurn(t)
	front := newFront(t, s)
	for name, shop := range startShops(t, "SLUICE="+front.URL, "SALE="+sale) {
		at := shop.says(`listening on (\S+)`)
		front.away.Store(true)
		mustShow(t, "keys that are away, "+name, at, pass, http.StatusServiceUnavailable, "")
		shop.says(`the keys of Sluice.* cannot be read.*(502)`)
		front.away.Store(false)
		eventually(t, "keys that are there again, "+name, func() bool { return statusOf(t.Context(), at, pass) == http.StatusOK })
	}
}

func TestAShopForgetsAKeyThatWasWithdrawn(t *testing.T) {
	t.Parallel()
	s, sale, pass := openWithTurn(t)
	for name, cmd := range shopCommands(t) {
		front := newFront(t, s)
		shop := startShop(t, name, cmd, "SLUICE="+front.URL, "SALE="+sale, "KEYS_AGE=1")
		at := shop.says(`listening on (\S+)`)
		mustShow(t, "a key that is there, "+name, at, pass, http.StatusOK, shopUser)
		front.away.Store(true)
		shop.says(`the keys of Sluice.* cannot be read.*(502)`)
		mustShow(t, "a key that is known while Sluice is away, "+name, at, pass, http.StatusOK, shopUser)
		front.others.Store(true)
		front.away.Store(false)
		eventually(t, "a key that is not there any more, "+name, func() bool { return statusOf(t.Context(), at, pass) == http.StatusUnauthorized })
	}
}

func TestAVisitorWhoLeavesTakesNoKeysAlong(t *testing.T) {
	t.Parallel()
	s, sale, pass := openWithTurn(t)
	front := newFront(t, s)
	for name, shop := range startShops(t, "SLUICE="+front.URL, "SALE="+sale) {
		at := shop.says(`listening on (\S+)`)
		front.hold.Store(true)
		first, leave := context.WithCancel(t.Context())
		left := make(chan int)
		go func() { left <- statusOf(first, at, pass) }()
		answer := <-front.asked
		front.hold.Store(false)
		leave()
		want(t, "answer to whom has left, "+name, <-left, 0)
		second := make(chan int)
		go func() { second <- statusOf(t.Context(), at, pass) }()
		for range 3 { // nobody else waits for the keys
			mustShow(t, "nonsense, "+name, at, "a.b.c", http.StatusUnauthorized, "")
		}
		close(answer)
		want(t, "answer to the next, "+name, <-second, http.StatusOK)
	}
}

// openWithTurn is a site with a sale, and the pass of somebody who has a turn in it.
func openWithTurn(t *testing.T) (s *site, sale, pass string) {
	t.Helper()
	s, sale = open(t, "--data-dir", t.TempDir()), freshID()
	s.apply(saleFile(t, sale, 5, passSale))
	return s, sale, s.call(sale, shopUser).pass
}

// front is a proxy between a shop and Sluice.
type front struct {
	*httptest.Server
	away   atomic.Bool
	others atomic.Bool // are the keys that it has, not those of Sluice
	hold   atomic.Bool // an answer until the channel that comes from asked is closed
	asked  chan chan struct{}
}

func newFront(t *testing.T, s *site) *front {
	t.Helper()
	behind, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(behind)
	f := &front{asked: make(chan chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.hold.Load() {
			answer := make(chan struct{})
			f.asked <- answer
			<-answer
		}
		if f.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if f.others.Load() {
			key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
			fmt.Fprintf(w, `{"keys":[{"kid":"none","kty":"OKP","crv":"Ed25519","x":"AAAA"},{"kid":"another","kty":"OKP","crv":"Ed25519","x":%q}]}`, base64.RawURLEncoding.EncodeToString(key))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// statusOf is how a shop answers a pass; 0 = it did not.
func statusOf(ctx context.Context, at, pass string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+pass)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// mustShow shows a pass to a shop and checks its answer.
func mustShow(t *testing.T, what, at, pass string, status int, user string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+pass)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ User, Error string }
	err = json.NewDecoder(resp.Body).Decode(&answer)
	if err != nil || resp.StatusCode != status || answer.User != user || (user == "") == (answer.Error == "") {
		t.Errorf("%s: got %d %+v, %v; want %d and the user %q", what, resp.StatusCode, answer, err, status, user)
	}
}

// gate is an nginx with the configuration of the examples, in front of a shop that says who it thinks is there.
type gate struct {
	t      *testing.T
	client *http.Client
}

func newGate(t *testing.T, s *site, sale string) *gate {
	t.Helper()
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s", strings.Join(r.Header.Values("X-Sluice-User"), "&"))
	}))
	t.Cleanup(shop.Close)
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx" // not on everybody's PATH
	}
	dir := t.TempDir()
	// Paths of sockets have to be short, and those of tests are not.
	short, err := os.MkdirTemp("", "gate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	socket := filepath.Join(short, "s")
	conf := string(readFile(t, "docs/examples/passes/nginx.conf"))
	for from, to := range map[string]string{
		"server serve-1:8080;":                          "server " + s.address() + ";",
		"server shop:3000;":                             "server " + shop.Listener.Addr().String() + ";",
		"listen 8081;":                                  "listen unix:" + socket + ";",
		"auth?sale=phone-x;":                            "auth?sale=" + sale + ";",
		"access_log /var/log/nginx/shop.log":            "access_log " + dir + "/shop.log",
		"limit_req zone=shop_address burst=100 nodelay": "limit_req zone=shop_address burst=1000 nodelay",
	} {
		if strings.Count(conf, from) != 1 {
			t.Fatalf("the example has %q %d times", from, strings.Count(conf, from))
		}
		conf = strings.Replace(conf, from, to, 1)
	}
	main := "daemon off; master_process off; pid nginx.pid; error_log stderr;\nevents {}\nhttp {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		main += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(dir, kind))
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(main+conf+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, "nginx", exec.Command(nginx, "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "nginx.conf")))
	g := &gate{t: t, client: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	eventually(t, "nginx listens", func() bool { _, err := os.Stat(socket); return err == nil })
	t.Cleanup(func() {
		log, err := os.ReadFile(filepath.Join(dir, "shop.log"))
		if err != nil || len(log) == 0 || strings.Contains(string(log), "pass") {
			t.Errorf("nginx logs %v:\n%s", err, log)
		}
	})
	return g
}

// get asks for a page of the shop; header lines alternate name and value.
func (g *gate) get(path string, header ...string) (resp *http.Response, body string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodGet, "http://shop.example"+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	if resp, err = g.client.Do(req); err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp, string(text)
}

// checkGate comes to a shop behind nginx with good passes and with forged ones, and leaves the line.
func checkGate(t *testing.T, g *gate, shopper *caller, forged map[string]string) {
	hello := "hello " + strings.ReplaceAll(url.QueryEscape(shopper.user), "+", "%20")

	resp, body := g.get("/checkout?item=1&pass="+shopper.pass, "X-Sluice-User", "the-boss")
	if resp.StatusCode != http.StatusOK || body != hello {
		t.Errorf("with the pass in the query: got %d %q", resp.StatusCode, body)
	}
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if resp, body = g.get("/cart", "Cookie", cookie); resp.StatusCode != http.StatusOK || body != hello || resp.Header.Get("Set-Cookie") != "" {
		t.Errorf("with the cookie %q: got %d %q %v", cookie, resp.StatusCode, body, resp.Header)
	}
	for what, pass := range forged {
		resp, body := g.get("/?pass="+pass, "X-Sluice-User", "the-boss", "X-Sluice-Pass", shopper.pass, "Authorization", "Bearer "+shopper.pass)
		if resp.StatusCode != http.StatusSeeOther || strings.Contains(body, "hello") {
			t.Errorf("%s: got %d %q, want 303", what, resp.StatusCode, body)
		}
	}
	want(t, "answer to whom has nothing", func() int { resp, _ := g.get("/"); return resp.StatusCode }(), http.StatusSeeOther)

	shopper.say(map[string]string{"type": "leave"})
	eventually(t, "who has left is not let in", func() bool {
		resp, _ := g.get("/", "Cookie", cookie)
		return resp.StatusCode == http.StatusForbidden
	})
}
