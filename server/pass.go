package server

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/labstack/echo/v5"

	"sluice/hub"
	"sluice/queue"
)

const (
	// passLife bounds a pass whose ground may last for hours, an order or a sale without a line: whoever verifies passes by
	// themselves hears of no cancellation before the pass ends. The pass of a turn ends with the turn.
	passLife = 15 * time.Minute
	// passLeeway is how far the clock of whoever verifies a pass may be behind ours.
	passLeeway = 30 * time.Second
	// maxPass is how long a pass may be, in bytes. The longest user id, escaped, makes one of about 2 KiB.
	maxPass = 4 << 10
	// defaultPassIssuer is the `iss` of passes where nothing else is set.
	defaultPassIssuer = "sluice"
)

// ground is what a pass stands on: the turn or the order of one user in one sale.
type ground struct {
	sale  string
	user  string
	seat  int64 // the ticket; 0 without a line
	epoch int64
	order string // "" = a turn
	until int64  // when it ends as things stand, ms since the epoch; 0 = has no end of its own
	whole bool   // a pass of it lasts until then, however long that is
}

// groundOf is what a user who stands there has: a live order or, without one, a turn. Without a line whoever asks has a
// turn while there is something to grab. State and Stock of the seat must be of the present, and so must Stopped.
func groundOf(sale *queue.Sale, seat queue.Seat) (ground, bool) {
	g := ground{sale: sale.ID, user: seat.User, seat: seat.Ticket, epoch: seat.Epoch}
	going := seat.State == queue.Open || seat.State == queue.Paused
	switch {
	case seat.Status == queue.Buyer && seat.Order != nil && seat.Order.Status.Live():
		g.order = seat.Order.ID
		if seat.Order.Status != queue.Paid {
			g.until = seat.Order.PayBy
		}
		return g, true
	case seat.Status == queue.Turn && seat.State != queue.Closed:
		g.until, g.whole = seat.Deadline+seat.Stopped, true
		return g, true
	case seat.Status == queue.NoSeat && sale.Line.Order == queue.Off && going && seat.Stock == queue.Available:
		g.until = sale.ClosesAt.UnixMilli()
		return g, true
	}
	return ground{}, false
}

// bears says whether a pass holds whose holder has this ground. The turn of a pass may have become an order meanwhile. The
// epoch is not compared: a turn that was lost with Redis and given back is the same turn.
func (g ground) bears(pass passClaims) bool {
	if pass.Order != "" {
		return g.order == pass.Order
	}
	return g.order != "" || g.seat == pass.Seat
}

// passClaims are what a pass says. Times are Unix seconds.
type passClaims struct {
	Issuer   string `json:"iss"`
	Audience string `json:"aud"` // the sale: a verifier that names no audience, or another, refuses the pass by itself
	Subject  string `json:"sub"` // the user
	Sale     string `json:"sale"`
	Seat     int64  `json:"seat"`
	Epoch    int64  `json:"epoch"`
	Order    string `json:"order,omitempty"`
	ID       string `json:"jti"`
	IssuedAt int64  `json:"iat"`
	Begins   int64  `json:"nbf"`
	Ends     int64  `json:"exp"`
}

func unix(seconds int64) (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(time.Unix(seconds, 0)), nil
}

// GetExpirationTime is the moment from which on the pass is not valid any more.
func (c passClaims) GetExpirationTime() (*jwt.NumericDate, error) { return unix(c.Ends) }

// GetIssuedAt is when the pass was signed.
func (c passClaims) GetIssuedAt() (*jwt.NumericDate, error) { return unix(c.IssuedAt) }

// GetNotBefore is a little before that, for clocks that are behind.
func (c passClaims) GetNotBefore() (*jwt.NumericDate, error) { return unix(c.Begins) }

// GetIssuer is the installation.
func (c passClaims) GetIssuer() (string, error) { return c.Issuer, nil }

// GetSubject is the user.
func (c passClaims) GetSubject() (string, error) { return c.Subject, nil }

// GetAudience is the sale.
func (c passClaims) GetAudience() (jwt.ClaimStrings, error) { return jwt.ClaimStrings{c.Audience}, nil }

// passes signs and verifies. It is safe for concurrent use.
type passes struct {
	keys   atomic.Pointer[passKeys]
	issuer string
	now    func() time.Time
}

func newPasses(secrets [][]byte, issuer string, now func() time.Time) (*passes, error) {
	keys, err := newPassKeys(secrets)
	if err != nil {
		return nil, err
	}
	if issuer == "" {
		issuer = defaultPassIssuer
	}
	p := &passes{issuer: issuer, now: now}
	p.keys.Store(keys)
	return p, nil
}

// mint signs a pass and returns it with its end in Unix seconds; "" when the ground has no whole second left. It takes
// some 30 µs.
func (p *passes) mint(g ground) (token string, ends int64, err error) {
	now := p.now()
	end := now.Add(passLife).UnixMilli()
	if g.whole || g.until > 0 && g.until < end {
		end = g.until
	}
	if ends = end / 1000; ends <= now.Unix() {
		return "", 0, nil
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, passClaims{
		Issuer: p.issuer, Audience: g.sale, Subject: g.user, Sale: g.sale, Seat: g.seat, Epoch: g.epoch, Order: g.order,
		ID: uuid.NewString(), IssuedAt: now.Unix(), Begins: now.Add(-passLeeway).Unix(), Ends: ends,
	})
	keys := p.keys.Load()
	t.Header["kid"] = keys.id
	if token, err = t.SignedString(keys.signer); err != nil {
		return "", 0, fmt.Errorf("sign a pass: %w", err)
	}
	return token, ends, nil
}

// verify returns what a pass for that sale says, from the pass alone: a *queue.Error Unauthenticated when it is none.
func (p *passes) verify(token, sale string) (passClaims, error) {
	if token == "" || len(token) > maxPass {
		return passClaims{}, unauthenticated("a pass is needed, of at most 4 KiB")
	}
	var claims passClaims
	_, err := jwt.NewParser(
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
		jwt.WithIssuer(p.issuer),
		jwt.WithAudience(sale),
		jwt.WithExpirationRequired(),
		jwt.WithStrictDecoding(), // one pass has one form
		jwt.WithTimeFunc(p.now),
	).ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		id, _ := t.Header["kid"].(string)
		key, ok := p.keys.Load().public[id]
		if !ok {
			return nil, errors.New("no such key")
		}
		return key, nil
	})
	switch {
	case errors.Is(err, jwt.ErrTokenExpired):
		return passClaims{}, unauthenticated("the pass has expired; POST /api/v1/sales/{sale}/pass renews it")
	case err != nil, claims.Sale != sale, claims.ID == "", !validUser(claims.Subject):
		return passClaims{}, unauthenticated("the pass is not valid for this sale")
	}
	return claims, nil
}

// stateFrame is the newest state frame of a seat, with a pass if it has the ground for one. Signing takes as long as the
// rest of ten frames, so it is left to whoever writes the frame; a tick that gives a thousand turns does not wait for it.
func (p *passes) stateFrame(snap *queue.Snapshot, seat queue.Seat) *hub.Frame {
	return p.frame(stateOf(snap, seat), snap, seat)
}

// frame is a frame for somebody who stands there, with a pass where both the frame and the seat have a place for one. Without
// a line the opening is the turn of all at once, and so many signatures would come just when all of them grab: who wants a
// pass for that asks for it.
func (p *passes) frame(frame any, snap *queue.Snapshot, seat queue.Seat) *hub.Frame {
	seat.State, seat.Stock, seat.Stopped = snap.State, snap.Stock, snap.Stopped
	g, ok := groundOf(snap.Sale, seat)
	if !ok || !bearsPass(frame) || g.order == "" && seat.Status != queue.Turn {
		return hub.NewFrame(encode(frame))
	}
	return hub.NewLateFrame(func() []byte { return encode(p.in(frame, g)) })
}

// bearsPass says whether a frame has a place for a pass.
func bearsPass(frame any) bool {
	switch frame.(type) {
	case turnFrame, orderFrame:
		return true
	}
	return false
}

// in puts a pass into a frame. Without one the frame still says all the rest, so a failure to sign is no reason to say nothing.
func (p *passes) in(frame any, g ground) any {
	token, _, err := p.mint(g)
	if err != nil {
		return frame
	}
	switch f := frame.(type) {
	case turnFrame:
		f.Pass = token
		return f
	case orderFrame:
		f.Pass = token
		return f
	}
	return frame
}

// passAnswer is the body of POST …/pass.
type passAnswer struct {
	Pass      string `json:"pass"`
	ExpiresAt int64  `json:"expires_at"` // ms since the epoch
}

// renewPass is POST /sales/{sale}/pass: a new pass for the caller's own turn or order. It counts against the limits like a
// join that resumes, which it is.
func (s *Server) renewPass(c *echo.Context) error {
	ctx, sale := c.Request().Context(), c.Param("sale")
	who, err := s.current().identities.Request(c.Request())
	if err != nil {
		return err
	}
	settings, err := s.settings(ctx, sale)
	if err != nil {
		return err
	}
	seat, err := s.line.Join(ctx, queue.JoinRequest{Sale: sale, User: who.User, Address: addressOf(c), Resume: queue.ResumeAny})
	if err != nil {
		s.countLimited(err)
		return fmt.Errorf("look at a seat of sale %s: %w", sale, err)
	}
	showAllowance(c, seat.Allowance)
	seat.User = who.User
	var token string
	var ends int64
	if g, ok := groundOf(settings, seat); ok {
		if token, ends, err = s.passes.mint(g); err != nil {
			return err
		}
	}
	switch {
	case token != "":
		return c.JSON(http.StatusOK, passAnswer{Pass: token, ExpiresAt: ends * 1000})
	case seat.State == queue.Recovering:
		return errUnsettled()
	}
	return &queue.Error{Code: queue.Forbidden, Message: "a pass is for those who have a turn or an order in this sale; you have neither now"}
}

// errUnsettled is about a sale that is being put right: what is not there may be back in a moment.
func errUnsettled() error {
	return &queue.Error{
		Code: queue.Unavailable, Message: "the sale is being put right; try again in a moment", RetryAfter: time.Second,
	}
}
