package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// set is what one run has started.
type set struct {
	dir         string
	environment []string // NAME=value, in the order of needs
	sites       []*site
	engine      *engine  // nil where no Docker is used
	control     *control // nil until everything answers
}

// startAll gets and starts everything asked for, all at once, and returns when each of it answers. The set is to be
// stopped whether or not there is an error.
func startAll(ctx context.Context, asked arguments, h *host, progress io.Writer) (*set, error) {
	started := &set{}
	wanted := slices.DeleteFunc(needs(), func(n need) bool { return !slices.Contains(asked.only, n.name) })
	contained, err := containers(ctx, asked.with, wanted)
	if err != nil {
		return started, err
	}
	var names []string
	for _, n := range wanted {
		if !slices.Contains(contained, n.name) {
			names = append(names, n.programs...)
		}
	}
	if err := h.install(ctx, names); err != nil {
		return started, err
	}

	if started.dir, err = os.MkdirTemp("", "sluice-services-"); err != nil {
		return started, err
	}
	// Services of another account have to pass through, and need not see each other.
	if err := os.Chmod(started.dir, 0o711); err != nil {
		return started, err
	}
	who, err := serviceAccount()
	if err != nil {
		return started, err
	}
	if len(contained) > 0 {
		if started.engine, err = newEngine(started.dir); err != nil {
			return started, err
		}
		if err := started.engine.up(ctx, contained); err != nil {
			return started, err
		}
	}

	values := make([]string, len(wanted))
	var lines sync.Mutex
	parent := ctx // that of the group ends with the group
	group, ctx := errgroup.WithContext(ctx)
	for i, n := range wanted {
		start := started.engine.start
		if !slices.Contains(contained, n.name) {
			s, err := newSite(started.dir, n.name, h, who)
			if err != nil {
				return started, errors.Join(err, group.Wait())
			}
			started.sites = append(started.sites, s)
			start = func(ctx context.Context, n need) (string, error) { return n.start(ctx, s) }
		}
		begun := time.Now()
		group.Go(func() error {
			var err error
			if values[i], err = start(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", n.name, err)
			}
			lines.Lock()
			defer lines.Unlock()
			fmt.Fprintf(progress, "services: %-8s %5.1f s  %s\n", n.name, time.Since(begun).Seconds(), values[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return started, err
	}
	for i, n := range wanted {
		if n.variable != "" {
			started.environment = append(started.environment, n.variable+"="+values[i])
		}
	}
	if len(started.sites) > 0 {
		if started.control, err = listen(parent, started.dir, started.sites); err != nil {
			return started, err
		}
		started.environment = append(started.environment, controlVariable+"="+started.control.address())
	}
	return started, nil
}

// containers returns which of the wanted things Docker is to provide.
func containers(ctx context.Context, with string, wanted []need) ([]string, error) {
	var names []string
	for _, n := range wanted {
		if n.service {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 || with == "packages" {
		return nil, nil
	}
	if dockerAnswers(ctx) {
		return names, nil
	}
	if with == "docker" {
		return nil, errors.New("missing: a Docker engine with Compose that answers, for " + strings.Join(names, ", ") +
			" (start one, or leave out --with docker)")
	}
	return nil, nil
}

// start waits until a container that is up answers, and returns where.
func (e *engine) start(ctx context.Context, n need) (string, error) {
	address, err := e.address(ctx, n.name, n.inside)
	if err != nil {
		return "", err
	}
	at := n.url(address)
	if err := poll(ctx, nil, func(ctx context.Context) error { return n.answers(ctx, at) }); err != nil {
		return "", fmt.Errorf("%w; the end of its log:\n%s", err, e.logs(ctx, n.name))
	}
	return at, nil
}

// stop ends everything the run started, all at once, and removes its folder.
func (s *set) stop() error {
	var group errgroup.Group
	if s.control != nil {
		group.Go(s.control.close)
	}
	for _, site := range s.sites {
		group.Go(func() error {
			if err := site.close(); err != nil {
				return fmt.Errorf("stopping %s: %w", site.name, err)
			}
			return nil
		})
	}
	if s.engine != nil {
		group.Go(s.engine.down)
	}
	err := group.Wait()
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}
