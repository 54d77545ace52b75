package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

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
		return nil, usagef("--%s: %q is not an address, write it like --%[1]s=127.0.0.1:8080, or :8080 for all addresses of this machine", flag, address)
	}
	return nil, fmt.Errorf("listen on --%s %s: %w", flag, address, err)
}
