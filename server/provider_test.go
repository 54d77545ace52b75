package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"sluice/queue"
)

const (
	testIssuer   = "https://id.example/"
	testAudience = "shop"
)

// provider is an identity provider: a web server with keys, that can be made to misbehave.
type provider struct {
	*testing.T
	url  string
	asks atomic.Int64

	mu     sync.Mutex
	answer http.HandlerFunc
}

func newProvider(t *testing.T, keys ...signingKey) *provider {
	t.Helper()
	p := &provider{T: t}
	p.publish(keys...)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asks.Add(1)
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(site.Close)
	p.url = site.URL + "/jwks.json"
	return p
}

// answers makes the provider answer so from now on.
func (p *provider) answers(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// says makes the provider answer with a document.
func (p *provider) says(status int, document string) {
	p.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, document)
	})
}

// publish makes the provider have these keys and no other.
func (p *provider) publish(keys ...signingKey) {
	p.Helper()
	p.says(http.StatusOK, documentOf(p.T, keys...))
}

// signingKey is a key pair of a provider, as it publishes it.
type signingKey struct {
	id      string
	private crypto.Signer
	method  jwt.SigningMethod
	more    map[string]any // in the published key, over what is there
}

func newEd(t *testing.T, id string) signingKey {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	return signingKey{id: id, private: must[ed25519.PrivateKey](t)(private, err), method: jwt.SigningMethodEdDSA}
}

func newEC(t *testing.T, id string) signingKey {
	t.Helper()
	private := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return signingKey{id: id, private: private, method: jwt.SigningMethodES256}
}

func newRSA(t *testing.T, id string) signingKey {
	t.Helper()
	private := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	return signingKey{id: id, private: private, method: jwt.SigningMethodRS256}
}

// with is the key, published with other fields; nil leaves one out.
func (k signingKey) with(more map[string]any) signingKey {
	k.more = more
	return k
}

// jwk is the public key as it is published.
func (k signingKey) jwk(t *testing.T) map[string]any {
	t.Helper()
	parsed := must[jwkset.JWK](t)(jwkset.NewJWKFromKey(k.private.Public(), jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{KID: k.id, ALG: jwkset.ALG(k.method.Alg()), USE: jwkset.UseSig},
	}))
	text := must[[]byte](t)(json.Marshal(parsed.Marshal()))
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range k.more {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	return fields
}

func documentOf(t *testing.T, keys ...signingKey) string {
	t.Helper()
	published := []any{}
	for _, k := range keys {
		published = append(published, k.jwk(t))
	}
	return string(must[[]byte](t)(json.Marshal(map[string]any{"keys": published})))
}

// token is one of ann, good for an hour unless more says otherwise; nil leaves a claim out.
func (k signingKey) token(t *testing.T, more map[string]any, header ...any) string {
	t.Helper()
	if k.id != "" {
		header = append([]any{"kid", k.id}, header...)
	}
	return withHeader(t, k.method, k.private, claimsOf(more), header...)
}

func claimsOf(more map[string]any) jwt.MapClaims {
	claims := jwt.MapClaims{
		"sub": "ann", "iss": testIssuer, "aud": testAudience,
		"iat": time.Now().Add(-time.Minute).Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	for name, value := range more {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// trust makes a node take the provider's tokens. tune may be nil.
func (p *provider) trust(tune func(*Keyring), also ...string) change {
	p.Helper()
	keys := must[*Keyring](p.T)(NewKeyring(p.url, nil, nil))
	keys.gap = time.Millisecond
	if tune != nil {
		tune(keys)
	}
	return change{server: func(o *Options) {
		o.Keys, o.Auth = keys, append([]string{"jwt"}, also...)
		o.Issuer, o.Audiences, o.Leeway = testIssuer, []string{"another", testAudience}, 30*time.Second
	}}
}

// ask sends a request with these headers, names and values in turn, and returns the answer.
func (n *node) ask(method, path, body string, header ...string) answer {
	n.Helper()
	req, err := http.NewRequestWithContext(n.Context(), method, n.url+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		n.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		n.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, text}
}

// orders asks for those of a token's user in the sale.
func (n *node) orders(token string) answer {
	n.Helper()
	return n.ask(http.MethodGet, "/orders?sale="+n.sale, "", "Authorization", "Bearer "+token)
}

// judge says what becomes of a token: 200 when it is taken, over HTTP and a socket alike, 401 or 503.
func (n *node) judge(token string) int {
	n.Helper()
	a := n.orders(token)
	tab := (&shopper{fair: n.fair, user: "ann", token: token, ahead: -1}).dial(n, nil)
	tab.hello("")
	switch a.status {
	case http.StatusOK:
		if f := tab.await("welcome"); f.User != "ann" {
			n.Errorf("over the socket the user is %q", f.User)
		}
	case http.StatusUnauthorized:
		if a.field(n.T, "code") != string(queue.Unauthenticated) || a.header.Get("WWW-Authenticate") == "" {
			n.Errorf("got %s", a.body)
		}
		tab.mustEnd(closeBadToken, "token")
		if _, reason := tab.ends(); token != "" && strings.Contains(string(a.body)+reason, token) {
			n.Error("the answer repeats the token")
		}
	case http.StatusServiceUnavailable:
		if a.field(n.T, "code") != string(queue.Unavailable) || a.header.Get("Retry-After") == "" {
			n.Errorf("got %s", a.body)
		}
		if f := tab.expect("error"); f.Code != queue.Unavailable || f.RetryAfter <= 0 {
			n.Errorf("over the socket: %s", f.text)
		}
		tab.goAway() // it was not closed: the same page may ask again
	default:
		n.Errorf("got %d %s", a.status, a.body)
	}
	return a.status
}

// must judges a token, and fails the test when another status comes of it.
func (n *node) must(status int, token, what string) {
	n.Helper()
	if got := n.judge(token); got != status {
		n.Errorf("%s: got %d, want %d", what, got, status)
	}
}

// forged puts another header in front of a signed token.
func forged(token, header string) string {
	parts := strings.Split(token, ".")
	return fmt.Sprintf("%s.%s.%s", encode64(header), parts[1], parts[2])
}
