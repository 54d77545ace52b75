package server

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"sluice/queue"
)

// onTurn is a seat of phone-x whose turn lasts half a minute from testNow on.
func onTurn(user string) queue.Seat {
	return queue.Seat{
		User: user, Ticket: 7, Number: 7, Epoch: 2, Status: queue.Turn, Deadline: testNow().Add(30*time.Second).UnixMilli() - 5000, Stopped: 5000,
		State: queue.Open, Stock: queue.Available,
	}
}

// buyer is a seat of phone-x with an order.
func buyer(user string, status queue.OrderStatus, payBy int64) queue.Seat {
	seat := onTurn(user)
	seat.Status, seat.Deadline = queue.Buyer, 0
	seat.Order = &queue.Order{
		ID: orderIDOf(user), Sale: "phone-x", Item: "black", User: user, Qty: 1, Status: status, PayBy: payBy,
	}
	return seat
}

// orderIDOf is the id of a user's order.
func orderIDOf(user string) string { return uuid.NewSHA1(uuid.Nil, []byte(user)).String() }

// published are the keys that a shop finds, and nothing else of them.
func (b *bench) published() map[string]ed25519.PublicKey {
	b.Helper()
	a := b.send(http.MethodGet, "/.well-known/jwks.json", "")
	if a.status != http.StatusOK || a.header.Get("Cache-Control") != "public, max-age=300" {
		b.Fatalf("got %d %v %s", a.status, a.header, a.body)
	}
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(a.body, &set); err != nil {
		b.Fatal(err)
	}
	keys := map[string]ed25519.PublicKey{}
	for _, key := range set.Keys {
		if names := slices.Sorted(maps.Keys(key)); !slices.Equal(names, []string{"alg", "crv", "kid", "kty", "use", "x"}) {
			b.Errorf("a key has %v", names)
		}
		if key["alg"] != "EdDSA" || key["crv"] != "Ed25519" || key["kty"] != "OKP" || key["use"] != "sig" {
			b.Errorf("a key is %v", key)
		}
		keys[key["kid"]] = must[[]byte](b.T)(base64.RawURLEncoding.DecodeString(key["x"]))
	}
	return keys
}

// read verifies a pass as a shop does: by the published keys alone.
func (b *bench) read(pass string) jwt.MapClaims {
	b.Helper()
	keys := b.published()
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(pass, claims, func(t *jwt.Token) (any, error) {
		return keys[t.Header["kid"].(string)], nil
	}, jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithIssuer("sluice"), jwt.WithAudience("phone-x"), jwt.WithTimeFunc(testNow))
	if err != nil {
		b.Fatalf("a shop refuses %s: %v", pass, err)
	}
	return claims
}

// renew asks for a pass, which must be given.
func (b *bench) renew(user string) string {
	b.Helper()
	a := b.send(http.MethodPost, "/api/v1/sales/phone-x/pass", "", b.as(user)...)
	pass, _ := a.field(b.T, "pass").(string)
	if a.status != http.StatusOK || pass == "" || a.header.Get("Cache-Control") != "no-store" {
		b.Fatalf("no pass for %s: %d %s", user, a.status, a.body)
	}
	return pass
}

// stand has the line say where everybody stands.
func (b *bench) stand(seat func(user string) queue.Seat) {
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) { return seat(req.User), nil }
	b.line.look = func(_, user string) (queue.Seat, error) { return seat(user), nil }
}

func TestAPassSaysWhoseItIsAndIsVerifiedByThePublishedKeysAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.stand(onTurn)
	var asked queue.JoinRequest
	b.line.join = func(req queue.JoinRequest) (queue.Seat, error) { asked = req; return onTurn(req.User), nil }
	a := b.send(http.MethodPost, "/api/v1/sales/phone-x/pass", "", b.as("ann")...)
	if want := (queue.JoinRequest{Sale: "phone-x", User: "ann", Address: "192.0.2.1", Resume: queue.ResumeAny}); !cmp.Equal(want, asked, cmpopts.EquateComparable(netip.Addr{})) {
		t.Errorf("the line was asked for %+v, want %+v", asked, want)
	}
	claims := b.read(a.field(t, "pass").(string))
	id, _ := claims["jti"].(string)
	delete(claims, "jti")
	now := float64(testNow().Unix())
	want := jwt.MapClaims{
		"iss": "sluice", "aud": "phone-x", "sub": "ann", "sale": "phone-x", "seat": 7.0, "epoch": 2.0,
		"iat": now, "nbf": now - 30, "exp": now + 30,
	}
	if diff := cmp.Diff(want, claims); diff != "" || len(id) < 32 {
		t.Errorf("jti %q, and (-want +got):\n%s", id, diff)
	}
	if got := a.field(t, "expires_at"); got != float64(testNow().Add(30*time.Second).UnixMilli()) {
		t.Errorf("it expires at %v", got)
	}
	if again := b.read(b.renew("ann")); again["jti"] == id {
		t.Error("two passes have one name")
	}

	b.stand(func(user string) queue.Seat {
		return buyer(user, queue.Reserved, testNow().Add(time.Minute).UnixMilli())
	})
	if claims := b.read(b.renew("ann")); claims["order"] != orderIDOf("ann") || claims["exp"] != now+60 {
		t.Errorf("the pass of an order says %v", claims)
	}
}

func TestNodesWithTheSameSecretsHaveTheSameKeysAndAllOfThemVerify(t *testing.T) {
	t.Parallel()
	older, newer := []byte("the older secret of both nodes"), []byte("the newer secret of both nodes")
	node := func(secrets ...[]byte) *bench {
		b := newBench(t, func(o *Options) { o.Secrets = secrets })
		b.stand(onTurn)
		return b
	}
	before, during, after := node(older), node(older, newer, older), node(newer, older)
	if got := len(before.published()); got != 1 {
		t.Errorf("one secret makes %d keys", got)
	}
	if diff := cmp.Diff(during.published(), after.published()); diff != "" {
		t.Errorf("the order of the secrets changes the keys (-before +after):\n%s", diff)
	}
	mint := func(b *bench) string {
		pass, _, err := b.server.passes.mint(must2(groundOf(new(phoneX()), onTurn("ann"))))
		if err != nil {
			t.Fatal(err)
		}
		return pass
	}
	kid := func(pass string) any {
		token, _, err := jwt.NewParser().ParseUnverified(pass, jwt.MapClaims{})
		if err != nil {
			t.Fatal(err)
		}
		return token.Header["kid"]
	}
	first, second := mint(before), mint(after)
	if kid(first) == kid(second) || kid(mint(during)) != kid(first) {
		t.Error("it is not the first secret that signs")
	}
	for name, b := range map[string]*bench{"during": during, "after": after} {
		for _, pass := range []string{first, second} {
			if _, err := b.server.passes.verify(pass, "phone-x"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := before.server.passes.verify(second, "phone-x"); queue.CodeOf(err) != queue.Unauthenticated {
		t.Errorf("a key that is not known is taken: %v", err)
	}
}

// must2 is the ground that there must be.
func must2(g ground, ok bool) ground {
	if !ok {
		panic("there is no ground for a pass")
	}
	return g
}

func TestAKeyIsNamedByItsThumbprint(t *testing.T) {
	t.Parallel()
	// The example of RFC 8037, appendix A.
	got, err := thumbprint(jwk{Type: "OKP", Curve: "Ed25519", X: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
	if want := "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

// forger makes passes that are wrong in one way, with all that a forger could have. Each is to be refused with 401.
type forger struct {
	*testing.T
	key    ed25519.PrivateKey // of the server; only for what is wrong in its claims
	kid    string
	claims map[string]any // of a good pass
}

func newForger(t *testing.T, secret []byte, good map[string]any) *forger {
	keys := must[*passKeys](t)(newPassKeys([][]byte{secret}))
	return &forger{T: t, key: keys.signer, kid: keys.id, claims: good}
}

// with signs the good claims with some of them changed; nil leaves one out.
func (f *forger) with(changes map[string]any) string {
	claims := jwt.MapClaims(maps.Clone(f.claims))
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return f.sign(jwt.SigningMethodEdDSA, claims, f.key, f.kid)
}

func (f *forger) sign(method jwt.SigningMethod, claims jwt.MapClaims, key any, kid string) string {
	f.Helper()
	t := jwt.NewWithClaims(method, claims)
	t.Header["kid"] = kid
	return must[string](f.T)(t.SignedString(key))
}

func (f *forger) forgeries(now time.Time) map[string]string {
	f.Helper()
	good := f.with(nil)
	parts := strings.Split(good, ".")
	encode := base64.RawURLEncoding.EncodeToString
	public := f.key.Public().(ed25519.PublicKey)
	der := must[[]byte](f.T)(x509.MarshalPKIXPublicKey(public))
	own := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	// Whoever takes the algorithm from the pass checks this one as an HMAC, by the key that everybody knows.
	hs256 := func(key []byte) string {
		text := encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q,"typ":"JWT"}`, f.kid)) + "." + parts[1]
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return text + "." + encode(mac.Sum(nil))
	}
	none := encode(fmt.Appendf(nil, `{"alg":"none","kid":%q,"typ":"JWT"}`, f.kid)) + "." + parts[1] + "."
	bob := must[[]byte](f.T)(json.Marshal(func() map[string]any { c := maps.Clone(f.claims); c["sub"] = "bob"; return c }()))
	return map[string]string{
		"of no signature":                     none,
		"of no signature, with a signature":   none + parts[2],
		"HS256 by the public key":             hs256(public),
		"HS256 by the public key as PEM":      hs256(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		"HS256 by nothing":                    hs256(nil),
		"by another key under our name":       f.sign(jwt.SigningMethodEdDSA, f.claims, own, f.kid),
		"by another key under its own name":   f.sign(jwt.SigningMethodEdDSA, f.claims, own, "another"),
		"without a name of a key":             f.sign(jwt.SigningMethodEdDSA, f.claims, f.key, ""),
		"with another user inside":            parts[0] + "." + encode(bob) + "." + parts[2],
		"without its signature":               parts[0] + "." + parts[1] + ".",
		"cut off":                             good[:len(good)-1],
		"with something behind it":            good + "A",
		"of another sale":                     f.with(map[string]any{"aud": "solo", "sale": "solo"}),
		"of another sale, with our audience":  f.with(map[string]any{"sale": "solo"}),
		"of another sale, which says our own": f.with(map[string]any{"aud": "solo"}),
		"of no audience":                      f.with(map[string]any{"aud": nil}),
		"of another issuer":                   f.with(map[string]any{"iss": "somebody"}),
		"of no issuer":                        f.with(map[string]any{"iss": nil}),
		"of nobody":                           f.with(map[string]any{"sub": nil}),
		"expired":                             f.with(map[string]any{"exp": now.Unix()}),
		"without end":                         f.with(map[string]any{"exp": nil}),
		"of tomorrow":                         f.with(map[string]any{"nbf": now.Unix() + 3600}),
		"nonsense":                            "nonsense",
		"too long":                            good + strings.Repeat("A", maxPass),
	}
}

func TestAForgedPassIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.stand(onTurn)
	good := b.renew("ann")
	b.line.look = func(sale, user string) (queue.Seat, error) {
		t.Errorf("Redis was asked for %s in %s", user, sale)
		return onTurn(user), nil
	}
	f := newForger(t, testSecret(), b.read(good))
	passes := f.forgeries(testNow())
	passes["none at all"] = ""
	// A guest's, a seat's and a user's token are no passes, whoever signed them.
	passes["a user's token"] = must[string](t)(mintUser(testSecret(), "ann"))
	passes["a seat token"] = must[string](t)(b.server.Identities().MintSeat(SeatToken{Sale: "phone-x", User: "ann", Ticket: 7}))
	_, guest, _, err := b.server.Identities().Guest()
	passes["a guest's token"] = must[string](t)(guest, err)
	for name, pass := range passes {
		a := b.send(http.MethodGet, "/api/v1/auth?sale=phone-x", "", "X-Sluice-Pass", pass)
		if a.status != http.StatusUnauthorized || a.field(t, "code") != "unauthenticated" || a.header.Get("X-Sluice-User") != "" {
			t.Errorf("a pass %s: got %d %v %s, want 401", name, a.status, a.header, a.body)
		}
	}
	// Nor is a pass what says who is asking.
	b.mustFail(b.send(http.MethodGet, "/api/v1/orders", "", "Authorization", "Bearer "+good), http.StatusUnauthorized, queue.Unauthenticated)
}

func TestAPassOfWhichOneCharacterIsAnotherIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.stand(onTurn)
	pass := []byte(b.renew("ann"))
	for i := range pass {
		before := pass[i]
		if pass[i] = 'A'; before == 'A' {
			pass[i] = 'B' // at the end of a part it may stand for the same bytes, and is refused all the same
		}
		if _, err := b.server.passes.verify(string(pass), "phone-x"); queue.CodeOf(err) != queue.Unauthenticated {
			t.Errorf("%s is taken, changed at %d: %v", pass, i, err)
		}
		pass[i] = before
	}
}

// Of faults: another user's pass cannot be had.
func TestNobodyGetsAPassOfSomebodyElse(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.stand(func(user string) queue.Seat {
		if user == "ann" {
			return onTurn(user)
		}
		return queue.Seat{User: user, Ticket: 8, Number: 8, Status: queue.Waiting, State: queue.Open, Stock: queue.Available}
	})
	if got := b.read(b.renew("ann"))["sub"]; got != "ann" {
		t.Errorf("ann's pass is of %v", got)
	}
	b.mustFail(b.send(http.MethodPost, "/api/v1/sales/phone-x/pass", ""), http.StatusUnauthorized, queue.Unauthenticated)
	for _, header := range [][]string{nil, {"X-User-Id", "ann"}, {"X-Sluice-User", "ann"}, {"X-Sluice-Pass", b.renew("ann")}} {
		a := b.send(http.MethodPost, "/api/v1/sales/phone-x/pass?user=ann", `{"user":"ann","sub":"ann"}`, append(b.as("bob"), header...)...)
		b.mustFail(a, http.StatusForbidden, queue.Forbidden)
	}
}

func TestAPassIsGivenForWhatStandsAndEndsWithIt(t *testing.T) {
	t.Parallel()
	now := testNow().UnixMilli()
	turn := func(change func(*queue.Seat)) queue.Seat { s := onTurn("ann"); change(&s); return s }
	off := func(state queue.State, stock queue.StockState) queue.Seat {
		return queue.Seat{User: "ann", Status: queue.NoSeat, State: state, Stock: stock}
	}
	lined, free := phoneX(), phoneX()
	free.Line = queue.Line{Order: queue.Off}
	soon := free
	soon.ClosesAt = testNow().Add(time.Minute)
	for name, c := range map[string]struct {
		sale queue.Sale
		seat queue.Seat
		want int64 // seconds; 0 = no pass
	}{
		"a turn":                              {lined, onTurn("ann"), 30},
		"a turn of an hour":                   {lined, turn(func(s *queue.Seat) { s.Deadline += 3600_000 }), 3630},
		"a turn in a pause":                   {lined, turn(func(s *queue.Seat) { s.State = queue.Paused; s.Stopped += 9000 }), 39},
		"a turn while the sale is put right":  {lined, turn(func(s *queue.Seat) { s.State = queue.Recovering }), 30},
		"a turn of which a moment is left":    {lined, turn(func(s *queue.Seat) { s.Deadline -= 29_500 }), 0},
		"a turn that is over":                 {lined, turn(func(s *queue.Seat) { s.Deadline -= 60_000 }), 0},
		"a turn when the sale has closed":     {lined, turn(func(s *queue.Seat) { s.State = queue.Closed }), 0},
		"somebody who waits":                  {lined, turn(func(s *queue.Seat) { s.Status = queue.Waiting }), 0},
		"somebody who missed the turn":        {lined, turn(func(s *queue.Seat) { s.Status = queue.Missed }), 0},
		"somebody without a seat":             {lined, off(queue.Open, queue.Available), 0},
		"an unpaid order":                     {lined, buyer("ann", queue.Confirmed, now+60_000), 60},
		"an unpaid order after the close":     {lined, turn(func(s *queue.Seat) { *s = buyer("ann", queue.Reserved, now+60_000); s.State = queue.Closed }), 60},
		"an order to be paid in an hour":      {lined, buyer("ann", queue.Confirmed, now+3600_000), 900},
		"an order whose time is up":           {lined, buyer("ann", queue.Confirmed, now), 0},
		"an order that needs no payment":      {lined, buyer("ann", queue.Confirmed, 0), 900},
		"an order that was paid":              {lined, buyer("ann", queue.Paid, now-60_000), 900},
		"an order that was cancelled":         {lined, buyer("ann", queue.Cancelled, now+60_000), 0},
		"an order that was rejected":          {lined, buyer("ann", queue.Rejected, 0), 0},
		"an open sale without a line":         {free, off(queue.Open, queue.Available), 900},
		"a sale without a line, soon over":    {soon, off(queue.Open, queue.Available), 60},
		"a paused sale without a line":        {free, off(queue.Paused, queue.Available), 900},
		"a sale without a line before":        {free, off(queue.Lobby, queue.Available), 0},
		"a sale without a line, sold out":     {free, off(queue.Open, queue.Gone), 0},
		"a sale without a line, all is held":  {free, off(queue.Open, queue.Held), 0},
		"a sale without a line, closed":       {free, off(queue.Closed, queue.Available), 0},
		"a sale without a line, is put right": {free, off(queue.Recovering, queue.Available), 0},
	} {
		p := must[*passes](t)(newPasses([][]byte{testSecret()}, "", testNow))
		var got int64
		if g, ok := groundOf(&c.sale, c.seat); ok {
			pass, ends, err := p.mint(g)
			if err != nil {
				t.Fatal(err)
			}
			if pass != "" {
				got = ends - testNow().Unix()
			}
		}
		if got != c.want {
			t.Errorf("%s: a pass of %d s, want %d", name, got, c.want)
		}
	}
}

func TestTheLongestUserHasAPassThatIsTaken(t *testing.T) {
	t.Parallel()
	p := must[*passes](t)(newPasses([][]byte{testSecret()}, strings.Repeat("i", 256), testNow))
	for _, c := range []string{"a", "<", "\u2028", "手"} {
		user := strings.Repeat(c, maxUser/len(c))
		pass, _, err := p.mint(ground{sale: strings.Repeat("s", 63), user: user, seat: 1 << 50, epoch: 1 << 50, order: strings.Repeat("o", 36)})
		if err != nil {
			t.Fatal(err)
		}
		claims, err := p.verify(pass, strings.Repeat("s", 63))
		if err != nil || claims.Subject != user || claims.Seat != 1<<50 {
			t.Errorf("a pass of %d bytes for %q is read as %+v: %v", len(pass), user, claims, err)
		}
	}
}

func TestTheStateOfASeatCarriesAPass(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.stand(onTurn)
	get := func() answer {
		b.Helper()
		return b.send(http.MethodGet, "/api/v1/sales/phone-x/seat", "", b.as("ann")...)
	}
	b.snaps["phone-x"].Stopped = 5000
	a := get()
	if pass, _ := a.field(t, "pass").(string); a.field(t, "type") != "turn" || b.read(pass)["seat"] != 7.0 {
		t.Errorf("got %s", a.body)
	}
	b.stand(func(user string) queue.Seat { return buyer(user, queue.Paid, 0) })
	a = get()
	if pass, _ := a.field(t, "pass").(string); a.field(t, "type") != "order" || b.read(pass)["order"] != orderIDOf("ann") {
		t.Errorf("got %s", a.body)
	}
	b.stand(func(user string) queue.Seat { s := onTurn(user); s.Status = queue.Waiting; return s })
	if a = get(); a.field(t, "type") != "queued" || a.field(t, "pass") != nil {
		t.Errorf("got %s", a.body)
	}
}

// The figures behind docs/architecture.md: go test ./server -run none -bench Pass
func BenchmarkPass(b *testing.B) {
	p, err := newPasses([][]byte{testSecret()}, "", time.Now)
	if err != nil {
		b.Fatal(err)
	}
	g := ground{sale: "phone-x", user: "ann", seat: 7, epoch: 1, until: time.Now().Add(time.Hour).UnixMilli(), whole: true}
	b.Run("mint", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := p.mint(g); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		pass, _, _ := p.mint(g)
		for b.Loop() {
			if _, err := p.verify(pass, "phone-x"); err != nil {
				b.Fatal(err)
			}
		}
	})
	sale := phoneX()
	snap, seat := openSnapshot(sale), onTurn("ann")
	seat.Deadline = time.Now().Add(time.Hour).UnixMilli()
	b.Run("turn frame, queued", func(b *testing.B) {
		for b.Loop() {
			p.stateFrame(snap, seat)
		}
	})
	b.Run("turn frame, written", func(b *testing.B) {
		for b.Loop() {
			p.stateFrame(snap, seat).Bytes()
		}
	})
}
