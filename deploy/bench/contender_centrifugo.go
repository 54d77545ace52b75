package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// centrifugoModule is what is installed to compare with, at run time only.
const centrifugoModule = "github.com/centrifugal/centrifugo/v6@v6.9.1"

// installCentrifugo builds Centrifugo once and keeps it in the bench's cache.
func (b *bench) installCentrifugo(ctx context.Context) (string, error) {
	program := filepath.Join(b.cache, "centrifugo")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	b.say("building %s (once, some minutes)", centrifugoModule)
	install := exec.CommandContext(ctx, "go", "install", centrifugoModule)
	install.Env = append(os.Environ(), "GOBIN="+b.cache, "GOFLAGS=")
	install.Dir = b.cache // outside of any module
	if out, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s: %w: %s", centrifugoModule, err, strings.TrimSpace(string(out)))
	}
	return program, nil
}

// startCentrifugo starts it with its defaults, but for what lets in whoever comes, as the other contenders do.
func (b *bench) startCentrifugo(ctx context.Context) (*contender, error) {
	program, err := b.installCentrifugo(ctx)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(b.dir, "centrifugo.json")
	text := fmt.Sprintf(`{
  "http_server": {"address": "127.0.0.1", "port": "%d"},
  "client": {"allow_anonymous_connect_without_token": true, "allowed_origins": []},
  "channel": {"without_namespace": {"allow_subscribe_for_anonymous": true, "allow_subscribe_for_client": true}},
  "http_api": {"key": "bench"},
  "prometheus": {"enabled": true},
  "log": {"level": "warn"}
}`, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := b.start(ctx, "centrifugo", program, "--config", config)
	if err != nil {
		return nil, err
	}
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	c := &contender{
		process: p, socket: fmt.Sprintf("ws://127.0.0.1:%d/connection/websocket", port), metrics: base + "/metrics",
		speak: "centrifugo", frames: 2,
	}
	c.broadcast = func(ctx context.Context, message string, times int) error {
		for range times {
			answer, err := post(ctx, base+"/api/publish", fmt.Sprintf(`{"channel":"sale","data":{"message":%q}}`, message), "X-API-Key", "bench")
			if err != nil || strings.Contains(answer, `"error"`) {
				return fmt.Errorf("publish: %v %s", err, answer)
			}
		}
		return nil
	}
	return c, until(ctx, "centrifugo", startPatience, func() (bool, error) {
		_, err := get(ctx, c.metrics)
		return err == nil, err
	})
}

// freePort is a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
