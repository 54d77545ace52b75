package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The peers of a bench must cost far less than the server, or they are what is measured: on two cores a client library
// with a goroutine for each connection takes as much as the server does. So this is the least of a WebSocket client
// (RFC 6455): blocking system calls until the handshake is done, then one thread that waits for all connections.

const (
	opText  = 1
	opClose = 8
	opPing  = 9
	opPong  = 10
)

// mask is what every frame of a client must be masked with; the bench has no reason to vary it.
var mask = [4]byte{0x5a, 0xa5, 0x3c, 0xc3}

// clientFrame encodes a short frame from a client.
func clientFrame(op byte, payload []byte) []byte {
	frame := []byte{0x80 | op}
	switch n := len(payload); {
	case n < 126:
		frame = append(frame, 0x80|byte(n))
	default:
		frame = append(frame, 0x80|126, byte(n>>8), byte(n))
	}
	frame = append(frame, mask[:]...)
	for i, c := range payload {
		frame = append(frame, c^mask[i%4])
	}
	return frame
}

// cutFrame takes the first frame off data; ok is false while it is not whole.
func cutFrame(data []byte) (op byte, payload, rest []byte, ok bool) {
	if len(data) < 2 {
		return 0, nil, data, false
	}
	head, size := 2, int(data[1]&0x7f)
	switch size {
	case 126:
		if len(data) < 4 {
			return 0, nil, data, false
		}
		head, size = 4, int(binary.BigEndian.Uint16(data[2:]))
	case 127:
		if len(data) < 10 {
			return 0, nil, data, false
		}
		head, size = 10, int(binary.BigEndian.Uint64(data[2:]))
	}
	if len(data) < head+size {
		return 0, nil, data, false
	}
	return data[0] & 0x0f, data[head : head+size], data[head+size:], true
}

// dialFrom connects to address from a local address, makes the handshake and sends hello right behind it. It returns a
// non-blocking socket and what came after the answer to the handshake.
func dialFrom(local, remote *net.TCPAddr, handshake, hello []byte) (fd int, rest []byte, err error) {
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("make a socket: %w", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	patience := unix.NsecToTimeval((60 * time.Second).Nanoseconds())
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &patience); err != nil {
			return -1, nil, fmt.Errorf("set a timeout: %w", err)
		}
	}
	// The port is chosen when the remote end is known, so that one port can serve to many ends.
	if err = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1); err != nil {
		return -1, nil, fmt.Errorf("put off the choice of a port: %w", err)
	}
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte(local.IP.To4())}); err != nil {
		return -1, nil, fmt.Errorf("bind to %s: %w", local.IP, err)
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: remote.Port, Addr: [4]byte(remote.IP.To4())})
	if errors.Is(err, syscall.EINTR) { // the connection is being made all the same
		err = connected(fd)
	}
	if err != nil {
		return -1, nil, fmt.Errorf("connect: %w", err)
	}
	if err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return -1, nil, fmt.Errorf("send without delay: %w", err)
	}
	if err = writeAll(fd, handshake); err != nil {
		return -1, nil, err
	}
	var answer []byte
	buffer := make([]byte, 2048)
	for {
		n, err := unix.Read(fd, buffer)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return -1, nil, fmt.Errorf("read the handshake: %w", err)
		}
		if n == 0 {
			return -1, nil, fmt.Errorf("the handshake was cut off after %q", answer)
		}
		answer = append(answer, buffer[:n]...)
		head, rest, whole := bytes.Cut(answer, []byte("\r\n\r\n"))
		if !whole {
			continue
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 101 ")) {
			return -1, nil, fmt.Errorf("the handshake was answered with %q", answer)
		}
		if err := writeAll(fd, hello); err != nil {
			return -1, nil, err
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return -1, nil, fmt.Errorf("make a socket non-blocking: %w", err)
		}
		return fd, rest, nil
	}
}

// connected waits until a connection that is being made is there.
func connected(fd int) error {
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = syscall.Errno(code)
		}
		return err
	}
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		data = data[n:]
	}
	return nil
}
