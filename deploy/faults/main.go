// Command faults runs random schedules of faults against a whole installation of real processes, and checks after each
// that nothing was oversold, lost, sold twice or left over:
//
//	go run ./deploy/services --only redis,rabbitmq,mariadb -- go run ./deploy/faults --seeds 1-200 --report docs/reliability.md
//
// A schedule follows from its seed: which processes die at which named points (package fault), what happens to Redis, to
// RabbitMQ, to the database and to the connections between them, and what the shoppers do. Schedules that the report has
// for the present commit are not run again, so a long run may be interrupted. The services must be its own: it empties,
// kills and freezes them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("faults", flag.ContinueOnError)
	seeds := flags.String("seeds", "1-3", "which schedules to run, `FIRST-LAST`")
	path := flags.String("report", "", "append the results to the table of this `FILE`")
	logs := flags.String("logs", "", "keep what the processes of a failed schedule wrote in this `FOLDER`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var first, last int64
	if n, err := fmt.Sscanf(*seeds, "%d-%d", &first, &last); n != 2 || err != nil || first < 1 || last < first {
		return fmt.Errorf("--seeds %s: write the first and the last, like 1-200", *seeds)
	}
	r := &report{path: *path, commit: commit(ctx)}
	if err := r.read(); err != nil {
		return err
	}
	services, err := findServices()
	if err != nil {
		return err
	}
	defer services.close()
	dir, err := os.MkdirTemp("", "sluice-faults-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sluice")
	if out, err := exec.CommandContext(ctx, "go", "build", "-tags", "faults", "-o", binary, "./cmd/sluice").CombinedOutput(); err != nil {
		return fmt.Errorf("build sluice with its fault points: %w\n%s", err, out)
	}
	failed := 0
	for seed := first; seed <= last; seed++ {
		if r.has(seed) {
			continue
		}
		begun := time.Now()
		s := newSchedule(seed, services, binary, filepath.Join(dir, fmt.Sprint(seed)))
		result, err := s.run(ctx)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			failed++
			result.verdict = strings.ReplaceAll(err.Error(), "\n", "; ")
			if *logs != "" {
				_ = os.RemoveAll(filepath.Join(*logs, fmt.Sprint(seed)))
				if err := os.CopyFS(filepath.Join(*logs, fmt.Sprint(seed)), os.DirFS(s.dir)); err != nil {
					return err
				}
			}
		}
		fmt.Printf("seed %d: %s (%s)\n", seed, result.line(), time.Since(begun).Round(100*time.Millisecond))
		if err := r.add(result); err != nil {
			return err
		}
		_ = os.RemoveAll(s.dir)
	}
	if failed > 0 {
		return fmt.Errorf("%d schedules failed", failed)
	}
	return nil
}

// commit names the code that is tested.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
