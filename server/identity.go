package server

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"sluice/queue"
)

// Headers of the HMAC pair.
const (
	headerUser  = "X-User-Id"
	headerToken = "X-Token"
)

const (
	maxUser  = 128     // bytes of a user id
	maxToken = 8 << 10 // bytes of a token, above what identity providers make
	// clockLeeway is how far the clock of whoever signed a JWT may be off.
	clockLeeway = 30 * time.Second
	// guestLife outlasts any sale that guests make sense for.
	guestLife = 7 * 24 * time.Hour
	// guestPrefix begins the user id of every guest.
	guestPrefix = "guest-"
)

// Identity is who is asking.
type Identity struct {
	User string // 1 to 128 bytes of UTF-8 without control characters, compared byte for byte
}

// Identities verifies who is asking, from the request alone. It is safe for concurrent use.
//
// The secrets themselves key what others sign for us: JWTs and the HMAC pair. What a server signs for itself, guest and
// seat tokens, has keys derived for that purpose, so that no token can ever pass as one of another kind. JWT and pair
// cannot pass as each other either: what the pair signs ends in a point and digits, and no JWT payload is all digits.
type Identities struct {
	pairs   []*signer // of the secrets themselves; the first signs
	guests  [][]byte
	seats   [][]byte
	entries [][]byte              // of the nonces in the entries of lotteries
	tokens  []jwt.VerificationKey // of what Token takes
	parser  *jwt.Parser
	hmac    bool
	guest   bool
	now     func() time.Time
}

// NewIdentities makes an Identities that verifies by any of the secrets and signs with the first. methods are those of
// "jwt", "hmac" and "guest" that are allowed.
func NewIdentities(secrets [][]byte, methods []string, now func() time.Time) (*Identities, error) {
	if len(secrets) == 0 || slices.ContainsFunc(secrets, func(s []byte) bool { return len(s) == 0 }) {
		return nil, errors.New("a secret is needed, and none may be empty")
	}
	i := &Identities{
		pairs: newSigners(secrets),
		hmac:  slices.Contains(methods, "hmac"),
		guest: slices.Contains(methods, "guest"),
		now:   now,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}),
			jwt.WithLeeway(clockLeeway),
			jwt.WithTimeFunc(now)),
	}
	for _, method := range methods {
		if method != "jwt" && method != "hmac" && method != "guest" {
			return nil, fmt.Errorf("%q is no way to say who is asking: use jwt, hmac or guest", method)
		}
	}
	var err error
	if i.guests, err = derive(secrets, "guest"); err != nil {
		return nil, err
	}
	if i.seats, err = derive(secrets, "seat"); err != nil {
		return nil, err
	}
	if i.entries, err = derive(secrets, "entry"); err != nil {
		return nil, err
	}
	if slices.Contains(methods, "jwt") {
		i.tokens = appendKeys(i.tokens, secrets)
	}
	if i.guest {
		i.tokens = appendKeys(i.tokens, i.guests)
	}
	return i, nil
}

// derive makes the keys of one purpose.
func derive(secrets [][]byte, purpose string) ([][]byte, error) {
	keys := make([][]byte, len(secrets))
	for i, secret := range secrets {
		key, err := hkdf.Key(sha256.New, secret, nil, "sluice "+purpose+" v1", sha256.Size)
		if err != nil {
			return nil, fmt.Errorf("derive the key of %s tokens: %w", purpose, err)
		}
		keys[i] = key
	}
	return keys, nil
}

func appendKeys(to []jwt.VerificationKey, keys [][]byte) []jwt.VerificationKey {
	for _, key := range keys {
		to = append(to, key)
	}
	return to
}

// Request tells who sent r: by its bearer token or, without one, by the HMAC pair. An identity that does not verify is a
// *queue.Error Unauthenticated; it never falls back to another.
func (i *Identities) Request(r *http.Request) (Identity, error) {
	if header := r.Header.Get(echo.HeaderAuthorization); header != "" {
		token, ok := bearerOf(header)
		if !ok {
			return Identity{}, unauthenticated("the Authorization header must be: Bearer, a space, and a token")
		}
		user, err := i.Token(token)
		return Identity{User: user}, err
	}
	if user := r.Header.Get(headerUser); user != "" {
		return Identity{User: user}, i.pair(user, r.Header.Get(headerToken))
	}
	return Identity{}, unauthenticated("say who you are: send a bearer token")
}

// Token verifies a bearer token, a user's or a guest's, and returns its user.
func (i *Identities) Token(token string) (string, error) {
	if token == "" || len(token) > maxToken {
		return "", unauthenticated("a token is needed, of at most 8 KiB")
	}
	var claims jwt.RegisteredClaims
	_, err := i.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		return jwt.VerificationKeySet{Keys: i.tokens}, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return "", unauthenticated("the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return "", unauthenticated("the token is not valid yet")
	case err != nil:
		return "", unauthenticated("the token is not valid")
	case !validUser(claims.Subject):
		return "", unauthenticated("the token names no user: its sub must be " + userRule)
	}
	return claims.Subject, nil
}

// pair verifies X-User-Id and X-Token.
func (i *Identities) pair(user, token string) error {
	if !i.hmac {
		return unauthenticated("X-User-Id and X-Token are not taken here: send a bearer token")
	}
	if !validUser(user) {
		return unauthenticated("X-User-Id must be " + userRule)
	}
	expiry, signature, ok := strings.Cut(token, ".")
	if !ok || len(expiry) > 19 || strings.Trim(expiry, "0123456789") != "" {
		return unauthenticated("X-Token must be <expiry in Unix seconds>.<hex HMAC-SHA256>")
	}
	var sum [sha256.Size]byte
	if n, err := hex.Decode(sum[:], []byte(signature[:min(len(signature), 2*len(sum))])); err != nil || n != len(sum) || len(signature) != 2*len(sum) ||
		!slices.ContainsFunc(i.pairs, func(by *signer) bool {
			want := by.sum(user, ".", expiry)
			return hmac.Equal(sum[:], want[:])
		}) {
		return unauthenticated("X-Token is not valid for this user")
	}
	if until, err := strconv.ParseInt(expiry, 10, 64); err != nil || i.now().Unix() >= until {
		return unauthenticated("X-Token has expired")
	}
	return nil
}

// Guest makes a guest and the token which proves it.
func (i *Identities) Guest() (user, token string, expires time.Time, err error) {
	if !i.guest {
		return "", "", time.Time{}, &queue.Error{Code: queue.Forbidden, Message: "guests are not allowed here: sign in first"}
	}
	user = guestPrefix + uuid.NewString()
	now := i.now()
	expires = now.Add(guestLife)
	token, err = mint(i.guests[0], user, now, expires)
	return user, token, expires, err
}

// MintJWT signs an HS256 token that names user and holds until expires.
func MintJWT(secret []byte, user string, expires time.Time) (string, error) {
	return mint(secret, user, time.Now(), expires)
}

func mint(key []byte, user string, now, expires time.Time) (string, error) {
	if !validUser(user) {
		return "", errors.New("a user id must be " + userRule)
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject:   user,
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(expires),
	}).SignedString(key)
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return signed, nil
}

// MintHMAC makes the X-Token that goes with the X-User-Id user and holds until expires.
func MintHMAC(secret []byte, user string, expires time.Time) string {
	expiry := strconv.FormatInt(expires.Unix(), 10)
	sum := newSigner(secret).sum(user, ".", expiry)
	return expiry + "." + hex.EncodeToString(sum[:])
}

// userRule is what validUser wants, for people.
const userRule = "1 to 128 bytes of UTF-8 without control characters"

func validUser(user string) bool {
	return user != "" && len(user) <= maxUser && utf8.ValidString(user) && !strings.ContainsFunc(user, unicode.IsControl)
}

// bearerOf takes the token out of an Authorization header.
func bearerOf(header string) (string, bool) {
	scheme, token, ok := strings.Cut(header, " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

func unauthenticated(message string) error {
	return &queue.Error{Code: queue.Unauthenticated, Message: message}
}
