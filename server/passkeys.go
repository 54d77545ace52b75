package server

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"
)

// jwksPath is where the public keys of passes are; the one path outside of /api/ and /ws/ that is no page.
const jwksPath = "/.well-known/jwks.json"

// jwksAge is how long others may keep the public keys. A secret has to be published for that long before it signs.
const jwksAge = 5 * time.Minute

// passKeys sign passes and verify them. Each secret gives one pair, made for nothing else, so all nodes have the same
// ones; the first signs, all verify.
type passKeys struct {
	id     string // kid of the one that signs
	signer ed25519.PrivateKey
	public map[string]ed25519.PublicKey // by kid
	set    []byte                       // what jwksPath answers
}

// jwk is a public Ed25519 key as RFC 8037 writes it.
type jwk struct {
	Curve string `json:"crv"`
	Type  string `json:"kty"`
	X     string `json:"x"`
	ID    string `json:"kid,omitempty"`
	Use   string `json:"use,omitempty"`
	Alg   string `json:"alg,omitempty"`
}

func newPassKeys(secrets [][]byte) (*passKeys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("a secret is needed to sign passes")
	}
	seeds, err := derive(secrets, "pass")
	if err != nil {
		return nil, err
	}
	keys := &passKeys{public: map[string]ed25519.PublicKey{}}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	for i, seed := range seeds {
		private := ed25519.NewKeyFromSeed(seed)
		public := private.Public().(ed25519.PublicKey)
		key := jwk{Curve: "Ed25519", Type: "OKP", X: base64.RawURLEncoding.EncodeToString(public)}
		id, err := thumbprint(key)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			keys.id, keys.signer = id, private
		}
		if keys.public[id] != nil {
			continue // the same secret was given twice
		}
		keys.public[id] = public
		key.ID, key.Use, key.Alg = id, "sig", "EdDSA"
		set.Keys = append(set.Keys, key)
	}
	if keys.set, err = json.Marshal(set); err != nil {
		return nil, fmt.Errorf("write the public keys of passes: %w", err)
	}
	return keys, nil
}

// thumbprint names a key after itself (RFC 7638): its required members in the order of their names, which is that of the
// fields of a jwk.
func thumbprint(key jwk) (string, error) {
	text, err := json.Marshal(jwk{Curve: key.Curve, Type: key.Type, X: key.X})
	if err != nil {
		return "", fmt.Errorf("name a key of passes: %w", err)
	}
	sum := sha256.Sum256(text)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// showKeys is GET /.well-known/jwks.json.
func (s *Server) showKeys(c *echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, fmt.Sprintf("public, max-age=%d", int(jwksAge.Seconds())))
	return c.Blob(http.StatusOK, "application/jwk-set+json", s.passes.keys.Load().set)
}
