package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"syscall"
)

// unfitListeners is what of the addresses to listen at, by the names of their flags, no node starts with; "" is none.
func unfitListeners(addresses map[string]string) (refused []error) {
	taken := map[string]string{}
	for _, flag := range slices.Sorted(maps.Keys(addresses)) {
		address := addresses[flag]
		if address == "" {
			continue
		}
		at, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			refused = append(refused, noAddress(flag, address))
			continue
		}
		if other, twice := taken[at.String()]; twice && at.Port != 0 {
			refused = append(refused, usagef("--%s and --%s are the same, %s: give each one of its own", other, flag, address))
		}
		taken[at.String()] = flag
	}
	return refused
}

func noAddress(flag, address string) error {
	return usagef("--%s: %q is not an address, write it like --%[1]s=127.0.0.1:8080, or :8080 for all addresses of this machine", flag, address)
}

// listenAt opens the listener that a flag names. Its errors say what is in the way and what to do.
func listenAt(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		return listener, nil
	}
	var written *net.AddrError
	var named *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("--%s: another program listens at %s already; a second sluice on this machine needs a --%[1]s of its own", flag, address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--%s: this machine does not have the address %s; :PORT is all that it has", flag, address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("--%s: this user may not listen at %s; take a port above 1023", flag, address)
	case errors.As(err, &written), errors.As(err, &named):
		return nil, noAddress(flag, address)
	}
	return nil, fmt.Errorf("listen on --%s %s: %w", flag, address, err)
}
