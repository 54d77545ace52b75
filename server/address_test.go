package server

import (
	"net/http"
	"net/netip"
	"testing"

	"sluice/queue"
)

func TestTheAddressIsThatOfTheNearestUntrustedPeer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		trusted   []string
		forwarded string
		want      string
	}{
		"nobody is trusted":             {nil, "203.0.113.7", "192.0.2.1"},
		"another proxy is trusted":      {[]string{"198.51.100.0/24"}, "203.0.113.7", "192.0.2.1"},
		"the peer is trusted":           {[]string{"192.0.2.1"}, "203.0.113.7", "203.0.113.7"},
		"what the caller adds is not":   {[]string{"192.0.2.0/24"}, "10.0.0.1, 203.0.113.7", "203.0.113.7"},
		"private ranges need trust too": {[]string{"192.0.2.0/24"}, "203.0.113.7, 10.0.0.1", "10.0.0.1"},
		"IPv6 counts by its /64":        {[]string{"192.0.2.1"}, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		"a port is no part of it":       {[]string{"192.0.2.1"}, "1.1.1.1, 203.0.113.7:50123", "203.0.113.7"},
		"nor is that of IPv6":           {[]string{"192.0.2.1"}, "[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"},
		"brackets are no part of it":    {[]string{"192.0.2.1"}, "[2001:db8:1:2:3:4:5:6]", "2001:db8:1:2::/64"},
		"a proxy written as IPv6":       {[]string{"::ffff:192.0.2.1"}, "203.0.113.7", "203.0.113.7"},
		"a range written as IPv6":       {[]string{"::ffff:192.0.2.0/120"}, "203.0.113.7", "203.0.113.7"},
		"several proxies":               {[]string{"192.0.2.1", "10.0.0.0/8"}, "1.1.1.1,203.0.113.7 ,10.0.0.1,\t10.0.0.2", "203.0.113.7"},
		"nobody but proxies":            {[]string{"192.0.2.1", "10.0.0.0/8"}, "10.0.0.1, 10.0.0.2", "10.0.0.1"},
		"what is no address":            {[]string{"192.0.2.1"}, "203.0.113.7, unknown", "192.0.2.1"},
		"an empty entry":                {[]string{"192.0.2.1"}, "203.0.113.7,", "192.0.2.1"},
		"the header is empty":           {[]string{"192.0.2.1"}, "", "192.0.2.1"},
		"IPv4 in IPv6 is IPv4":          {[]string{"192.0.2.1"}, "::ffff:203.0.113.7", "203.0.113.7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(o *Options) { o.TrustedProxies = tc.trusted })
			var got string
			b.line.grab = func(req queue.GrabRequest) (queue.Grabbed, error) {
				got = req.Address
				return queue.Grabbed{Result: queue.NoTurn}, nil
			}
			b.send(http.MethodPost, "/api/v1/seckill/solo", "", append(b.as("ann"), "X-Forwarded-For", tc.forwarded, "X-Real-IP", "1.2.3.4")...)
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	// What the gate counts by is the same.
	for _, text := range []string{"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.0/24", "::ffff:192.0.2.0/120"} {
		gate := must[*Gate](t)(NewGate(GateOptions{Trusted: []string{text}}))
		if !gate.proxies.trust(netip.MustParseAddr("192.0.2.1")) || gate.proxies.trust(netip.MustParseAddr("198.51.100.1")) {
			t.Errorf("the gate trusts others than %s", text)
		}
	}
	if _, err := newServer(Options{Orders: &fakeStore{}, Sales: &fakeStore{}, Settings: Settings{Secrets: [][]byte{testSecret()}}, Now: testNow,
		TrustedProxies: []string{"10.0.0.0/33"}}, &fakeLine{}); err == nil {
		t.Error("a range that is none was accepted")
	}
}
