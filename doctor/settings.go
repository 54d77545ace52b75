package doctor

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// shortSecret can be found by trying, by whoever has a token made with it; weakSecret is below what RFC 7518 wants of
	// an HS256 key. In bytes.
	shortSecret = 16
	weakSecret  = 32
	// shortDrain is not enough for thousands to go elsewhere one after the other.
	shortDrain = 5 * time.Second
)

// Settings are those of a node that serves, as far as there is something to judge.
type Settings struct {
	Embedded       bool // Redis is inside the process
	Secrets        [][]byte
	AdminToken     string
	Auth           []string // as given; none = what is usual
	Origins        []string
	TrustedProxies []string
	OpsListen      string
	Webhook        bool // only a payment provider can pay
	UserLimit      bool // there is a limit of each user
	OutboxLimit    int64
	Drain          time.Duration
}

// Judge judges the settings of a node.
func (s Settings) Judge() []Finding {
	f := &findings{part: "settings"}
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
	if slices.Contains(s.Auth, "guest") {
		f.advise("guests", "anybody is let in under as many names as they like", "leave guest out of --auth, and let the shop say who is asking", "one person can hold many places")
	}
	if !s.Webhook {
		f.advise("payments", "whoever holds an order can mark it paid", "give --webhook-secret, so that only the payment provider can", "the demonstration payment moves no money")
	}
	if !s.UserLimit {
		f.advise("limits", "--limit-user is 0", "leave it at 20/s", "one shopper can keep Redis busy")
	}
	if s.OutboxLimit == 0 {
		f.advise("outbox", "--outbox-limit is 0", "leave it as it comes", "while the broker is away, orders fill the memory of Redis")
	}
	if s.Drain < shortDrain {
		f.advise("drain", "--drain is "+s.Drain.String(), "give it at least "+shortDrain.String(), "all shoppers of a node that ends come to the others at once")
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
		switch {
		case len(secret) < shortSecret:
			f.warn("secret", fmt.Sprintf("the %s has %d bytes", nth(i), len(secret)), fmt.Sprintf("make it of %d random bytes", weakSecret),
				"whoever has a token can find it by trying, and be any shopper")
		case len(secret) < weakSecret:
			f.advise("secret", fmt.Sprintf("the %s has %d bytes", nth(i), len(secret)), fmt.Sprintf("make it of %d random bytes", weakSecret), "RFC 7518 wants as many")
		default:
			f.sound("secret", "the %s is long enough", nth(i))
		}
	}
}

func (f *findings) adminToken(token string) {
	switch {
	case token == "":
		f.advise("admin token", "there is none", "give --admin-token-file", "nobody can apply, pause or audit a sale")
	case len(token) < shortSecret:
		f.warn("admin token", fmt.Sprintf("it has %d bytes", len(token)), fmt.Sprintf("make it of %d random bytes", weakSecret), "it can be found by trying")
	default:
		f.sound("admin token", "it is long enough")
	}
}

// origin judges a page of another origin that may connect.
func (f *findings) origin(origin string) {
	u, err := url.Parse(origin)
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
