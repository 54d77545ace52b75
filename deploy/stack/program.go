package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// program is a process of the stack, which can be ended and started again.
type program struct {
	name string
	path string
	args []string
	env  []string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// run starts it; what it writes goes to a file of its name.
func (p *program) run() error {
	log, err := os.OpenFile(filepath.Join(p.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), p.env...), log, log
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // how it ended is in its state
		close(done)
	}(p.cmd, p.done)
	return nil
}

// end asks it to end and waits until it has.
func (p *program) end(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it fails only when the process has ended
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end in time", p.name)
	}
}

// await asks until an address answers 200.
func await(ctx context.Context, what, url string, p *program) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return fmt.Errorf("%s has ended: see %s", what, filepath.Join(p.dir, p.name+".log"))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer at %s", what, url)
		}
	}
}

// freeAddress is one at which nobody listens now.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}
