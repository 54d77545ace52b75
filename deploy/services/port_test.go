package main

import (
	"net"
	"testing"
)

func TestAFreePortIsListenableAndHeldByOneRunOnly(t *testing.T) {
	t.Parallel()
	p, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", p.address())
	if err != nil {
		t.Fatalf("the port that is said to be free: %v", err)
	}
	listener.Close()
	if other, err := net.ListenPacket("udp4", p.address()); err == nil {
		other.Close()
		t.Errorf("another run could claim port %d", p.number)
	}

	if err := p.claim.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := net.ListenPacket("udp4", p.address())
	if err != nil {
		t.Fatalf("port %d stays claimed after it was given back: %v", p.number, err)
	}
	other.Close()
}

func TestPortsHeldAtTheSameTimeAreDifferent(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 200 {
		p, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.claim.Close()
		if seen[p.number] {
			t.Fatalf("port %d was given twice", p.number)
		}
		seen[p.number] = true
	}
}
