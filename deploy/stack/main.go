// Command stack proves the topology of docker-compose.yml with programs of this machine: nginx in front with the shipped
// configuration, two nodes, two workers, Redis, RabbitMQ and MariaDB, and Prometheus with the shipped rules.
//
//	make stack              hold a sale with a crowd of 10,000 through nginx, while each node and worker is restarted in turn
//	make stack STAY=1       only start it, and stay until interrupted
//	make stack PROVOKE=1    make each alert fire by what it is about
//
// It ends with 0 when nobody lost a place or an order, nobody was cut off without having been asked to move, every query of
// the dashboard has data, and the audit of the sale holds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	users := flag.Int("users", 10_000, "shoppers of the crowd")
	stay := flag.Bool("stay", false, "only start it, and stay until interrupted")
	provoke := flag.Bool("provoke", false, "make each alert fire by what it is about, instead of the sale")
	logs := flag.String("logs", "bin/stack", "folder for what the programs write")
	flag.Parse()
	if err := run(ctx, *users, *stay, *provoke, *logs); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "stack:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, users int, stay, provoke bool, logs string) error {
	dir, err := filepath.Abs(logs)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { // nginx's own account reads here
		return err
	}
	s, err := start(ctx, dir)
	if err != nil {
		return err
	}
	defer s.end()
	fmt.Printf("shoppers    http://%s\noperators   http://%s/admin, with the token %s\nPrometheus  http://%s\nlogs        %s\n\n", s.front, s.front, s.admin, s.prometheus, dir)
	if stay {
		<-ctx.Done()
		return nil
	}
	if provoke {
		return s.provoke(ctx)
	}
	return s.prove(ctx, users)
}
