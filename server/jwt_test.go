package server

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func encode64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// Every token is sent over HTTP and in a hello, to a node on a real Redis that reads the keys from a real web server.
func TestATokenOfAProviderIsTakenOnlyWhenOneOfItsKeysSignedIt(t *testing.T) {
	t.Parallel()
	r, e, d, d2 := newRSA(t, "r"), newEC(t, "e").with(map[string]any{"alg": nil, "use": nil}), newEd(t, "d"), newEd(t, "d2")
	enc, other := newEC(t, "enc").with(map[string]any{"use": "enc"}), newEd(t, "other").with(map[string]any{"alg": "ES256"})
	published := newEC(t, "published").with(map[string]any{"d": encode64(strings.Repeat("d", 32))})
	symmetric := []byte("a symmetric key that was published")
	oct := newEd(t, "oct").with(map[string]any{"kty": "oct", "crv": nil, "x": nil, "alg": "HS256", "k": encode64(string(symmetric))})
	p := newProvider(t, r, e, d, d2, enc, other, published, oct)
	n := newFair(t, saleOf(5), p.trust(nil)).main

	mine := newRSA(t, "r") // an attacker's, under the name of the provider's
	var calls atomic.Int64
	theirs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		_, _ = w.Write([]byte(documentOf(t, mine)))
	}))
	t.Cleanup(theirs.Close)

	type claims = map[string]any
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	type sent struct {
		token  string
		status int
	}
	tokens := map[string]sent{
		"RS256":                             {r.token(t, nil), 200},
		"ES256, its key without an alg":     {e.token(t, nil), 200},
		"EdDSA":                             {d.token(t, nil), 200},
		"no kid, of the only key of a kind": {withHeader(t, e.method, e.private, claimsOf(nil)), 200},
		"one of the audiences in a list":    {d.token(t, claims{"aud": []string{"else", testAudience}}), 200},
		"another audience of ours":          {d.token(t, claims{"aud": "another"}), 200},

		"forged: signed by somebody else":   {mine.token(t, nil), 401},
		"forged: another user":              {resigned(d.token(t, nil), `{"sub":"bob","exp":9999999999}`), 401},
		"forged: no signature":              {d.token(t, nil)[:strings.LastIndex(d.token(t, nil), ".")+1], 401},
		"expired":                           {d.token(t, claims{"exp": at(-time.Hour)}), 401},
		"without an expiry":                 {d.token(t, claims{"exp": nil}), 401},
		"not valid yet":                     {d.token(t, claims{"nbf": at(time.Hour)}), 401},
		"signed in the future":              {d.token(t, claims{"iat": at(time.Hour)}), 401},
		"another issuer":                    {d.token(t, claims{"iss": "https://id.example"}), 401},
		"no issuer":                         {d.token(t, claims{"iss": nil}), 401},
		"issuers in a list":                 {d.token(t, claims{"iss": []string{testIssuer}}), 401},
		"another audience":                  {d.token(t, claims{"aud": "shop2"}), 401},
		"other audiences in a list":         {d.token(t, claims{"aud": []string{"a", "b"}}), 401},
		"no audience":                       {d.token(t, claims{"aud": nil}), 401},
		"an empty list of audiences":        {d.token(t, claims{"aud": []string{}}), 401},
		"a user that is none":               {d.token(t, claims{"sub": ""}), 401},
		"no kid, and several keys":          {withHeader(t, d.method, d.private, claimsOf(nil)), 401},
		"an empty kid, and several keys":    {withHeader(t, d.method, d.private, claimsOf(nil), "kid", ""), 401},
		"a kid of nobody":                   {d.token(t, nil, "kid", "nobody"), 401},
		"a kid that is a path":              {d.token(t, nil, "kid", "../../../../dev/null"), 401},
		"a kid that is no text":             {d.token(t, nil, "kid", 7), 401},
		"the kid of another key":            {d.token(t, nil, "kid", "d2"), 401},
		"the kid of a key of another kind":  {d.token(t, nil, "kid", "r"), 401},
		"a key for encryption":              {enc.token(t, nil), 401},
		"a key for another algorithm":       {other.token(t, nil), 401},
		"a key whose private half is known": {published.token(t, nil), 401},
		"a symmetric key":                   {withHeader(t, jwt.SigningMethodHS256, symmetric, claimsOf(nil), "kid", "oct"), 401},
		"RS384 with the key of RS256":       {withHeader(t, jwt.SigningMethodRS384, r.private, claimsOf(nil), "kid", "r"), 401},
		"PS256 with the key of RS256":       {withHeader(t, jwt.SigningMethodPS256, r.private, claimsOf(nil), "kid", "r"), 401},
		"HS256 with the server's secret":    {withHeader(t, jwt.SigningMethodHS256, testSecret(), claimsOf(nil)), 401},
		"a guest that the provider signed":  {d.token(t, claims{"iss": "x", "aud": "x"}, "typ", guestType), 401},
		"a key that the token brings along": {mine.token(t, nil, "jwk", mine.jwk(t)), 401},
		"a key that the token points to":    {mine.token(t, nil, "jku", theirs.URL, "x5u", theirs.URL), 401},
		"another place for a new key":       {mine.token(t, nil, "kid", theirs.URL, "jku", theirs.URL), 401},
		"an extension that is critical":     {d.token(t, nil, "crit", []string{"b64"}, "b64", true), 401},
	}
	for _, none := range []string{"none", "None", "NONE", "nOnE", " none", "", "HS256 ", "rs256"} {
		header, _ := json.Marshal(claims{"alg": none, "typ": "JWT", "kid": "r"})
		tokens["alg "+none+" with a signature"] = sent{forged(r.token(t, nil), string(header)), 401}
		unsigned := forged(r.token(t, nil), string(header))
		tokens["alg "+none+" without a signature"] = sent{unsigned[:strings.LastIndex(unsigned, ".")+1], 401}
	}
	// A public key is known to everybody. Who has it taken for the secret of an HMAC can sign for anybody.
	public := r.private.Public().(*rsa.PublicKey)
	pkix := must[[]byte](t)(x509.MarshalPKIXPublicKey(public))
	pkcs1 := x509.MarshalPKCS1PublicKey(public)
	for name, secret := range map[string][]byte{
		"PEM":                 pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix}),
		"PEM without its end": []byte(strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pkix})))),
		"PEM of PKCS #1":      pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: pkcs1}),
		"DER":                 pkix,
		"DER of PKCS #1":      pkcs1,
		"modulus":             public.N.Bytes(),
		"JWK":                 must[[]byte](t)(json.Marshal(r.jwk(t))),
		"JWK Set":             []byte(documentOf(t, r, e, d, d2, enc, other, published, oct)),
		"nothing":             {},
	} {
		for _, header := range [][]any{{"kid", "r"}, {}} {
			for _, alg := range []jwt.SigningMethod{jwt.SigningMethodHS256, jwt.SigningMethodHS512} {
				confused := withHeader(t, alg, secret, claimsOf(nil), header...)
				name := "HS256 by the RSA key's " + name + " " + alg.Alg()
				if len(header) > 0 {
					name += " with its kid"
				}
				tokens[name] = sent{confused, 401}
			}
		}
	}
	t.Cleanup(func() {
		if calls.Load() > 0 {
			t.Errorf("a token made the server ask %d times elsewhere", calls.Load())
		}
	})
	for name, tc := range tokens {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := *n.fair
			f.T = t
			one := *n
			one.fair = &f
			one.must(tc.status, tc.token, "the token")
		})
	}
}

// resigned puts another payload into a signed token.
func resigned(token, payload string) string {
	parts := strings.Split(token, ".")
	return parts[0] + "." + encode64(payload) + "." + parts[2]
}

func TestBesideAProviderTheSecretsTokensAreTakenOnlyWhereThatWasAskedFor(t *testing.T) {
	t.Parallel()
	d := newEd(t, "d")
	p := newProvider(t, d)
	own := withHeader(t, jwt.SigningMethodHS256, testSecret(), claimsOf(nil))
	pair := []string{headerUser, "ann", headerToken, MintHMAC(testSecret(), "ann", time.Now().Add(time.Hour))}
	for name, tc := range map[string]struct {
		also         []string
		own, headers int
	}{
		"not asked for": {nil, 401, 401},
		"hs256":         {[]string{"hs256"}, 200, 401},
		"hmac":          {[]string{"hmac"}, 401, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newFair(t, saleOf(5), p.trust(nil, tc.also...)).main
			n.must(200, d.token(t, nil), "the provider's")
			n.must(tc.own, own, "the secret's")
			n.must(401, withHeader(t, jwt.SigningMethodHS256, testSecret(), claimsOf(map[string]any{"iss": "x"})), "the secret's, of another issuer")
			if a := n.ask(http.MethodGet, "/orders?sale="+n.sale, "", pair...); a.status != tc.headers {
				t.Errorf("the pair: got %d, want %d", a.status, tc.headers)
			}
			if a := n.ask(http.MethodPost, "/guests", ""); a.status != http.StatusForbidden {
				t.Errorf("a guest: got %d", a.status)
			}
		})
	}
}
