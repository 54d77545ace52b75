package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"filippo.io/edwards25519"
	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// weakRSA is how many bits an RSA key must have, by RFC 7518, and longestRSA how many it may: four times what any provider
	// has. Whoever names a longer one in a token would have each look at it take seconds of a processor.
	weakRSA, longestRSA = 2048, 16384
	// mostReasons is how many of the keys that are of no use are told of in the log: a document has room for hundreds of thousands.
	mostReasons = 10
)

// publicKey is a key that tokens are verified by, with the one algorithm that it is good for. A token that names another
// algorithm never meets the key, so nobody can have a public key taken for the secret of an HMAC.
type publicKey struct {
	id        string // its kid; "" = it has none
	algorithm string // RS256, ES256 or EdDSA
	key       any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
}

// keySet is the keys of a provider as they were read. It does not change.
type keySet struct {
	keys    []publicKey
	ignored []error // why the others of the document are of no use here, of the first mostReasons
	beyond  int     // how many more are of no use
}

// ignore notes a key that is of no use.
func (s *keySet) ignore(err error) {
	if len(s.ignored) < mostReasons {
		s.ignored = append(s.ignored, err)
	} else {
		s.beyond++
	}
}

// useless is why keys of the document are of no use, in one line; "" when there are none.
func (s *keySet) useless() string {
	reasons := make([]string, len(s.ignored))
	for i, reason := range s.ignored {
		reasons[i] = reason.Error()
	}
	if s.beyond > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", s.beyond))
	}
	return strings.Join(reasons, "; ")
}

// usable is nil when there is a key to verify tokens by, else it says why there is none.
func (s *keySet) usable() error {
	switch useless := s.useless(); {
	case len(s.keys) > 0:
		return nil
	case useless != "":
		return fmt.Errorf("%w (%s)", errNoKeys, useless)
	}
	return errNoKeys
}

// What find does not find a key for.
var (
	errUnknownKey     = errors.New("the provider has no such key")
	errWhichKey       = errors.New("the token does not say which of several keys signed it")
	errOtherAlgorithm = errors.New("the key is for another algorithm")
)

// find returns the key that a token must be verified by. A token may leave its key unnamed only where no other can be meant,
// as OpenID Connect has it.
func (s *keySet) find(algorithm, id string) (any, error) {
	var found any
	var named bool
	for _, k := range s.keys {
		named = named || id != "" && k.id == id
		switch {
		case k.algorithm != algorithm || id != "" && k.id != id:
		case found != nil:
			return nil, errWhichKey
		default:
			found = k.key
		}
	}
	switch {
	case found != nil:
		return found, nil
	case named:
		return nil, errOtherAlgorithm
	}
	return nil, errUnknownKey
}

// parseKeys reads a JWK Set, RFC 7517. Keys that are of no use here are left out, as the standard wants it, and do not spoil the
// others. It fails for what is no such document.
func parseKeys(document []byte) (*keySet, error) {
	var parsed struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return nil, errors.New("it is no JSON object with keys")
	}
	if parsed.Keys == nil {
		return nil, errors.New(`it has no "keys"`)
	}
	set := &keySet{}
	for n, raw := range parsed.Keys {
		key, err := parseKey(raw)
		if err == nil && key.id != "" && slices.ContainsFunc(set.keys, func(k publicKey) bool {
			return k.id == key.id && k.algorithm == key.algorithm
		}) {
			err = errors.New("an earlier key has the same kid")
		}
		if err != nil {
			set.ignore(fmt.Errorf("key %d: %w", n+1, err))
			continue
		}
		set.keys = append(set.keys, key)
	}
	return set, nil
}

// parseKey reads one key and pins its algorithm. Certificates beside the key are not looked at: the document is trusted
// for where it comes from.
func parseKey(raw []byte) (publicKey, error) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m); err != nil {
		return publicKey{}, errors.New("it is no JWK")
	}
	switch {
	case m.KTY == jwkset.KtyOct:
		return publicKey{}, errors.New("it is a symmetric key: whoever can read it could sign with it")
	case m.D != "" || m.P != "" || m.Q != "":
		return publicKey{}, errors.New("it is a private key: whoever can read it can sign with it; replace it, and publish its public half only")
	case m.USE != "" && m.USE != jwkset.UseSig:
		return publicKey{}, errors.New("its use is not sig")
	case len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify):
		return publicKey{}, errors.New("its key_ops do not have verify")
	}
	parsed, err := jwkset.NewJWKFromMarshal(
		jwkset.JWKMarshal{KTY: m.KTY, CRV: m.CRV, X: m.X, Y: m.Y, N: m.N, E: m.E},
		jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return publicKey{}, errors.New("it cannot be understood")
	}
	key := publicKey{id: m.KID, key: parsed.Key()}
	switch k := key.key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < weakRSA {
			return publicKey{}, fmt.Errorf("it is an RSA key of %d bits, and %d are needed", k.N.BitLen(), weakRSA)
		}
		if k.N.BitLen() > longestRSA {
			return publicKey{}, fmt.Errorf("it is an RSA key of %d bits, and at most %d are taken", k.N.BitLen(), longestRSA)
		}
		if k.E < 3 || k.E%2 == 0 {
			return publicKey{}, errors.New("it is an RSA key with an exponent that none can have")
		}
		key.algorithm = jwt.SigningMethodRS256.Alg()
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return publicKey{}, errors.New("its curve is not P-256")
		}
		key.algorithm = jwt.SigningMethodES256.Alg()
	case ed25519.PublicKey:
		if anybodySigns(k) {
			return publicKey{}, errors.New("it is an Ed25519 key by which anybody can sign")
		}
		key.algorithm = jwt.SigningMethodEdDSA.Alg()
	default:
		return publicKey{}, errors.New("it is of no kind that signs")
	}
	if alg := m.ALG.String(); alg != "" && alg != key.algorithm {
		return publicKey{}, fmt.Errorf("its alg is not %s", key.algorithm)
	}
	return key, nil
}

// anybodySigns says whether the key is a point of small order, like one of which all bytes are zero: for these a signature is
// found by trying, without a private key.
func anybodySigns(key ed25519.PublicKey) bool {
	point, err := new(edwards25519.Point).SetBytes(key)
	return err != nil || point.MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1
}

// same says whether the sets have the same keys in the same order.
func (s *keySet) same(other *keySet) bool {
	return slices.EqualFunc(s.keys, other.keys, func(a, b publicKey) bool {
		equal, ok := a.key.(interface{ Equal(crypto.PublicKey) bool })
		return a.id == b.id && a.algorithm == b.algorithm && ok && equal.Equal(b.key)
	})
}
