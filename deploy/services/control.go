package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// controlVariable tells the command where the control socket is.
const controlVariable = "SLUICE_TEST_CONTROL"

// control lets the command that runs meanwhile do to the services what happens to them in production: it listens on a
// unix socket for lines like "kill redis" and answers each with "ok" or "error" and a sentence.
//
//	kill NAME    ends the service as a power cut would, and waits until it is gone
//	start NAME   starts it again, with its data, and waits until it answers
//	freeze NAME  stops it where it stands; thaw NAME lets it go on
//	dir NAME     answers "ok" and the folder of its data
//
// The nodes of the need "brokers" are brokers-1 to brokers-3.
type control struct {
	listener net.Listener
	sites    map[string]*site
	ctx      context.Context // of the run: ends what still waits
	mu       sync.Mutex      // one command at a time
}

// listen opens the socket in the folder of the run.
func listen(ctx context.Context, dir string, sites []*site) (*control, error) {
	listener, err := net.Listen("unix", filepath.Join(dir, "control"))
	if err != nil {
		return nil, fmt.Errorf("listen for commands about services: %w", err)
	}
	c := &control{listener: listener, sites: map[string]*site{}, ctx: ctx}
	for _, s := range sites {
		c.sites[s.name] = s
		for _, part := range s.parts {
			c.sites[part.name] = part
		}
	}
	go c.serve()
	return c, nil
}

func (c *control) address() string { return c.listener.Addr().String() }

func (c *control) close() error { return c.listener.Close() }

func (c *control) serve() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return // closed with the run
		}
		go func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				answer := "ok"
				if text, err := c.do(lines.Text()); err != nil {
					answer = "error " + strings.ReplaceAll(err.Error(), "\n", "; ")
				} else if text != "" {
					answer += " " + text
				}
				if _, err := fmt.Fprintln(conn, answer); err != nil {
					return
				}
			}
		}()
	}
}

func (c *control) do(line string) (string, error) {
	words := strings.Fields(line)
	if len(words) != 2 {
		return "", errors.New("say what to do to which service, like: kill redis")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sites[words[1]]
	if s == nil || s.main == nil {
		return "", fmt.Errorf("no service %s runs here as a process of its own", words[1])
	}
	switch words[0] {
	case "kill":
		return "", s.main.stop(syscall.SIGKILL)
	case "freeze":
		return "", s.main.send(syscall.SIGSTOP)
	case "thaw":
		return "", s.main.send(syscall.SIGCONT)
	case "start":
		return "", s.again(c.ctx)
	case "dir":
		return s.dir, nil
	}
	return "", fmt.Errorf("there is no %q: use kill, start, freeze, thaw or dir", words[0])
}

// again starts the service of a site that was killed as it was started before.
func (s *site) again(ctx context.Context) error {
	select {
	case <-s.main.ended:
	default:
		return fmt.Errorf("%s runs already", s.name)
	}
	before := s.started
	cmd := exec.Command(before.Path)
	cmd.Args, cmd.Dir, cmd.Env, cmd.SysProcAttr = before.Args, before.Dir, before.Env, before.SysProcAttr
	p, err := s.start(cmd, syscall.SIGKILL)
	if err != nil {
		return err
	}
	return s.await(ctx, p, s.ask)
}
