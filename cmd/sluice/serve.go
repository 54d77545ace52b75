package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/queue"
	"sluice/server"
	"sluice/words"
	"sluice/worker"
)

// serveFlags are the settings of the server.
type serveFlags struct {
	secretFlags
	claimFlags
	AdminToken          string        `placeholder:"TOKEN" help:"Token of the admin API."`
	AdminTokenFile      string        `placeholder:"FILE" help:"File with the token of the admin API."`
	Listen              string        `default:":8080" placeholder:"ADDRESS" help:"Where shoppers connect, if not at ${default}."`
	AdminListen         string        `placeholder:"ADDRESS" help:"Where operators connect, to the admin API and the console; empty is where shoppers do. With it, there is nothing of the kind there."`
	OpsListen           string        `default:"127.0.0.1:9090" placeholder:"ADDRESS" help:"Where health, metrics and profiles are, if not at ${default}; empty is nowhere."`
	Auth                []string      `placeholder:"KIND" help:"How people may say who they are: jwt (tokens of --jwks-url, or without it HS256 tokens of --secret), hs256 (those also beside --jwks-url), hmac (the headers X-User-Id and X-Token), guest. Without it jwt,hmac; with --jwks-url jwt alone; guest too only in an embedded installation."`
	JWKSURL             string        `name:"jwks-url" placeholder:"URL" help:"Where an identity provider has its public keys (RS256, ES256, EdDSA), like https://id.example/jwks.json or file:///etc/sluice/jwks.json. They are read again every five minutes, a file every ten seconds, and when a token names a new one."`
	JWTLeeway           time.Duration `name:"jwt-leeway" default:"30s" help:"How far the clock of whoever signs tokens may be off."`
	Origins             []string      `placeholder:"ORIGIN" help:"Pages of other origins that may connect, like https://shop.example."`
	TrustedProxies      []string      `placeholder:"RANGE" help:"Proxies whose X-Forwarded-For is believed, like 10.0.0.0/8."`
	LimitNode           queue.Rate    `default:"0" help:"Requests to this node's API, like 50000/s; 0 is no limit."`
	ConnsSeat           int           `default:"8" help:"Connections that one seat may have at once."`
	ConnsAddress        int           `default:"0" help:"Connections that one address (of IPv6: one /64) may have to this node at once; 0 is any number. Whole towns may share an address."`
	ConnsNode           int           `default:"0" help:"Connections to this node at once, beyond which newcomers are asked to come back later; 0 is as many as its descriptors and its memory allow."`
	Drain               time.Duration `default:"15s" help:"Over how long shoppers are sent elsewhere when the node ends."`
	FrameAncestors      []string      `placeholder:"ORIGIN" help:"Pages that may show the shop's page inside theirs."`
	WebhookSecret       []string      `placeholder:"SECRET" help:"Secrets that a payment provider signs its events with, separated by commas. With one, nothing else can pay an order."`
	WebhookSecretFile   string        `placeholder:"FILE" help:"File with the secrets of the payment provider."`
	PassIssuer          string        `default:"sluice" placeholder:"NAME" help:"The iss of the passes that shops verify, the same on every node; like https://sale.example."`
	ChallengeSecret     string        `placeholder:"SECRET" help:"What the verifiers that sales name as challenge_url know this installation by."`
	ChallengeSecretFile string        `placeholder:"FILE" help:"File with that secret."`
	BrokerUIURL         string        `name:"broker-ui-url" placeholder:"URL" help:"Where operators find the pages of RabbitMQ, like https://rabbitmq.example:15672; the console links to it."`
	TLSCert             string        `name:"tls-cert" placeholder:"FILE" help:"Certificate, to serve HTTPS."`
	TLSKey              string        `name:"tls-key" placeholder:"FILE" help:"Key of the certificate."`
}

// maxIssuerBytes keeps passes short enough for a header.
const maxIssuerBytes = 256

// serverSettings are serveFlags with everything filled in.
type serverSettings struct {
	serveFlags
	secrets   [][]byte
	admin     string
	auth      []string
	webhook   [][]byte
	challenge string
	own       struct{ secret, admin bool } // those that an embedded installation made for itself
}

// logFlags say how a node logs.
type logFlags struct {
	LogFormat string `enum:"text,json" default:"text" help:"text or json."`
	LogLevel  string `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// level is the least that is logged.
func (f logFlags) level() (level slog.Level) {
	_ = level.UnmarshalText([]byte(f.LogLevel)) // the enum admits only levels
	return level
}

// logger writes to the command's error output what is at that level, or above.
func (f logFlags) logger(std *stdio, level slog.Leveler) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(std.err, opts))
	}
	return slog.New(slog.NewTextHandler(std.err, opts))
}

// nodeFlags are all settings of a node that serves.
type nodeFlags struct {
	backendFlags
	serveFlags
	workerFlags
	logFlags
	traceFlags
	NoWorker bool `help:"Leave relays and order writers to sluice worker."`
}

// idle is the error of a node whose orders nobody could write.
func (f nodeFlags) idle() error {
	if _, broker, _ := f.given(); f.NoWorker && !broker {
		return usagef("--no-worker needs --redis-url and --amqp-url: workers elsewhere could not reach the orders of this process")
	}
	return nil
}

// serveCmd is `sluice serve`.
type serveCmd struct{ nodeFlags }

// Help is shown below the flags.
func (*serveCmd) Help() string {
	return `Serves shoppers and operators until it is told to stop, and then sends its shoppers elsewhere.

Example:

    sluice serve
    sluice serve --redis-url redis://127.0.0.1 --amqp-url amqp://127.0.0.1 --database-url mysql://root@127.0.0.1/sluice --secret-file secret --admin-token-file admin`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, std *stdio, line *commandLine) error {
	var level slog.LevelVar
	level.Set(c.level())
	log := c.logger(std, &level)
	r := newReloader(line)
	defer r.stop()
	stands, err := c.backendFlags.read()
	if err != nil {
		return err
	}
	if err := firstOfErrors(append(c.outOfRange(), c.idle())); err != nil {
		return err
	}
	settings, err := c.settings(stands, log)
	if err != nil {
		return err
	}
	n, err := newNode(ctx, stands, c.traceFlags, log)
	if err != nil {
		return err
	}
	defer n.close()
	if err := n.run(ctx, settings, c.workerFlags, !c.NoWorker); err != nil {
		return err
	}
	r.begin(n.registry, n.log, func(next *cli) (func(), error) { return next.Serve.prepare(n, &settings, &level) })
	n.log.Info("serving", "url", n.URL, "redis", where(stands.RedisURL), "broker", where(stands.AMQPURL), "database", n.backends.store.Dialect(), "workers", !c.NoWorker)
	return n.wait(ctx, r)
}

// prepare makes ready to put in force what may change of a node that serves by another command line. settings are those that it
// has, and then has.
func (c *serveCmd) prepare(n *node, settings *serverSettings, level *slog.LevelVar) (change func(), err error) {
	stands, err := c.backendFlags.read()
	if err != nil {
		return nil, err
	}
	if err := firstOfErrors(append(c.outOfRange(), c.idle())); err != nil {
		return nil, err
	}
	next, err := c.after(*settings, n.backends.flags.embedded())
	if err != nil {
		return nil, err
	}
	most, err := n.most(next.ConnsNode)
	if err != nil {
		return nil, err
	}
	serves, err := n.server.Prepare(next.live(stands))
	if err != nil {
		return nil, err
	}
	return func() {
		level.Set(c.level())
		n.backends.queue.SetLimits(stands.limits())
		n.hub.SetConnsPerKey(next.ConnsSeat)
		n.gate.SetBounds(most, next.ConnsAddress)
		serves()
		*settings = next
	}, nil
}

// live are those settings that may change while the server runs.
func (s serverSettings) live(b backendFlags) server.Settings {
	return server.Settings{
		Secrets: s.secrets, AdminToken: s.admin, WebhookSecrets: s.webhook, ChallengeSecret: s.challenge,
		NodeLimit: s.LimitNode, UserLimit: b.LimitUser, AddressLimit: b.LimitAddress, ConnsSeat: s.ConnsSeat, ConnsAddress: s.ConnsAddress,
	}
}

// run starts all parts of a node that serves.
func (n *node) run(ctx context.Context, settings serverSettings, workers workerFlags, work bool) error {
	// What the node does ends with close, not with ctx: shoppers are sent elsewhere and orders finished first.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	var notifier *worker.Notifier
	if n.backends.inside != nil {
		n.log.Warn("redis is embedded: the line does not survive a restart of this process; orders do")
		notifier = worker.NewNotifier(n.backends.store)
	}
	if work {
		n.work(running, workers, notifier)
	}
	n.restore(running)
	return n.serve(running, settings, notifier)
}

// where says in the log whether a part is embedded, without the URL, which may hold a password.
func where(url string) string {
	if url == "" {
		return "embedded"
	}
	scheme, _, _ := strings.Cut(url, ":")
	return scheme
}

// settings fills in what an embedded installation may leave out, and says so; elsewhere it must be given.
func (f serveFlags) settings(b backendFlags, log *slog.Logger) (serverSettings, error) {
	s, refused := f.resolve()
	if err := firstOfErrors(refused); err != nil {
		return s, err
	}
	var err error
	if s.auth, err = f.methods(b.embedded(), log); err != nil {
		return s, err
	}
	if !b.embedded() {
		return s, s.unsigned()
	}
	if len(s.secrets) == 0 {
		secret, err := keptSecret(b.DataDir, "secret")
		if err != nil {
			return s, err
		}
		s.secrets, s.own.secret = [][]byte{[]byte(secret)}, true
		log.Warn("no --secret given: one of this installation's own is used", "file", filepath.Join(b.DataDir, "secret"))
	}
	if s.admin == "" {
		if s.admin, err = keptSecret(b.DataDir, "admin-token"); err != nil {
			return s, err
		}
		s.own.admin = true
		log.Warn("no --admin-token given: one of this installation's own is used", "file", filepath.Join(b.DataDir, "admin-token"))
	}
	return s, nil
}

// unsigned is the error of a node that has no secret.
func (s serverSettings) unsigned() error {
	if len(s.secrets) == 0 {
		return usagef("give --secret or --secret-file, the same on every node: it signs the tokens of shoppers and seats")
	}
	return nil
}

// after are the settings of a running node, embedded or not, by another command line, which had those of before. It writes nothing. Whoever takes
// a secret out of a file, and means another one, must not find a door open that was shut: that takes a restart.
func (f serveFlags) after(before serverSettings, embedded bool) (serverSettings, error) {
	s, refused := f.resolve()
	if err := firstOfErrors(refused); err != nil {
		return s, err
	}
	s.auth = before.auth // it takes a restart
	if before.own.secret && len(s.secrets) == 0 {
		s.secrets, s.own.secret = before.secrets, true
	}
	if before.own.admin && s.admin == "" {
		s.admin, s.own.admin = before.admin, true
	}
	for _, secret := range s.secrets {
		if len(secret) < server.ShortSecret && !slices.ContainsFunc(before.secrets, func(had []byte) bool { return bytes.Equal(had, secret) }) {
			return s, usagef("a new --secret has %d bytes, which can be guessed: give %d random ones", len(secret), server.GoodSecret)
		}
	}
	late := "no %s is given any more, and %s: that takes a restart"
	switch {
	case len(before.webhook) > 0 && len(s.webhook) == 0:
		return s, usagef(late, "--webhook-secret", "whoever holds an order could mark it paid")
	case embedded && len(s.secrets) == 0:
		return s, usagef(late, "--secret", "the installation would use one of its own")
	case embedded && s.admin == "":
		return s, usagef(late, "--admin-token", "the installation would use one of its own")
	}
	return s, s.unsigned()
}

// resolve reads what was given as files, and returns beside it everything that no node starts with. A secret that cannot be read
// is left out.
func (f serveFlags) resolve() (s serverSettings, refused []error) {
	s.serveFlags = f
	note := func(err error) {
		if err != nil {
			refused = append(refused, err)
		}
	}
	var err error
	s.secrets, err = f.secrets()
	note(err)
	s.admin, err = valueOrFile("admin-token", f.AdminToken, f.AdminTokenFile)
	note(err)
	webhook, err := valueOrFile("webhook-secret", strings.Join(f.WebhookSecret, ","), f.WebhookSecretFile)
	note(err)
	if s.webhook = splitSecrets(webhook); webhook != "" && len(s.webhook) == 0 {
		note(fmt.Errorf("read --webhook-secret-file: %s holds no secret, so whoever holds an order could mark it paid", f.WebhookSecretFile))
	}
	s.challenge, err = valueOrFile("challenge-secret", f.ChallengeSecret, f.ChallengeSecretFile)
	note(err)
	if (f.TLSCert == "") != (f.TLSKey == "") {
		note(usagef("--tls-cert and --tls-key go together"))
	}
	if err := server.CheckNodeLimit(f.LimitNode); err != nil {
		note(usagef("--limit-node: %s", err))
	}
	refused = append(refused, unfitListeners(map[string]string{"listen": f.Listen, "admin-listen": f.AdminListen, "ops-listen": f.OpsListen})...)
	if f.Drain < 0 {
		note(usagef("--drain %s: give 0s or more", words.Duration(f.Drain)))
	}
	if f.ConnsSeat < 1 {
		note(usagef("--conns-seat %d: give 1 or more", f.ConnsSeat))
	}
	if f.ConnsAddress < 0 || f.ConnsNode < 0 {
		note(usagef("--conns-address and --conns-node must be 0 or more"))
	}
	if f.BrokerUIURL != "" {
		if u, err := url.Parse(f.BrokerUIURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			note(usagef("--broker-ui-url: write it like https://rabbitmq.example:15672"))
		}
	}
	if len(f.PassIssuer) > maxIssuerBytes || !utf8.ValidString(f.PassIssuer) || strings.ContainsFunc(f.PassIssuer, unicode.IsControl) {
		note(usagef("--pass-issuer: give a name of at most %d bytes without control characters, like https://sale.example", maxIssuerBytes))
	}
	return s, append(refused, f.unfit()...)
}

// mostLeeway is far beyond any clock that is kept.
const mostLeeway = 5 * time.Minute

// methods are the ways to say who is asking. Once there is a provider, nothing else is taken unless it was asked for: whoever
// has the secret of an earlier time could still be anybody.
func (f serveFlags) methods(embedded bool, log *slog.Logger) ([]string, error) {
	if err := firstOfErrors(f.unfit()); err != nil {
		return nil, err
	}
	if f.JWKSURL != "" && len(f.JWTAudience) == 0 {
		log.Warn("no --jwt-audience given: tokens that the identity provider made for other services are taken as well")
	}
	switch {
	case len(f.Auth) > 0:
		return f.Auth, nil
	case f.JWKSURL != "":
		return []string{"jwt"}, nil
	case embedded:
		log.Warn("no --auth given: guests are let in, which suits trying things out and not a real sale")
		return []string{"jwt", "hmac", "guest"}, nil
	}
	return []string{"jwt", "hmac"}, nil
}

// unfit is what of the ways to say who is asking no node starts with.
func (f serveFlags) unfit() (refused []error) {
	for _, kind := range f.Auth {
		if !slices.Contains(server.Methods(), kind) {
			refused = append(refused, usagef("--auth %q: use %s", kind, strings.Join(server.Methods(), ", ")))
		}
	}
	if f.JWTLeeway < 0 || f.JWTLeeway > mostLeeway {
		refused = append(refused, usagef("--jwt-leeway %s: give 0s to %s", words.Duration(f.JWTLeeway), words.Duration(mostLeeway)))
	}
	if f.JWKSURL != "" && len(f.Auth) > 0 && !slices.Contains(f.Auth, "jwt") {
		refused = append(refused, usagef("--jwks-url is of no use without jwt in --auth"))
	}
	return refused
}

// keys are those of the identity provider; nil without one.
func (f serveFlags) keys(log *slog.Logger, registerer prometheus.Registerer) (*server.Keyring, error) {
	if f.JWKSURL == "" {
		return nil, nil
	}
	keys, err := server.NewKeyring(f.JWKSURL, log, registerer)
	if err != nil {
		return nil, keysError(err)
	}
	return keys, nil
}

// keysError is that of keys with which no node starts.
func keysError(err error) error { return fmt.Errorf("--jwks-url: %w", err) }
