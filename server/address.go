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
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: write an address or a range, like 10.0.0.7 or 10.0.0.0/8", text)
		}
		options = append(options, echo.TrustIPRange(&net.IPNet{
			IP:   prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(options...), nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return addr.Prefix(addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}

// addressOf is the client's address as the address limit counts it. One home has a whole /64 of IPv6 addresses, so
// that is what one address is there.
func addressOf(c echo.Context) string {
	text := c.RealIP()
	if !strings.Contains(text, ":") {
		return text
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String()
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return text
	}
	return network.String()
}
