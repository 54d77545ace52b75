package main

import (
	"context"
	"log/slog"

	"sluice/server"
)

// workerCmd is `sluice worker`.
type workerCmd struct {
	backendFlags
	workerFlags
	logFlags
	traceFlags
	OpsListen string `default:"127.0.0.1:9090" placeholder:"ADDRESS" help:"Where health, metrics and profiles are, if not at ${default}; empty is nowhere."`
}

// Help is shown below the flags.
func (*workerCmd) Help() string {
	return `Carries orders from Redis over RabbitMQ into the database, and listens to no shopper.

Example:

    sluice worker --redis-url redis://127.0.0.1 --amqp-url amqp://127.0.0.1 --database-url mysql://root@127.0.0.1/sluice`
}

// Run works until ctx ends, and then finishes the batch in hand.
func (c *workerCmd) Run(ctx context.Context, std *stdio, line *commandLine) error {
	r := newReloader(line)
	defer r.stop()
	stands, err := c.backendFlags.read()
	if err != nil {
		return err
	}
	if err := firstOfErrors(c.outOfRange()); err != nil {
		return err
	}
	if stands.AMQPURL == "" {
		return usagef("a worker needs --redis-url, --amqp-url and --database-url: an embedded installation works by itself")
	}
	var level slog.LevelVar
	level.Set(c.level())
	n, err := newNode(ctx, stands, c.traceFlags, c.logger(std, &level))
	if err != nil {
		return err
	}
	defer n.close()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.work(running, c.workerFlags, nil)
	n.restore(running)
	if err := n.serveOps(c.OpsListen, server.OpsHandler(n.backends.ready, n.registry)); err != nil {
		return err
	}
	r.begin(n.registry, n.log, func(next *cli) (func(), error) { return next.Worker.prepare(n, &level) })
	n.log.Info("working", "database", n.backends.store.Dialect())
	return n.wait(ctx, r)
}

// prepare makes ready to put in force what may change of a worker by another command line.
func (c *workerCmd) prepare(n *node, level *slog.LevelVar) (change func(), err error) {
	stands, err := c.backendFlags.read()
	if err != nil {
		return nil, err
	}
	if err := firstOfErrors(c.outOfRange()); err != nil {
		return nil, err
	}
	return func() {
		level.Set(c.level())
		n.backends.queue.SetLimits(stands.limits())
	}, nil
}
