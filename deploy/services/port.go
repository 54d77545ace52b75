package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
)

// Ports are taken from below the range out of which systems give ports to outgoing connections, so that no client of a
// running test can sit on one between the moment it is chosen and the moment its service listens.
const firstPort, lastPort = 15000, 31999

// port is a TCP port of 127.0.0.1 that no other run takes while it is held.
type port struct {
	number int
	claim  io.Closer
}

// freePort returns a port on which nothing listens. The claim is the UDP port of the same number: services here speak
// TCP only, so the one who holds it keeps other runs away, and the system frees it however this process ends.
func freePort() (port, error) {
	for range 1000 {
		number := firstPort + rand.N(lastPort-firstPort+1)
		claim, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", number))
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				continue
			}
			return port{}, fmt.Errorf("looking for a free port: %w", err)
		}
		if !listenable(number) {
			claim.Close()
			continue
		}
		return port{number, claim}, nil
	}
	return port{}, fmt.Errorf("no port between %d and %d is free", firstPort, lastPort)
}

// listenable says whether nothing listens on a port. No process is started meanwhile: between its fork and its exec it
// would hold the port open after this has closed it.
func listenable(number int) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", number))
	if err != nil {
		return false
	}
	listener.Close()
	return true
}

func (p port) address() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }
