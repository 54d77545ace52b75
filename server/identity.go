package server

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/labstack/echo/v5"

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
	// guestLife outlasts any sale that guests make sense for.
	guestLife = 7 * 24 * time.Hour
	// guestPrefix begins the user id of every guest.
	guestPrefix = "guest-"
	// guestType is the typ of guest tokens, by which their key is known (RFC 8725, 3.11).
	guestType = "sluice-guest+jwt"
)

// Identity is who is asking.
type Identity struct {
	User string // 1 to 128 bytes of UTF-8 without control characters, compared byte for byte
}

// IdentityOptions say whose word is taken for who is asking.
type IdentityOptions struct {
	Secrets [][]byte // the first signs, all verify
	// Methods are those allowed of "jwt" (bearer tokens: of Keys where there are any, else HS256 tokens of Secrets),
	// "hs256" (tokens of Secrets also beside Keys), "hmac" (the pair of headers) and "guest".
	Methods   []string
	Keys      *Keyring         // of an identity provider; nil = there is none
	Issuer    string           // what iss must be in a user's token; "" = it is not looked at
	Audiences []string         // of which aud must have one; none = it is not looked at
	Leeway    time.Duration    // how far the clock of whoever signed a token may be off
	Now       func() time.Time // nil = time.Now
}

// Identities verifies who is asking, from the request alone. It is safe for concurrent use.
//
// The secrets themselves key what others sign for us: JWTs and the HMAC pair. What a server signs for itself, guest and
// seat tokens, has keys derived for that purpose, so that no token can ever pass as one of another kind. JWT and pair
// cannot pass as each other either: what the pair signs ends in a point and digits, and no JWT payload is all digits.
// Keys of a provider are pinned to their algorithm (jwk.go), and never meet a token of HS256.
type Identities struct {
	pairs   []*signer // of the secrets themselves; the first signs
	guests  [][]byte
	seats   [][]byte
	entries [][]byte  // of the nonces in the entries of lotteries
	orders  []*signer // of the ids of orders

	keys        *Keyring               // of "jwt" by a provider; nil = not taken
	ofSecrets   jwt.VerificationKeySet // of users' HS256 tokens; empty = not taken
	ofGuests    jwt.VerificationKeySet // of guests' tokens; empty = not taken
	parser      *jwt.Parser            // of signatures
	userClaims  *jwt.Validator
	guestClaims *jwt.Validator
	hmac        bool
	guest       bool
	now         func() time.Time
}

// NewIdentities makes an Identities. It fails for settings that let nobody in, or anybody.
func NewIdentities(opts IdentityOptions) (*Identities, error) {
	secrets := opts.Secrets
	if len(secrets) == 0 || slices.ContainsFunc(secrets, func(s []byte) bool { return len(s) == 0 }) {
		return nil, errors.New("a secret is needed, and none may be empty")
	}
	if opts.Leeway < 0 {
		return nil, errors.New("the leeway of clocks must be 0 or more")
	}
	for _, method := range opts.Methods {
		if !slices.Contains(Methods(), method) {
			return nil, fmt.Errorf("%q is no way to say who is asking: use %s", method, strings.Join(Methods(), ", "))
		}
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	has := func(method string) bool { return slices.Contains(opts.Methods, method) }
	i := &Identities{pairs: newSigners(secrets), hmac: has("hmac"), guest: has("guest"), now: opts.Now}
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
	orders, err := derive(secrets, "order")
	if err != nil {
		return nil, err
	}
	i.orders = newSigners(orders)
	var algorithms []string
	if has("jwt") && opts.Keys != nil {
		i.keys = opts.Keys
		algorithms = append(algorithms, jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg(), jwt.SigningMethodEdDSA.Alg())
	}
	if has("hs256") || has("jwt") && opts.Keys == nil {
		i.ofSecrets = keySetOf(secrets)
	}
	if i.guest {
		i.ofGuests = keySetOf(i.guests)
	}
	if len(i.ofSecrets.Keys)+len(i.ofGuests.Keys) > 0 {
		algorithms = append(algorithms, jwt.SigningMethodHS256.Alg())
	}
	i.parser = jwt.NewParser(
		jwt.WithValidMethods(append([]string{}, algorithms...)), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding(), // one token has one form
	)
	clock := []jwt.ParserOption{
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(opts.Leeway), jwt.WithTimeFunc(opts.Now),
	}
	i.guestClaims = jwt.NewValidator(clock...)
	if opts.Issuer != "" {
		clock = append(clock, jwt.WithIssuer(opts.Issuer))
	}
	if len(opts.Audiences) > 0 {
		clock = append(clock, jwt.WithAudience(opts.Audiences...))
	}
	i.userClaims = jwt.NewValidator(clock...)
	return i, nil
}

// Methods are the ways to say who is asking that NewIdentities knows.
func Methods() []string { return []string{"jwt", "hs256", "hmac", "guest"} }

// run keeps what is verified by up to date until ctx ends.
func (i *Identities) run(ctx context.Context) {
	if i.keys != nil {
		i.keys.Run(ctx)
	}
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

func keySetOf(keys [][]byte) jwt.VerificationKeySet {
	var set jwt.VerificationKeySet
	for _, key := range keys {
		set.Keys = append(set.Keys, key)
	}
	return set
}

// Request tells who sent r: by its bearer token or, without one, by the HMAC pair. An identity that does not verify is a
// *queue.Error Unauthenticated; it never falls back to another. See Token for what it may wait for.
func (i *Identities) Request(r *http.Request) (Identity, error) {
	if header := r.Header.Get(echo.HeaderAuthorization); header != "" {
		token, ok := bearerOf(header)
		if !ok {
			return Identity{}, unauthenticated("the Authorization header must be: Bearer, a space, and a token")
		}
		user, err := i.Token(r.Context(), token)
		return Identity{User: user}, err
	}
	if user := r.Header.Get(headerUser); user != "" {
		return Identity{User: user}, i.pair(user, r.Header.Get(headerToken))
	}
	return Identity{}, unauthenticated("say who you are: send a bearer token")
}

// Token verifies a bearer token, a user's or a guest's, and returns its user. Its error is a *queue.Error: Unauthenticated, or
// Unavailable where the key that the token names is not known and the provider cannot be asked. Only for such a key it
// waits, for some seconds at most; see [Keyring].
func (i *Identities) Token(ctx context.Context, token string) (string, error) {
	if token == "" || len(token) > maxToken {
		return "", unauthenticated("a token is needed, of at most 8 KiB")
	}
	// Not a struct of claims: JSON would fill one from "SUB" as well, which a provider may let its users write.
	claims := jwt.MapClaims{}
	parsed, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return i.keyOf(ctx, t) })
	if err != nil {
		return "", tokenError(err)
	}
	if !datesHold(claims) {
		return "", unauthenticated("the token is not valid")
	}
	validator := i.userClaims
	if isGuest(parsed) {
		validator = i.guestClaims
	}
	if err := validator.Validate(claims); err != nil {
		return "", tokenError(err)
	}
	user, err := claims.GetSubject()
	// What is no UTF-8 in a payload, and half a surrogate pair, JSON reads as U+FFFD: two users would be one.
	if err != nil || !validUser(user) || strings.ContainsRune(user, utf8.RuneError) {
		return "", unauthenticated("the token names no user: its sub must be " + userRule)
	}
	return user, nil
}

// datesHold says whether all moments in the claims can be counted with: beyond that a time far in the future would be taken for
// one in the past.
func datesHold(claims jwt.MapClaims) bool {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if seconds, ok := claims[name].(float64); ok && math.Abs(seconds) > 1<<53 {
			return false
		}
	}
	return true
}

// keyOf is what the signature of a token must be verified with. Which kind of key that is depends on the algorithm alone;
// keys that a token brings along or points to are never looked at.
func (i *Identities) keyOf(ctx context.Context, token *jwt.Token) (any, error) {
	if _, ok := token.Header["crit"]; ok {
		return nil, errors.New("it needs extensions") // RFC 7515, 4.1.11; there are none here
	}
	algorithm := token.Method.Alg()
	switch {
	case isGuest(token):
		return i.ofGuests, nil
	case algorithm == jwt.SigningMethodHS256.Alg():
		return i.ofSecrets, nil
	case i.keys == nil:
		return nil, errOtherAlgorithm
	}
	id, ok := token.Header["kid"].(string)
	if _, named := token.Header["kid"]; named && !ok {
		return nil, errUnknownKey
	}
	return i.keys.find(ctx, algorithm, id)
}

// isGuest says whether a token claims to be one that this server gave a guest. Its key is another one than any user's.
func isGuest(token *jwt.Token) bool {
	return token.Method == jwt.SigningMethodHS256 && token.Header["typ"] == guestType
}

// tokenError says what is wrong with a token, of which it repeats nothing.
func tokenError(err error) error {
	var known *queue.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, jwt.ErrTokenExpired):
		return unauthenticated("the token has expired")
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return unauthenticated("the token is not valid yet")
	case errors.Is(err, jwt.ErrTokenInvalidIssuer):
		return unauthenticated("the token is of another issuer")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return unauthenticated("the token is for another audience")
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return unauthenticated("the token lacks a claim: it needs exp, and iss and aud where they are asked for")
	case errors.Is(err, errWhichKey):
		return unauthenticated("the token does not say which key signed it: it needs a kid")
	}
	return unauthenticated("the token is not valid")
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
	token, err = mint(i.guests[0], guestType, jwt.RegisteredClaims{Subject: user}, now, expires)
	return user, token, expires, err
}

// MintJWT signs an HS256 token that names user and holds until expires.
func MintJWT(secret []byte, user string, expires time.Time) (string, error) {
	return MintClaims(secret, jwt.RegisteredClaims{Subject: user}, expires)
}

// MintClaims is MintJWT for a server that looks at more than the subject.
func MintClaims(secret []byte, claims jwt.RegisteredClaims, expires time.Time) (string, error) {
	return mint(secret, "JWT", claims, time.Now(), expires)
}

func mint(key []byte, kind string, claims jwt.RegisteredClaims, now, expires time.Time) (string, error) {
	if !validUser(claims.Subject) {
		return "", errors.New("a user id must be " + userRule)
	}
	claims.IssuedAt, claims.ExpiresAt = jwt.NewNumericDate(now), jwt.NewNumericDate(expires)
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	token.Header["typ"] = kind
	signed, err := token.SignedString(key)
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
