package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// readiness is how long a service may take until it answers. A cold machine under load takes a tenth of it.
const readiness = 2 * time.Minute

// site is where one service runs: its folder, its account, its ports and its processes.
type site struct {
	name string
	dir  string // the service's own; removed after the run
	host *host
	account
	ports  []port
	closes []func() error // stops what runs here; called last first
	parts  []*site        // below it, where the service is several processes that are killed one by one

	// The process started last, which is the service itself, how it was started, and how to see that it answers.
	main    *process
	started *exec.Cmd
	ask     func(context.Context) error
}

// newSite makes the folder of a service below base.
func newSite(base, name string, h *host, a account) (*site, error) {
	s := &site{name: name, dir: filepath.Join(base, name), host: h, account: a}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	return s, a.own(s.dir)
}

// part makes a site below this one, which is closed with it.
func (s *site) part(name string) (*site, error) {
	p, err := newSite(s.dir, name, s.host, s.account)
	if err != nil {
		return nil, err
	}
	s.parts = append(s.parts, p)
	s.closes = append(s.closes, p.close)
	return p, nil
}

// port returns a free TCP port that is kept for this site until it is closed.
func (s *site) port() (port, error) {
	p, err := freePort()
	if err == nil {
		s.ports = append(s.ports, p)
	}
	return p, err
}

// file writes a file into the folder, for the service to read.
func (s *site) file(name, text string) (string, error) {
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, s.own(path)
}

// command prepares a program of the host. It sees none of this process's environment, so that no setting of the user's
// changes what is tested.
func (s *site) command(program string, args ...string) (*exec.Cmd, error) {
	path, ok := s.host.find(program)
	if !ok {
		return nil, fmt.Errorf("%s is not there", program)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + s.dir, "TMPDIR=" + s.dir, "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = s.attributes()
	return cmd, nil
}

// run runs a program to its end.
func (s *site) run(ctx context.Context, program string, args ...string) error {
	cmd, err := s.command(program, args...)
	if err != nil {
		return err
	}
	if out, err := combinedOutput(ctx, cmd); err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, lastLines(out, 20))
	}
	return nil
}

// start starts a program that stays until the site is closed, which ends it by the signal.
func (s *site) start(cmd *exec.Cmd, end syscall.Signal) (*process, error) {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p, err := startProcess(cmd)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(cmd.Path), err)
	}
	s.closes = append(s.closes, func() error { return p.stop(end) })
	s.main, s.started = p, cmd
	return p, nil
}

// await asks again and again until the service answers, its process ends, or time is up.
func (s *site) await(ctx context.Context, p *process, ask func(context.Context) error) error {
	s.ask = ask
	if err := poll(ctx, p.ended, ask); err != nil {
		log, _ := os.ReadFile(s.logPath())
		return fmt.Errorf("%w; the end of its log:\n%s", err, lastLines(log, 20))
	}
	return nil
}

func (s *site) logPath() string { return filepath.Join(s.dir, "log") }

// close stops everything here and frees the ports.
func (s *site) close() error {
	var errs []error
	for _, f := range slices.Backward(s.closes) {
		errs = append(errs, f())
	}
	for _, p := range s.ports {
		errs = append(errs, p.claim.Close())
	}
	s.closes, s.ports = nil, nil
	return errors.Join(errs...)
}

// poll asks until there is an answer; it gives up when ended is closed, when ctx ends, or after the time of readiness.
func poll(ctx context.Context, ended <-chan struct{}, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readiness)
	defer cancel()
	for {
		once, cancelOnce := context.WithTimeout(ctx, 5*time.Second)
		err := ask(once)
		cancelOnce()
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended before it answered")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", errors.Join(context.Cause(ctx), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// combinedOutput runs cmd in a process group of its own, which is killed when ctx ends, and returns all it printed.
func combinedOutput(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.ended:
		return out.Bytes(), p.err
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), p.stop(syscall.SIGTERM))
	}
}

// lastLines returns the end of a text.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
