package server

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/labstack/echo/v5"
)

// proxies are whose X-Forwarded-For is believed.
type proxies []netip.Prefix

// parseProxies reads addresses and ranges.
func parseProxies(list []string) (proxies, error) {
	var ps proxies
	for _, text := range list {
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: write an address or a range, like 10.0.0.7 or 10.0.0.0/8", text)
		}
		ps = append(ps, prefix)
	}
	return ps, nil
}

// parsePrefix reads an address or a range. IPv4 written in IPv6 is IPv4.
func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		addr = addr.Unmap()
		return addr.Prefix(addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96) // peers are compared in that form
	}
	return prefix.Masked(), err
}

// trust says whether an address is one of theirs.
func (ps proxies) trust(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// addressFrom makes the function that tells the client's address: the nearest one that is no trusted proxy. Where a proxy writes
// something that is no address, it is the proxy's own.
func addressFrom(ps proxies) echo.IPExtractor {
	direct := echo.ExtractIPDirect()
	if len(ps) == 0 {
		return direct
	}
	return func(r *http.Request) string {
		peer := direct(r)
		nearest, err := netip.ParseAddr(peer)
		if err != nil {
			return peer
		}
		rest := strings.Join(r.Header.Values(echo.HeaderXForwardedFor), ",")
		for rest != "" && ps.trust(nearest) {
			comma := strings.LastIndexByte(rest, ',')
			hop, ok := parseHop(strings.TrimSpace(rest[comma+1:]))
			if !ok {
				break
			}
			nearest, rest = hop, rest[:max(comma, 0)]
		}
		return nearest.String()
	}
}

// parseHop reads an entry of X-Forwarded-For. Some proxies write the port of the connection too, or brackets.
func parseHop(text string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		var port netip.AddrPort
		if port, err = netip.ParseAddrPort(text); err == nil {
			addr = port.Addr()
		} else if inner, ok := strings.CutPrefix(text, "["); ok {
			addr, err = netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		}
	}
	return addr.Unmap().WithZone(""), err == nil
}

// clientOf is the client's own address; the zero value where it is none.
func clientOf(c *echo.Context) netip.Addr {
	addr, err := netip.ParseAddr(c.RealIP())
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// addressOf is the client's address as limits count it.
func addressOf(c *echo.Context) string {
	text := c.RealIP()
	if !strings.Contains(text, ":") {
		return text
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	if home := homeOf(addr); !home.IsSingleIP() {
		return home.String()
	}
	return addr.Unmap().String()
}

// homeOf is whose address it is. One home has a whole /64 of IPv6 addresses, so that is what one address is there.
func homeOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	home, _ := addr.Prefix(bits) // an address of that length has it
	return home
}
