// Command go is the back end of a shop that serves only those who hold a pass of a sale of Sluice. It verifies passes by
// itself: Sluice is asked for its public keys and for nothing else.
//
//	SLUICE=https://sale.example SALE=phone-x go run .
package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// pass is what a pass says.
type pass struct {
	jwt.RegisteredClaims        // Subject is the user
	Sale                 string `json:"sale"`
	Seat                 int64  `json:"seat"`
	Order                string `json:"order"` // "" while it is a turn
}

// verifier reads passes of one sale.
type verifier struct {
	issuer, sale string
	keys         keys
}

func (v *verifier) verify(ctx context.Context, token string) (*pass, error) {
	var p pass
	_, err := jwt.ParseWithClaims(token, &p, func(t *jwt.Token) (any, error) {
		kid, _ := t.Header["kid"].(string)
		return v.keys.get(ctx, kid)
	},
		jwt.WithValidMethods([]string{"EdDSA"}), // never the algorithm that the token asks for: "none" is one, too
		jwt.WithIssuer(v.issuer),                // of this installation, not of another whose keys may be the same
		jwt.WithAudience(v.sale),                // of this sale: a turn in one is none in another
		jwt.WithExpirationRequired(),            // a pass without an end would be one for ever
		jwt.WithLeeway(2*time.Second),           // clocks differ, a little
	)
	switch {
	case err != nil:
		return nil, err
	case p.Sale != v.sale || p.Subject == "":
		return nil, errors.New("the pass is of another sale, or of nobody")
	}
	return &p, nil
}

// keys are the public keys of Sluice. They change when an operator changes secrets, so a name that is not known is looked
// up, but not more often than every half minute: anybody can make up names.
type keys struct {
	url string

	mu     sync.Mutex
	known  map[string]ed25519.PublicKey
	looked time.Time
}

func (k *keys) get(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known[kid] == nil && time.Since(k.looked) > 30*time.Second {
		k.looked = time.Now()
		if err := k.load(ctx); err != nil {
			return nil, fmt.Errorf("read the keys of Sluice: %w", err)
		}
	}
	if key := k.known[kid]; key != nil {
		return key, nil
	}
	return nil, errors.New("no such key")
}

func (k *keys) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	var set struct {
		Keys []struct{ Kid, Kty, Crv, X string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return err
	}
	known := map[string]ed25519.PublicKey{}
	for _, key := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(key.X)
		if err == nil && key.Kty == "OKP" && key.Crv == "Ed25519" && len(x) == ed25519.PublicKeySize {
			known[key.Kid] = x
		}
	}
	k.known = known
	return nil
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := r.Header.Get("X-Sluice-Pass")
	if token == "" {
		token = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	}
	p, err := v.verify(r.Context(), token)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintln(w, `{"error":"a pass of this sale is needed"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"user": p.Subject, "seat": p.Seat, "order": p.Order})
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
		keys: keys{url: setting("SLUICE", "http://127.0.0.1:8080") + "/.well-known/jwks.json"},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+setting("PORT", "3000"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", listener.Addr())
	server := &http.Server{Handler: v, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.Serve(listener))
}
