package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/worker"
)

// deadMost is how many dead letters are looked at. More than a few is a fault of the installation, not of the letters.
const deadMost = 10_000

// deadCmd is `sluice dead`: what operators do about orders that could not be written.
type deadCmd struct {
	List  deadListCmd  `cmd:"" help:"List the orders that could not be written, the oldest first."`
	Show  deadShowCmd  `cmd:"" help:"Show one of them."`
	Retry deadRetryCmd `cmd:"" help:"Send orders to the writers again."`
	Drop  deadDropCmd  `cmd:"" help:"Give up on orders: reject them, and give their units back to the sale."`
}

// deadFlags are where the dead letters are.
type deadFlags struct{ backendFlags }

// deadJSON is a dead letter as --json prints it.
type deadJSON struct {
	Order  string          `json:"order"`
	At     int64           `json:"at"`
	Sale   string          `json:"sale,omitempty"`
	Item   string          `json:"item,omitempty"`
	User   string          `json:"user,omitempty"`
	Qty    int64           `json:"qty,omitempty"`
	Reason string          `json:"reason"`
	Body   json.RawMessage `json:"body,omitempty"` // of show
	Text   string          `json:"text,omitempty"` // of show, when the body is no JSON
}

func deadView(l worker.DeadLetter) deadJSON {
	return deadJSON{
		Order: l.ID, At: l.At, Sale: l.Order.Sale, Item: l.Order.Item, User: l.Order.User, Qty: l.Order.Qty, Reason: l.Reason,
	}
}

// with opens what the flags name and calls fn.
func (f deadFlags) with(ctx context.Context, fn func(*worker.Undertaker) error) error {
	stands, err := f.read()
	if err != nil {
		return err
	}
	if stands.AMQPURL == "" {
		return usagef("dead letters lie in RabbitMQ: give --redis-url, --amqp-url and --database-url; an embedded installation keeps none beyond its process")
	}
	b, err := openBackends(ctx, stands, "dead-"+nodeName(), slog.New(slog.DiscardHandler), prometheus.NewRegistry(), nil)
	if err != nil {
		return err
	}
	defer b.close()
	return fn(worker.NewUndertaker(b.broker(), b.store, b.queue))
}

// deadListCmd is `sluice dead list`.
type deadListCmd struct {
	deadFlags
	JSON bool `name:"json" help:"Print a JSON object a line."`
}

// Help is shown below the flags.
func (*deadListCmd) Help() string {
	return `Changes nothing. While it runs, nobody else sees these letters.

Example:

    sluice dead list --redis-url redis://127.0.0.1 --amqp-url amqp://127.0.0.1 --database-url mysql://root@127.0.0.1/sluice`
}

// Run lists.
func (c *deadListCmd) Run(ctx context.Context, std *stdio) error {
	return c.with(ctx, func(u *worker.Undertaker) error {
		letters, err := u.List(ctx, deadMost)
		if err != nil {
			return err
		}
		if c.JSON {
			encoder := json.NewEncoder(std.out)
			for _, letter := range letters {
				if err := encoder.Encode(deadView(letter)); err != nil {
					return err
				}
			}
			return nil
		}
		if len(letters) == 0 {
			fmt.Fprintln(std.out, "there are no dead letters")
			return nil
		}
		table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ORDER\tAT\tSALE\tITEM\tUSER\tQTY\tREASON")
		for _, letter := range letters {
			v := deadView(letter)
			fmt.Fprintf(table, "%q\t%s\t%q\t%q\t%q\t%d\t%q\n", v.Order, time.UnixMilli(v.At).UTC().Format(time.DateTime), v.Sale, v.Item, v.User, v.Qty, v.Reason)
		}
		return table.Flush()
	})
}

// deadShowCmd is `sluice dead show`.
type deadShowCmd struct {
	deadFlags
	Order string `arg:"" help:"Id of the order."`
}

// Help is shown below the flags.
func (*deadShowCmd) Help() string {
	return `Example:

    sluice dead show 01938f3e-7a10-7c31-9d65-0d6f1f1c2b3a`
}

// Run shows the letter with its body.
func (c *deadShowCmd) Run(ctx context.Context, std *stdio) error {
	return c.with(ctx, func(u *worker.Undertaker) error {
		letters, err := u.List(ctx, deadMost)
		if err != nil {
			return err
		}
		for _, letter := range letters {
			if letter.ID != c.Order {
				continue
			}
			view := deadView(letter)
			if json.Valid(letter.Body) {
				view.Body = letter.Body
			} else {
				view.Text = string(letter.Body)
			}
			encoder := json.NewEncoder(std.out)
			encoder.SetIndent("", "  ")
			return encoder.Encode(view)
		}
		return fmt.Errorf("there is no dead letter of order %q", c.Order)
	})
}

// deadChoice says which letters are meant.
type deadChoice struct {
	Orders []string `arg:"" optional:"" name:"order" help:"Ids of the orders."`
	All    bool     `help:"All dead letters."`
}

// each calls fn with every letter that was chosen.
func (c deadChoice) each(ctx context.Context, u *worker.Undertaker, fn func(order string) error) error {
	if c.All == (len(c.Orders) > 0) {
		return usagef("name the orders, or say --all")
	}
	orders := c.Orders
	if c.All {
		letters, err := u.List(ctx, deadMost)
		if err != nil {
			return err
		}
		for _, letter := range letters {
			orders = append(orders, letter.ID)
		}
	}
	for _, order := range orders {
		if err := fn(order); err != nil {
			return err
		}
	}
	return nil
}

// deadRetryCmd is `sluice dead retry`.
type deadRetryCmd struct {
	deadFlags
	deadChoice
}

// Help is shown below the flags.
func (*deadRetryCmd) Help() string {
	return `An order that the database still cannot take becomes a dead letter again.

Example:

    sluice dead retry --all`
}

// Run retries.
func (c *deadRetryCmd) Run(ctx context.Context, std *stdio) error {
	return c.with(ctx, func(u *worker.Undertaker) error {
		return c.each(ctx, u, func(order string) error {
			if err := u.Retry(ctx, order); err != nil {
				return err
			}
			fmt.Fprintf(std.out, "%s goes to the writers again\n", order)
			return nil
		})
	})
}

// deadDropCmd is `sluice dead drop`.
type deadDropCmd struct {
	deadFlags
	deadChoice
}

// Help is shown below the flags.
func (*deadDropCmd) Help() string {
	return `The order is stored as rejected, so nothing can accept it later; its units go back to the sale, and its shopper is told.

Example:

    sluice dead drop 01938f3e-7a10-7c31-9d65-0d6f1f1c2b3a`
}

// Run drops.
func (c *deadDropCmd) Run(ctx context.Context, std *stdio) error {
	return c.with(ctx, func(u *worker.Undertaker) error {
		return c.each(ctx, u, func(order string) error {
			if err := u.Drop(ctx, order); err != nil {
				return err
			}
			fmt.Fprintf(std.out, "%s is dropped\n", order)
			return nil
		})
	})
}
