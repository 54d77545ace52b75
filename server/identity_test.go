package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/queue"
)

func newTestIdentities(t *testing.T, secrets [][]byte, methods ...string) *Identities {
	t.Helper()
	i, err := NewIdentities(IdentityOptions{Secrets: secrets, Methods: methods, Leeway: 30 * time.Second, Now: testNow})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func signed(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims) string {
	t.Helper()
	return withHeader(t, method, key, claims, "typ", "JWT")
}

// withHeader signs a token with more in its header: names and values in turn.
func withHeader(t *testing.T, method jwt.SigningMethod, key any, claims jwt.MapClaims, header ...any) string {
	t.Helper()
	unsigned := jwt.NewWithClaims(method, claims)
	for i := 0; i < len(header); i += 2 {
		unsigned.Header[header[i].(string)] = header[i+1]
	}
	token, err := unsigned.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// mintUser is a token of a user, at the time of tests.
func mintUser(secret []byte, user string) (string, error) {
	return mint(secret, "JWT", jwt.RegisteredClaims{Subject: user}, testNow(), testNow().Add(time.Hour))
}

// rawToken signs a payload as it stands.
func rawToken(t *testing.T, secret []byte, payload string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(payload))
	sum := must[[]byte](t)(jwt.SigningMethodHS256.Sign(text, secret))
	return text + "." + encode(sum)
}

// otherForm is the token with another character at its end that a careless decoder reads as the same bytes.
func otherForm(token string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + string(alphabet[strings.IndexByte(alphabet, token[last])^1])
}

func TestBearerTokensAreTakenOnlyWhenTheyProveAUser(t *testing.T) {
	t.Parallel()
	secret, other := testSecret(), []byte("another secret which is not known")
	i := newTestIdentities(t, [][]byte{secret}, "jwt", "hmac", "guest")
	_, guest, _, err := i.Guest()
	if err != nil {
		t.Fatal(err)
	}
	seat, err := i.MintSeat(SeatToken{Sale: "phone-x", User: "ann", Ticket: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, strange, _, err := newTestIdentities(t, [][]byte{other}, "guest").Guest()
	if err != nil {
		t.Fatal(err)
	}
	at := func(d time.Duration) int64 { return testNow().Add(d).Unix() }
	good := signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)})
	parts := strings.Split(good, ".")
	type claims = map[string]any
	sign := func(more claims) string {
		all := jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}
		maps.Copy(all, more)
		return signed(t, jwt.SigningMethodHS256, secret, all)
	}
	encode := base64.RawURLEncoding.EncodeToString

	for name, tc := range map[string]struct {
		token string
		ok    bool
	}{
		"a valid token":                      {good, true},
		"a token without an expiry":          {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann"}), false},
		"an expiry of 0":                     {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": 0}), false},
		"an expiry that is no number":        {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": "9999999999"}), false},
		"signed within the leeway":           {sign(claims{"iat": at(29 * time.Second)}), true},
		"signed in the future":               {sign(claims{"iat": at(31 * time.Second)}), false},
		"valid within the leeway":            {sign(claims{"nbf": at(29 * time.Second)}), true},
		"valid from 10^19 on":                {sign(claims{"nbf": 1e19}), false},
		"valid from 10^308 on":               {sign(claims{"nbf": 1e308}), false},
		"signed in 10^308":                   {sign(claims{"iat": 1e308}), false},
		"an expiry in 10^308":                {sign(claims{"exp": 1e308}), false},
		"an expiry of part of a second":      {sign(claims{"exp": float64(at(time.Hour)) + 0.5}), true},
		"a sub that is no UTF-8":             {rawToken(t, secret, fmt.Sprintf("{\"sub\":\"a\xff\",\"exp\":%d}", at(time.Hour))), false},
		"a sub with half a surrogate pair":   {rawToken(t, secret, fmt.Sprintf(`{"sub":"a\ud800","exp":%d}`, at(time.Hour))), false},
		"another last bit that is not used":  {otherForm(good), false},
		"another spelling of sub after it":   {sign(claims{"SUB": "bob"}), true},
		"only another spelling of sub":       {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"Sub": "ann", "exp": at(time.Hour)}), false},
		"a sub that is a number":             {sign(claims{"sub": 7}), false},
		"with extensions that are critical":  {withHeader(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}, "crit", []string{"exp"}), false},
		"a user's that claims to be a guest": {withHeader(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}, "typ", guestType), false},
		"a guest's that claims to be a user": {signed(t, jwt.SigningMethodHS256, i.guests[0], jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}), false},
		"a guest token":                      {guest, true},
		"expired within the leeway":          {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(-29 * time.Second)}), true},
		"expired":                            {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(-31 * time.Second)}), false},
		"not valid yet":                      {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour), "nbf": at(time.Minute)}), false},
		"signed with another secret":         {signed(t, jwt.SigningMethodHS256, other, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}), false},
		"signed with another algorithm":      {signed(t, jwt.SigningMethodHS512, secret, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}), false},
		"not signed, by alg none":            {signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, jwt.MapClaims{"sub": "ann", "exp": at(time.Hour)}), false},
		"alg none with the old signature":    {encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + parts[1] + "." + parts[2], false},
		"another user under the signature":   {parts[0] + "." + encode([]byte(`{"sub":"bob","exp":9999999999}`)) + "." + parts[2], false},
		"without a signature":                {parts[0] + "." + parts[1] + ".", false},
		"without a sub":                      {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"name": "ann", "exp": at(time.Hour)}), false},
		"with an empty sub":                  {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "", "exp": at(time.Hour)}), false},
		"with a control character in sub":    {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": "a\nb", "exp": at(time.Hour)}), false},
		"with a sub of 128 bytes":            {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": strings.Repeat("é", 64), "exp": at(time.Hour)}), true},
		"with a sub of 129 bytes":            {signed(t, jwt.SigningMethodHS256, secret, jwt.MapClaims{"sub": strings.Repeat("a", 129), "exp": at(time.Hour)}), false},
		"a seat token":                       {seat, false},
		"a guest token of another secret":    {strange, false},
		"a guest signed with the key itself": {signed(t, jwt.SigningMethodHS256, i.seats[0], jwt.MapClaims{"sub": "guest-1", "exp": at(time.Hour)}), false},
		"a pair's token":                     {MintHMAC(secret, "ann", testNow().Add(time.Hour)), false},
		"a token longer than any":            {good + strings.Repeat("A", maxToken), false},
		"no token":                           {"", false},
		"nonsense":                           {"a.b.c", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, err := i.Token(t.Context(), tc.token)
			if (err == nil) != tc.ok {
				t.Errorf("got %q, %v; want success %v", user, err, tc.ok)
			}
			if err == nil && strings.Contains(user, "bob") {
				t.Errorf("got %q", user)
			}
			if err != nil && (queue.CodeOf(err) != queue.Unauthenticated || user != "") {
				t.Errorf("got %q, %v; want no user and unauthenticated", user, err)
			}
		})
	}
}

func TestTheHMACPairIsTakenOnlyForItsOwnUserAndTime(t *testing.T) {
	t.Parallel()
	secret := testSecret()
	hour := testNow().Add(time.Hour)
	for name, tc := range map[string]struct {
		user, token string
		ok          bool
	}{
		"a valid pair":                {"ann", MintHMAC(secret, "ann", hour), true},
		"a user with a point":         {"ann.1", MintHMAC(secret, "ann.1", hour), true},
		"X-User-Id alone":             {"ann", "", false},
		"another user's token":        {"bob", MintHMAC(secret, "ann", hour), false},
		"the point moved":             {"ann", "1." + MintHMAC(secret, "ann.1", hour), false},
		"expired":                     {"ann", MintHMAC(secret, "ann", testNow()), false},
		"a later expiry put in":       {"ann", strconv.FormatInt(hour.Unix()+1, 10) + MintHMAC(secret, "ann", hour)[10:], false},
		"signed with another secret":  {"ann", MintHMAC([]byte("another secret"), "ann", hour), false},
		"a signature cut short":       {"ann", MintHMAC(secret, "ann", hour)[:40], false},
		"without a signature":         {"ann", strconv.FormatInt(hour.Unix(), 10) + ".", false},
		"an expiry which is no time":  {"ann", "-" + MintHMAC(secret, "ann", hour), false},
		"a user which is not UTF-8":   {"\xff", MintHMAC(secret, "\xff", hour), false},
		"an expiry beyond any number": {"ann", pairOf(secret, "ann", "9999999999999999999"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newTestIdentities(t, [][]byte{secret}, "jwt", "hmac")
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(headerUser, tc.user)
			if tc.token != "" {
				r.Header.Set(headerToken, tc.token)
			}
			who, err := i.Request(r)
			if (err == nil) != tc.ok {
				t.Fatalf("got %v, %v; want success %v", who, err, tc.ok)
			}
			if tc.ok && who.User != tc.user {
				t.Errorf("got user %q, want %q", who.User, tc.user)
			}
		})
	}
}

func pairOf(secret []byte, user, expiry string) string {
	sum := hmac.New(sha256.New, secret)
	sum.Write([]byte(user + "." + expiry))
	return expiry + "." + hex.EncodeToString(sum.Sum(nil))
}

func TestABearerTokenThatFailsIsNotMadeGoodByAPair(t *testing.T) {
	t.Parallel()
	i := newTestIdentities(t, [][]byte{testSecret()}, "jwt", "hmac")
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer nonsense")
	r.Header.Set(headerUser, "ann")
	r.Header.Set(headerToken, MintHMAC(testSecret(), "ann", testNow().Add(time.Hour)))
	if who, err := i.Request(r); err == nil {
		t.Errorf("got %v, want an error", who)
	}
}

func TestOfSeveralSecretsTheFirstSignsAndAllVerify(t *testing.T) {
	t.Parallel()
	older, newer := []byte("the older secret of this server"), []byte("the newer secret of this server")
	before := newTestIdentities(t, [][]byte{older}, "jwt", "hmac", "guest")
	during := newTestIdentities(t, [][]byte{newer, older}, "jwt", "hmac", "guest")
	after := newTestIdentities(t, [][]byte{newer}, "jwt", "hmac", "guest")
	signs := map[*Identities][]byte{before: older, during: newer, after: newer}

	// Each makes a token with what i signs with, and returns how others verify it.
	kinds := map[string]func(i *Identities) func(*Identities) error{
		"user": func(i *Identities) func(*Identities) error {
			token, err := mintUser(signs[i], "ann")
			return func(by *Identities) error { return errors.Join(err, second(by.Token(t.Context(), token))) }
		},
		"guest": func(i *Identities) func(*Identities) error {
			_, token, _, err := i.Guest()
			return func(by *Identities) error { return errors.Join(err, second(by.Token(t.Context(), token))) }
		},
		"seat": func(i *Identities) func(*Identities) error {
			token, err := i.MintSeat(SeatToken{Sale: "phone-x", User: "ann", Ticket: 3, Epoch: 1})
			return func(by *Identities) error { return errors.Join(err, second(by.ParseSeat(token))) }
		},
		"pair": func(i *Identities) func(*Identities) error {
			token := MintHMAC(signs[i], "ann", testNow().Add(time.Hour))
			return func(by *Identities) error { return by.pair("ann", token) }
		},
	}
	for name, kind := range kinds {
		old, young := kind(before), kind(during)
		if err := old(during); err != nil {
			t.Errorf("%s of the older secret while both are known: %v", name, err)
		}
		if err := young(after); err != nil {
			t.Errorf("%s signed while both were known, after the change: %v", name, err)
		}
		if err := old(after); err == nil {
			t.Errorf("%s of a secret given up is still taken", name)
		}
	}
}

// second drops what a call returned beside its error.
func second[T any](_ T, err error) error { return err }

func TestOnlyTheAllowedWaysOfSayingWhoIsAskingWork(t *testing.T) {
	t.Parallel()
	user, err := mintUser(testSecret(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	_, guest, _, err := newTestIdentities(t, [][]byte{testSecret()}, "guest").Guest()
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"jwt", "hmac", "guest"} {
		i := newTestIdentities(t, [][]byte{testSecret()}, method)
		_, errUser := i.Token(t.Context(), user)
		_, errGuest := i.Token(t.Context(), guest)
		errPair := i.pair("ann", MintHMAC(testSecret(), "ann", testNow().Add(time.Hour)))
		_, _, _, errNew := i.Guest()
		if (errUser == nil) != (method == "jwt") || (errPair == nil) != (method == "hmac") ||
			(errGuest == nil) != (method == "guest") || (errNew == nil) != (method == "guest") {
			t.Errorf("with %s: user %v, pair %v, guest %v, new guest %v", method, errUser, errPair, errGuest, errNew)
		}
	}
	if _, err := NewIdentities(IdentityOptions{Secrets: [][]byte{testSecret()}, Methods: []string{"cookie"}}); err == nil {
		t.Error("an unknown way was allowed")
	}
	if _, err := NewIdentities(IdentityOptions{Secrets: [][]byte{testSecret(), nil}, Methods: []string{"jwt"}}); err == nil {
		t.Error("an empty secret was allowed")
	}
}

func TestASeatTokenProvesExactlyWhatItWasMadeFor(t *testing.T) {
	t.Parallel()
	i := newTestIdentities(t, [][]byte{testSecret()}, "jwt")
	want := SeatToken{Sale: "phone-x", User: "ann \"<é>", Ticket: 1 << 60, Epoch: 4}
	token, err := i.MintSeat(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := i.ParseSeat(token); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	payload, signature, _ := strings.Cut(token, ".")
	encode := base64.RawURLEncoding.EncodeToString
	for name, forged := range map[string]string{
		"another number under the signature": encode([]byte(`{"s":"phone-x","u":"ann","n":1,"e":4}`)) + "." + signature,
		"a signature cut short":              payload + "." + signature[:10],
		"no signature":                       payload + ".",
		"no point":                           payload,
		"nothing":                            "",
		"signed with a user's secret":        payload + "." + encode(signSeat(testSecret(), []byte(payload))),
		"signed as a guest token is":         payload + "." + encode(signSeat(mustDerive(t, "guest"), []byte(payload))),
		"longer than any":                    token + strings.Repeat("A", maxSeatToken),
	} {
		if got, err := i.ParseSeat(forged); err == nil {
			t.Errorf("%s: got %v, want an error", name, got)
		}
	}
}

func mustDerive(t *testing.T, purpose string) []byte {
	t.Helper()
	keys, err := derive([][]byte{testSecret()}, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return keys[0]
}

func FuzzNoTokenMakesTheVerifierFail(f *testing.F) {
	i, err := NewIdentities(IdentityOptions{Secrets: [][]byte{testSecret()}, Methods: Methods(), Now: testNow})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")
	f.Fuzz(func(t *testing.T, token string) {
		if user, err := i.Token(context.Background(), token); err == nil {
			t.Errorf("%q was taken for %q", token, user)
		}
		if seat, err := i.ParseSeat(token); err == nil {
			t.Errorf("%q was taken for %v", token, seat)
		}
		if err := i.pair("ann", token); err == nil {
			t.Errorf("%q was taken for a pair", token)
		}
	})
}
