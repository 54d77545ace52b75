// Command services gets and starts what the tests need (Redis, RabbitMQ, MariaDB, PostgreSQL and a browser), runs a
// command with their addresses in its environment, and takes everything away again:
//
//	go run ./deploy/services -- make test-go           start everything, run the command, stop everything
//	go run ./deploy/services --only redis -- go test ./queue
//	go run ./deploy/services                           print the addresses and stay until interrupted
//	go run ./deploy/services --install luacheck        only get a program
//	go run ./deploy/services --only brokers            a RabbitMQ cluster of three nodes, which a run has to name
//
// Every run has instances of its own, on free ports of 127.0.0.1 and with their data in a temporary folder, so runs at
// the same time do not meet. Where a Docker engine answers they are containers of compose.yaml, otherwise the programs
// of this machine; what is missing there is installed from Debian packages, as root or with a sudo that asks nothing.
//
// The command's exit code becomes this one's. (`go run` itself turns every failure into 1.)
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go watchParent(os.Getppid(), signals)

	code, err := run(signals, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
	}
	os.Exit(code)
}

// watchParent turns the death of the parent into SIGTERM. Ended by SIGTERM, `go run` dies without telling the program
// it runs, and the services would stay for ever.
func watchParent(parent int, signals chan<- os.Signal) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	signals <- syscall.SIGTERM
}

// interrupted is the error of a run that a signal ended.
type interrupted struct{ signal syscall.Signal }

// Error names the signal.
func (e interrupted) Error() string { return "ended by signal: " + e.signal.String() }

// run is the whole program; it returns the exit code. Whatever happens, it returns after all it started is stopped.
func run(signals <-chan os.Signal, args []string, out, progress io.Writer) (code int, err error) {
	asked, err := parse(args, progress)
	if errors.Is(err, errHelp) {
		return 0, nil
	}
	if err != nil {
		return 2, err
	}

	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			cancel(interrupted{number})
		case <-ctx.Done():
		}
	}()
	defer func() {
		// A signal makes everything else fail in its own way; what the caller wants to know is the signal.
		var end interrupted
		if code != 0 && errors.As(context.Cause(ctx), &end) {
			code, err = 128+int(end.signal), end
		}
	}()

	host := newHost(progress)
	if len(asked.install) > 0 {
		if err := host.install(ctx, asked.install); err != nil {
			return 1, err
		}
		return 0, nil
	}

	set, err := startAll(ctx, asked, host, progress)
	defer func() {
		if stopErr := set.stop(); stopErr != nil {
			fmt.Fprintln(progress, "services:", stopErr)
			code = max(code, 1)
		}
	}()
	if err != nil {
		return 1, err
	}

	if len(asked.command) == 0 {
		for _, v := range set.environment {
			name, value, _ := strings.Cut(v, "=")
			fmt.Fprintf(out, "export %s='%s'\n", name, value) // a URL's & would end the command of a shell
		}
		fmt.Fprintln(progress, "services: running until interrupted")
		<-ctx.Done()
		return 0, nil
	}
	err = runCommand(ctx, asked.command, set.environment)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		// The command has said itself what was wrong.
		return exitCode(err), nil
	}
	return exitCode(err), err
}

// runCommand runs the command until it ends; when ctx ends, its whole process group is sent the signal that ended ctx.
func runCommand(ctx context.Context, command, environment []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// In a process group of its own the command may not read the terminal: it would be stopped for trying.
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		cmd.Stdin = os.Stdin
	}
	p, err := startProcess(cmd)
	if err != nil {
		return fmt.Errorf("running %s: %w", strings.Join(command, " "), err)
	}
	select {
	case <-p.ended:
		// What the command left behind in its group ends with it.
		return errors.Join(p.err, p.stop(syscall.SIGKILL))
	case <-ctx.Done():
		sig := syscall.SIGTERM
		var end interrupted
		if errors.As(context.Cause(ctx), &end) {
			sig = end.signal
		}
		if err := p.stop(sig); err != nil {
			return err
		}
		return context.Cause(ctx)
	}
}

// exitCode is the code of a command that ended with err: its own, or 128 and the signal, as a shell gives it.
func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, exec.ErrNotFound):
		return 127
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal())
		}
		return exit.ExitCode()
	}
	return 1
}
