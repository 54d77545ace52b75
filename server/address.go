package server

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
)

// addressFrom makes the function that tells the client's address: the nearest one that is no trusted proxy.
func addressFrom(trusted []string) (echo.IPExtractor, error) {
	if len(trusted) == 0 {
		return echo.ExtractIPDirect(), nil
	}
	options := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, text := range trusted {
		prefix, err := parseProxy(text)
		if err != nil {
			return nil, err
		}
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP:   prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(options...), nil
}

// parseProxy reads an address or a range.
func parseProxy(text string) (netip.Prefix, error) {
	prefix, err := parsePrefix(text)
	if err != nil {
		return prefix, fmt.Errorf("trusted proxy %q: write an address or a range, like 10.0.0.7 or 10.0.0.0/8", text)
	}
	return prefix, nil
}

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

// clientOf is the client's own address; the zero value where it is none.
func clientOf(c echo.Context) netip.Addr {
	addr, err := netip.ParseAddr(c.RealIP())
	if err != nil {
		return netip.Addr{}
	}
	return addr
}

// addressOf is the client's address as limits count it.
func addressOf(c echo.Context) string {
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
