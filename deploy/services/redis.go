package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

func redisURL(address string) string { return "redis://" + address }

// startRedis starts a Redis that keeps an append-only file, as the project asks of the one in production, and no
// snapshots besides.
func startRedis(ctx context.Context, s *site) (string, error) {
	port, err := s.port()
	if err != nil {
		return "", err
	}
	cmd, err := s.command("redis-server",
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port.number), "--dir", s.dir,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxclients", "10000")
	if err != nil {
		return "", err
	}
	p, err := s.start(cmd, syscall.SIGKILL)
	if err != nil {
		return "", err
	}
	at := redisURL(port.address())
	return at, s.await(ctx, p, func(ctx context.Context) error { return redisAnswers(ctx, at) })
}

// redisAnswers sends a PING and wants its PONG: a Redis that still loads its data answers otherwise.
func redisAnswers(ctx context.Context, at string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != "+PONG" {
		return fmt.Errorf("redis answered %q", line)
	}
	return nil
}
