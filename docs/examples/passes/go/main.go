// Command go is the back end of a shop that serves only those who hold a pass of a sale of Sluice. It verifies passes by
// itself: Sluice is asked for its public keys and for nothing else.
//
//	SLUICE=https://sale.example SALE=phone-x go run .
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"
)

// pass is what a pass says.
type pass struct {
	jwt.RegisteredClaims        // Subject is the user
	Sale                 string `json:"sale"`
	Seat                 int64  `json:"seat"`
	Order                string `json:"order"` // "" while it is a turn
}

// errUnknown is that of a pass which may be a good one: there are no keys to tell.
var errUnknown = errors.New("passes cannot be checked right now")

// verifier reads passes of one sale.
type verifier struct {
	issuer, sale string
	keys         keys
	refusals     rate.Sometimes // in the log
}

func (v *verifier) verify(token string) (*pass, error) {
	var p pass
	_, err := jwt.ParseWithClaims(token, &p, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		return v.keys.get(kid)
	},
		jwt.WithValidMethods([]string{"EdDSA"}), // never the algorithm that the token asks for: "none" is one, too
		jwt.WithIssuer(v.issuer),                // of this installation, not of another whose keys may be the same
		jwt.WithAudience(v.sale),                // of this sale: a turn in one is none in another
		jwt.WithExpirationRequired(),            // a pass without an end would be one for ever
		jwt.WithLeeway(2*time.Second),           // clocks differ, a little
	)
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return nil, errors.New("it is none") // and what it is instead belongs into no log
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), errors.Is(err, jwt.ErrTokenInvalidAudience):
		return nil, fmt.Errorf("its issuer is %q and its sale %q; ISSUER is %q and SALE %q", p.Issuer, p.Sale, v.issuer, v.sale)
	case err != nil:
		return nil, err
	case p.Sale != v.sale || p.Subject == "":
		return nil, errors.New("it is of another sale, or of nobody")
	}
	return &p, nil
}

// keySet are keys by name.
type keySet map[string]ed25519.PublicKey

// keys are the public keys of Sluice. They change when an operator changes secrets: one that was withdrawn must not count for
// ever, so all are read again every few minutes, and a name that is not known is looked up, but not more often than every half
// minute, because anybody can make up names.
type keys struct {
	url string

	reading sync.Mutex // by whoever asks Sluice: an answer of before must not replace that of afterwards

	mu    sync.Mutex // never held while Sluice is asked
	known keySet
	next  time.Time              // before which they are not read again
	read  func() (keySet, error) // once, for all who wait for it
}

func (k *keys) get(kid string) (ed25519.PublicKey, error) {
	key, read := k.find(kid)
	if key != nil {
		return key, nil
	}
	known, err := read()
	if err != nil {
		return nil, err
	}
	if key = known[kid]; key == nil {
		return nil, errors.New("it names a key that Sluice does not have")
	}
	return key, nil
}

// find returns a key that is known, or else the reading that may have it.
func (k *keys) find(kid string) (key ed25519.PublicKey, read func() (keySet, error)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[kid] == nil && time.Now().After(k.next) {
		k.next = time.Now().Add(30 * time.Second)
		k.read = sync.OnceValues(k.load)
	}
	return k.known[kid], k.read
}

// refresh reads the keys again and again. While it cannot, those that are known count.
func (k *keys) refresh(every time.Duration) {
	for range time.Tick(every) {
		read := sync.OnceValues(k.load)
		k.mu.Lock()
		k.read = read
		k.mu.Unlock()
		_, _ = read() // load logs what is wrong
	}
}

func (k *keys) load() (keySet, error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	known, err := fetch(k.url)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		log.Printf("the keys of Sluice cannot be read: %v", err)
		k.next = time.Now().Add(time.Second)
		return nil, errUnknown
	}
	k.known = known
	return known, nil
}

// fetch asks Sluice. It has a time of its own, not that of the visitor who came first: others wait for the keys as well, and
// that one may leave.
func fetch(url string) (keySet, error) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	var set struct {
		Keys []struct{ Kid, Kty, Crv, X string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("%s has something else: %w", url, err)
	}
	known := keySet{}
	for _, key := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(key.X)
		if err == nil && key.Kty == "OKP" && key.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize {
			known[key.Kid] = x
		}
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("%s has none", url)
	}
	return known, nil
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-Sluice-Pass")
	if token == "" {
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	p, err := v.verify(token)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case err == nil:
		_ = json.NewEncoder(w).Encode(map[string]any{"user": p.Subject, "seat": p.Seat, "order": p.Order})
	case errors.Is(err, errUnknown): // which is in the log
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, `{"error":"passes cannot be checked right now"}`)
	default:
		if token != "" {
			v.refusals.Do(func() { log.Printf("a pass was refused: %v", err) })
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintln(w, `{"error":"a pass of this sale is needed"}`)
	}
}

// setting is an environment variable or what it is without.
func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func main() {
	v := &verifier{
		issuer: setting("ISSUER", "sluice"), sale: setting("SALE", "phone-x"),
		keys:     keys{url: setting("SLUICE", "http://127.0.0.1:8080") + "/.well-known/jwks.json"},
		refusals: rate.Sometimes{Interval: time.Second}, // or strangers could fill the log
	}
	seconds, err := strconv.Atoi(setting("KEYS_AGE", "300"))
	if err != nil || seconds < 1 || seconds > 86400 {
		log.Fatal("KEYS_AGE must be 1 to 86400 seconds")
	}
	go v.keys.refresh(time.Duration(seconds) * time.Second)
	listener, err := net.Listen("tcp", "127.0.0.1:"+setting("PORT", "3000"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: v, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}
