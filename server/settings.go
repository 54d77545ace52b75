package server

import (
	"fmt"
	"log/slog"

	"sluice/queue"
)

// Settings are those of a Server that may change while it runs.
type Settings struct {
	Secrets         [][]byte   // the first signs, all verify
	AdminToken      string     // "" = the admin API is off
	WebhookSecrets  [][]byte   // sign the events of a payment provider, which then alone may pay; none = demonstration payments
	ChallengeSecret string     // what verifiers of challenges know this installation by; "" = nothing is sent
	NodeLimit       queue.Rate // of this node's API as a whole
	UserLimit       queue.Rate // of a user, as the Queue enforces it; only shown
	AddressLimit    queue.Rate // of an address, likewise
	ConnsSeat       int        // sockets that one seat may have at once, as the Hub bounds them; only told
	ConnsAddress    int        // connections of one address, as the Gate bounds them; only told
}

// inForce are settings with what was made of them. It never changes, so whoever has it may go on with it; another one takes
// its place.
type inForce struct {
	Settings
	identities *Identities
	admin      bearer
	node       *window
}

// current are the settings in force. Whoever needs two of them that belong together asks once.
func (s *Server) current() *inForce { return s.set.Load() }

// Prepare checks other settings and returns what puts them in force: at once, for whatever begins from then on. Until that is
// called nothing has changed, and what it does cannot fail. Errors: secrets that let nobody in or anybody, a limit that cannot
// be counted. It blocks on nothing. Calls and what they return must not overlap.
func (s *Server) Prepare(settings Settings) (change func(), err error) {
	next := &inForce{Settings: settings, admin: newBearer(settings.AdminToken)}
	next.identities, err = NewIdentities(IdentityOptions{
		Secrets: settings.Secrets, Methods: s.opts.Auth, Keys: s.opts.Keys,
		Issuer: s.opts.Issuer, Audiences: s.opts.Audiences, Leeway: s.opts.Leeway, Now: s.opts.Now,
	})
	if err != nil {
		return nil, err
	}
	keys, err := newPassKeys(settings.Secrets)
	if err != nil {
		return nil, err
	}
	if before := s.current(); before != nil && before.NodeLimit == settings.NodeLimit {
		next.node = before.node // which has counted
	} else if next.node, err = newWindow(settings.NodeLimit); err != nil {
		return nil, fmt.Errorf("limit of this node: %w", err)
	}
	return func() {
		settings.warnOfShort(s.log)
		s.set.Store(next)
		s.passes.keys.Store(keys)
	}, nil
}

// warnOfShort says in the log which secrets can be guessed.
func (s Settings) warnOfShort(log *slog.Logger) {
	warnOfShort(log, "secret", s.Secrets...)
	warnOfShort(log, "webhook-secret", s.WebhookSecrets...)
	warnOfShort(log, "challenge-secret", []byte(s.ChallengeSecret))
	warnOfShort(log, "admin-token", []byte(s.AdminToken))
}
