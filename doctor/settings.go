package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice/server"
	"sluice/words"
)

// shortDrain is not enough for thousands to go elsewhere one after the other.
const shortDrain = 5 * time.Second

// Settings are those of a node that serves, as far as there is something to judge.
type Settings struct {
	Refused        []error  // why no node starts with them, each a sentence
	Shadowed       []string // names of those that a file has in vain, since they are given elsewhere too
	Embedded       bool     // Redis is inside the process
	Broker         bool     // orders go over RabbitMQ
	Database       bool     // it is a server, or a file that was named
	Secrets        [][]byte
	AdminToken     string
	Webhooks       [][]byte // secrets of a payment provider, which alone can pay; none = whoever holds an order can
	Challenge      string   // secret that verifiers of challenges are told; "" = none
	Auth           []string // as given; none = what is usual
	Provider       bool     // tokens are those of an identity provider
	Audiences      []string // that its tokens must be for; none = any
	Origins        []string
	TrustedProxies []string
	OpsListen      string
	UserLimit      bool // there is a limit of each user
	OutboxLimit    int64
	Drain          time.Duration
}

// Judge judges the settings of a node.
func (s Settings) Judge() []Finding {
	f := &findings{part: "settings"}
	for _, err := range s.Refused {
		f.warn("start", err.Error(), "give these settings as it says", "a node does not start with them")
	}
	for _, name := range s.Shadowed {
		f.advise("config", "--config has "+name+", and the command line or the environment, which goes first, has it too", "take it out of one of them",
			"what the file says is not used, also when it changes")
	}
	f.secrets(s)
	f.adminToken(s.AdminToken)
	for _, origin := range s.Origins {
		f.origin(origin)
	}
	for _, proxy := range s.TrustedProxies {
		f.proxy(proxy)
	}
	if s.Embedded {
		f.warn("redis", "it is inside this process", "give --redis-url", "places in line do not survive a restart, and there can be one node only")
	}
	if !s.Embedded && !s.Broker {
		f.advise("broker", "there is no --amqp-url, so each node hands its orders over in its own memory", "give --amqp-url",
			"orders wait in Redis and are written by the nodes alone; one that cannot be written is lost with its process, and sluice dead never sees it")
	}
	if !s.Embedded && !s.Broker && !s.Database { // with a broker it is refused
		f.advise("database", "there is no --database-url, so each node keeps its orders in a file of its own", "give --database-url before there is a second node",
			"a shopper finds an order at one node only, and no node's books add up")
	}
	if s.Provider && len(s.Audiences) == 0 {
		f.advise("audience", "there is no --jwt-audience, so tokens that the identity provider made for other apps are taken too", "give --jwt-audience, the one of this shop",
			"whoever runs another app of that provider can be any of its users here")
	}
	if slices.Contains(s.Auth, "guest") {
		f.advise("guests", "anybody is let in under as many names as they like", "leave guest out of --auth, and let the shop say who is asking", "one person can hold many places")
	}
	if len(s.Webhooks) == 0 {
		f.advise("payments", "whoever holds an order can mark it paid", "give --webhook-secret, so that only the payment provider can", "the demonstration payment moves no money")
	}
	if !s.UserLimit {
		f.advise("limits", "--limit-user is 0", "leave it at 20/s", "one shopper can keep Redis busy")
	}
	if s.OutboxLimit == 0 {
		f.advise("outbox", "--outbox-limit is 0", "leave it as it comes", "while the broker is away, orders fill the memory of Redis")
	}
	if s.Drain < shortDrain {
		f.advise("drain", "--drain is "+words.Duration(s.Drain), "give it at least "+words.Duration(shortDrain), "all shoppers of a node that ends come to the others at once")
	}
	if host, _, err := net.SplitHostPort(s.OpsListen); s.OpsListen != "" && err == nil && !isLoopback(host) {
		f.advise("operations", "--ops-listen is reachable from elsewhere", "see that only your monitoring can reach it", "profiles show what is in memory, and cost time")
	}
	return f.list
}

func (f *findings) secrets(s Settings) {
	if len(s.Secrets) == 0 && !s.Embedded {
		f.warn("secret", "there is none", "give --secret-file, the same on every node", "a node does not start without, and nodes with others do not know each other's shoppers")
	}
	for i, secret := range s.Secrets {
		f.secret("secret", nth(i), secret, "whoever has a token can find it by trying, and be any shopper")
	}
	for i, secret := range s.Webhooks {
		f.secret("webhook secret", nth(i), secret, "whoever sees one signed event can find it by trying, and mark any order paid")
	}
	if s.Challenge != "" {
		f.secret("challenge secret", "", []byte(s.Challenge), "somebody can find it by trying, and use the verifier in the name of this installation")
	}
}

// secret judges one secret of some, which may have a place among them.
func (f *findings) secret(about, place string, secret []byte, why string) {
	which := "it"
	if place != "" {
		which = "the " + place
	}
	switch found, do := fmt.Sprintf("%s has %s", which, words.Count(len(secret), "byte")), fmt.Sprintf("make it of %d random bytes", server.GoodSecret); {
	case len(secret) < server.ShortSecret:
		f.warn(about, found, do, why)
	case len(secret) < server.GoodSecret:
		f.advise(about, found, do, "RFC 7518 wants as many of a key of HS256, and one length for all secrets is the easiest to keep to")
	default:
		f.sound(about, "%s is long enough", which)
	}
}

func (f *findings) adminToken(token string) {
	if token == "" {
		f.advise("admin token", "there is none", "give --admin-token-file", "nobody can apply, pause or audit a sale")
		return
	}
	f.secret("admin token", "", []byte(token), "it can be found by trying")
}

// origin judges a page of another origin that may connect.
func (f *findings) origin(origin string) {
	u, err := url.Parse(origin)
	if err == nil && u.User != nil {
		origin = u.Redacted()
	}
	switch {
	case strings.Contains(origin, "*"):
		f.warn("origins", origin, "name each origin, like https://shop.example", "a node does not start with it: origins are compared whole, so that no other site can act for a shopper")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil:
		f.warn("origins", origin, "write it like https://shop.example, without a path", "no browser ever sends that")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		f.advise("origins", origin, "serve that page by https", "whoever sits on the way to the shopper can change it, and act for them")
	default:
		f.sound("origins", "%s may connect", origin)
	}
}

// proxy judges a range whose X-Forwarded-For is believed.
func (f *findings) proxy(text string) {
	prefix, err := netip.ParsePrefix(text)
	if addr, single := netip.ParseAddr(text); single == nil {
		prefix, err = addr.Prefix(addr.BitLen())
	}
	switch {
	case err != nil:
		f.warn("trusted proxies", text, "write it like 10.0.0.0/8", "a node does not start with it")
	case prefix.Bits() == 0:
		f.warn("trusted proxies", text+" is everybody", "name the addresses of your proxies only", "everybody writes their own address, and is never limited")
	default:
		f.sound("trusted proxies", "%s may say whose request it passes on", text)
	}
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// nth names a place in a list of secrets.
func nth(i int) string {
	if i == 0 {
		return "first"
	}
	return fmt.Sprintf("%d.", i+1)
}
