package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/golang-jwt/jwt/v5"
	"github.com/gorilla/websocket"

	"sluice/server"
)

// vault is all that must never be written anywhere.
type vault struct {
	*testing.T
	hidden map[string]string // what is secret, and what it is
}

// hide notes a secret, and of a token each part that is enough to know it by.
func (v *vault) hide(what, secret string) string {
	v.hidden[secret] = what
	for part := range strings.SplitSeq(secret, ".") {
		if len(part) > 24 && !strings.HasPrefix(part, "eyJhbGciOi") { // headers are much the same in all
			v.hidden[part] = "a part of " + what
		}
	}
	return secret
}

// mustNotBeIn fails the test when a text has any of it.
func (v *vault) mustNotBeIn(text, where string) {
	v.Helper()
	for secret, what := range v.hidden {
		if strings.Contains(text, secret) {
			v.Errorf("%s has %s in it", where, what)
		}
	}
}

// A real server with everything that can be said in its log, every kind of token sent in every way that clients try, and then
// the log and all answers searched for each.
func TestSecretsAndTokensAreInNoLogAndNoAnswer(t *testing.T) {
	t.Parallel()
	v := &vault{T: t, hidden: map[string]string{}}
	older, newer := v.hide("the older secret", "older-secret-of-thirty-two-bytes-1"), v.hide("the newer secret", "newer-secret-of-thirty-two-bytes-2")
	admin, hook := v.hide("the admin token", "the-admin-token-that-nobody-may-see"), v.hide("the webhook secret", "the-webhook-secret-that-nobody-may-see")

	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	document, _ := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": base64.RawURLEncoding.EncodeToString(public),
	}}})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(document) }))
	t.Cleanup(provider.Close)
	address := provider.URL + "/" + v.hide("the path of the keys", "path-of-the-keys-that-nobody-may-see")

	s := &site{process: launchWith(t, []string{"SLUICE_WEBHOOK_SECRET=" + hook},
		"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--drain", "0s", "--data-dir", t.TempDir(),
		"--log-format", "json", "--log-level", "debug", "--secret-file", writeFile(t, "secret", newer+"\n"+older+"\n"),
		"--admin-token-file", writeFile(t, "admin", admin+"\n"), "--auth", "jwt,hs256,hmac,guest",
		"--jwks-url", address, "--jwt-issuer", "https://id.example/", "--jwt-audience", "shop")}
	s.url = s.says(`"msg":"serving".*"url":"([^"]+)"`)
	sale := saleFile(t, "phone-x", 5, "opens_at: \"+0s\"\ncloses_at: \"+1h\"")
	succeed(t, "sale", "apply", sale, "--url", s.url, "--admin-token", admin)

	sign := func(what string, method jwt.SigningMethod, key any, kid string, more jwt.MapClaims) string {
		claims := jwt.MapClaims{"sub": "ann", "iss": "https://id.example/", "aud": "shop", "exp": time.Now().Add(time.Hour).Unix()}
		for name, value := range more {
			claims[name] = value
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = kid
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return v.hide(what, text)
	}
	good := sign("a good token", jwt.SigningMethodEdDSA, private, "k", nil)
	bad := []string{
		sign("an expired token", jwt.SigningMethodEdDSA, private, "k", jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix()}),
		sign("a token of the future", jwt.SigningMethodEdDSA, private, "k", jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()}),
		sign("a token of another issuer", jwt.SigningMethodEdDSA, private, "k", jwt.MapClaims{"iss": "another"}),
		sign("a token of another audience", jwt.SigningMethodEdDSA, private, "k", jwt.MapClaims{"aud": "another"}),
		sign("a token for nobody", jwt.SigningMethodEdDSA, private, "k", jwt.MapClaims{"sub": "a\nb"}),
		sign("a token of another secret", jwt.SigningMethodHS256, []byte("some other secret of some length"), "", nil),
		sign("a token without a signature", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "k", nil),
		v.hide("a pair's token", server.MintHMAC([]byte(older), "ann", time.Now().Add(time.Hour))),
		v.hide("a broken token", "this-is-no-token-at-all-but-nobody-may-see-it"),
		v.hide("a long token", strings.Repeat("long-and-secret.", 600)),
		newer, older, admin + "x", hook,
	}
	// The provider is asked for an unknown key, which takes its time: it is sent over each way once.
	unknown := sign("a token of an unknown key", jwt.SigningMethodEdDSA, private, "an-unknown-key-that-nobody-may-see", nil)

	send := func(method, path, body string, header ...string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for name, values := range resp.Header {
			text = append(text, fmt.Sprint(name, values)...)
		}
		return string(text)
	}
	// hello says hello with what is given, and returns all that comes until the connection ends or a state has come.
	hello := func(query, protocol, token, held string) string {
		t.Helper()
		dialer := websocket.Dialer{Subprotocols: slices.DeleteFunc([]string{"sluice.v1", protocol}, func(p string) bool { return p == "" })}
		conn, resp, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/ws/v1/sales/phone-x"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		defer conn.Close()
		frame, _ := json.Marshal(map[string]string{"type": "hello", "token": token, "seat": held})
		if err := conn.WriteMessage(websocket.TextMessage, frame); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(longest))
		var all strings.Builder
		for range 2 {
			_, msg, err := conn.ReadMessage()
			if err != nil {
				fmt.Fprint(&all, err)
				break
			}
			all.Write(msg)
		}
		fmt.Fprint(&all, conn.Subprotocol())
		return all.String()
	}
	var answers strings.Builder

	answers.WriteString(hello("", "", unknown, ""))
	answers.WriteString(send(http.MethodGet, "/api/v1/orders", "", "Authorization", "Bearer "+unknown))
	for _, token := range append(bad, good) {
		fits := len(token) < 8<<10 && !strings.ContainsAny(token, "\r\n") // into headers
		escaped := url.QueryEscape(token)
		answers.WriteString(send(http.MethodPost, "/api/v1/webhooks/payment", `{"order":"x","status":"paid","event_id":"e"}`, "X-Signature", "sha256="+token[:min(len(token), 2000)]))
		answers.WriteString(send(http.MethodGet, "/api/v1/sales?token="+escaped[:min(len(escaped), 4000)], ""))
		if token != good {
			answers.WriteString(hello("", "", token, ""))
		}
		answers.WriteString(hello("", "", good, token+"x"))
		if !fits {
			continue
		}
		answers.WriteString(hello("?token="+escaped, token, "", ""))
		for _, path := range []string{"/api/v1/orders", "/api/v1/sales/phone-x/draw/mine", "/api/v1/admin/sales", "/nowhere", "/api/v1/nowhere"} {
			answers.WriteString(send(http.MethodGet, path, "", "Authorization", "Bearer "+token))
			answers.WriteString(send(http.MethodGet, path+"?access_token="+escaped, "", "Authorization", "Basic "+token))
			answers.WriteString(send(http.MethodGet, path, "", "Authorization", token))
			answers.WriteString(send(http.MethodGet, path, "", "X-User-Id", "bob", "X-Token", token, "Cookie", "token="+token))
		}
		answers.WriteString(send(http.MethodPost, "/api/v1/sales/phone-x/seat", fmt.Sprintf(`{"seat":%q}`, token), "Authorization", "Bearer "+good, "Content-Type", "application/json"))
		answers.WriteString(send(http.MethodPost, "/api/v1/sales/phone-x/grab", fmt.Sprintf(`{"request_id":"r","token":%q}`, token), "Authorization", "Bearer "+good, "Content-Type", "application/json"))
	}
	v.mustNotBeIn(answers.String(), "an answer")

	// What is given out is in the answer that gives it, and nowhere else.
	var given struct{ Token, Seat string }
	for _, call := range [][]string{{"/api/v1/guests"}, {"/api/v1/sales/phone-x/seat", "Authorization", "Bearer " + good}} {
		text := send(http.MethodPost, call[0], "", call[1:]...)
		if err := json.NewDecoder(strings.NewReader(text)).Decode(&given); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	guest, seat := v.hide("a guest's token", given.Token), v.hide("a seat token", given.Seat)
	hello("", "", guest, "")
	hello("", "", good, seat)
	hello("", "", guest, seat)
	send(http.MethodGet, "/api/v1/orders", "", "Authorization", "Bearer "+guest)

	s.end()
	log := s.out.String() + s.err.String()
	if strings.Count(log, `"msg":"request"`) < 100 || !strings.Contains(log, "the keys of tokens were read") {
		t.Errorf("the log does not have what was asked for:\n%s", tail(log))
	}
	v.mustNotBeIn(log, "the log")
}

// launchWith starts the command with an environment of its own.
func launchWith(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	path, err := shipped.build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(withoutSettings(os.Environ()), env...)
	return launch(t, "sluice "+args[0], cmd)
}

func TestNoErrorAboutAURLRepeatsItsPassword(t *testing.T) {
	t.Parallel()
	const password = "hush-hush"
	redis := setting(t, "SLUICE_TEST_REDIS")
	for _, line := range []string{
		"serve --secret s --redis-url redis://:hush-hush@127.0.0.1:1",
		"serve --secret s --redis-url redis://user:hush-hush@127.0.0.1:1/0?dial_timeout=hush-hush",
		"serve --secret s --redis-url redis://:hush-hush@127.0.0.1:port",
		"serve --secret s --redis-url redis://:hush-hush%zz@127.0.0.1:1",
		"serve --secret s --redis-url http://:hush-hush@127.0.0.1:1",
		"serve --secret s --redis-url redis://127.0.0.1:1 --amqp-url amqp://u:hush-hush@127.0.0.1:1",
		"serve --secret s --redis-url " + redis + " --database-url mysql://u:hush-hush@127.0.0.1:1/sluice",
		"serve --secret s --redis-url " + redis + " --database-url sqlite://" + filepath.Join(t.TempDir(), "x.db") + " --amqp-url amqp://u:hush-hush@127.0.0.1:port",
		"worker --redis-url redis://:hush-hush@127.0.0.1:1 --amqp-url amqp://u:hush-hush@127.0.0.1:1 --database-url mysql://u:hush-hush@127.0.0.1:1/x",
		"migrate --database-url mysql://u:hush-hush@127.0.0.1:1/sluice",
		"migrate --database-url mysql://u:hush-hush@127.0.0.1:port/sluice",
		"migrate --database-url mysql://u:hush-hush%zz@127.0.0.1/sluice",
		"migrate --database-url mysql://u:hush-hush@127.0.0.1:1/sluice?tls=x",
		"migrate --database-url mysql://u:hush-hush@/",
		"migrate --database-url postgres://u:hush-hush@127.0.0.1:1/sluice",
		"migrate --database-url postgres://u:hush-hush@127.0.0.1:port/sluice",
		"migrate --database-url postgres://u:hush-hush%zz@127.0.0.1/sluice",
		"migrate --database-url postgres://u:hush-hush@127.0.0.1:1/sluice?sslmode=x",
		"migrate --database-url oracle://u:hush-hush@127.0.0.1/x",
		"migrate --database-url hush-hush",
		"serve --jwks-url https://u:hush-hush@127.0.0.1/ --secret s --data-dir " + t.TempDir(),
		"serve --jwks-url hush-hush://x --secret s --data-dir " + t.TempDir(),
		"serve --broker-ui-url http://u:hush-hush@%zz/ --secret s --data-dir " + t.TempDir(),
		"audit phone-x --url http://u:hush-hush@127.0.0.1:1",
		"audit phone-x --url http://u:hush-hush@127.0.0.1:port",
		"audit phone-x --url ftp://u:hush-hush@127.0.0.1",
		"serve --redis-url redis://:hush-hush\xff@127.0.0.1",
	} {
		t.Run(strings.ToValidUTF8(line, "?"), func(t *testing.T) {
			t.Parallel()
			code, out, said := sluice(t, "", strings.Fields(line)...)
			if code == exitOK || said == "" || strings.Contains(out+said, password) {
				t.Errorf("exit code %d, said %q", code, out+said)
			}
		})
	}
}

func TestEverySecretMayComeFromAFile(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	secret := []string{"secret", "admin-token", "user-token", "webhook-secret", "challenge-secret", "redis-url", "amqp-url", "database-url"}
	met := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(false) {
		flags := map[string]bool{}
		for _, group := range leaf.AllFlags(false) {
			for _, flag := range group {
				flags[flag.Name] = true
			}
		}
		for name := range flags {
			looks := strings.HasSuffix(name, "secret") || strings.HasSuffix(name, "token") || strings.Contains(name, "password")
			if looks && !slices.Contains(secret, name) {
				t.Errorf("%s --%s is not known to be a secret here", leaf.Path(), name)
			}
			if slices.Contains(secret, name) {
				met[name] = true
				if !flags[name+"-file"] {
					t.Errorf("%s has --%s and no --%s-file", leaf.Path(), name, name)
				}
			}
		}
	}
	if len(met) != len(secret) {
		t.Errorf("of %v only %v are flags", secret, met)
	}
}
