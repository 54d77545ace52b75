package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"sluice/queue"
	"sluice/words"
	"sluice/worker"
)

// demoSale is the id of the sale that the demo holds.
const demoSale = "demo"

// demoCmd is `sluice demo`.
type demoCmd struct {
	Users   int           `default:"500" help:"How many simulated shoppers come."`
	Stock   int64         `default:"50" help:"How many units there are."`
	OpensIn time.Duration `default:"15s" help:"When the sale opens, from now."`
	Exit    bool          `help:"End after the sale, with 0 only if everybody was told the truth and the audit holds."`
	Listen  string        `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Where the page is; another port is taken when this one is in use."`
	logFlags
}

// Help is shown below the flags.
func (*demoCmd) Help() string {
	return `Holds a whole sale in this process, with nothing else installed: an embedded Redis, SQLite in a temporary folder, a page to watch and join, and a crowd that wants more than there is. At the end every shopper's answer is matched with the rows of the database.

Example:

    sluice demo
    sluice demo --users 2000 --stock 100 --opens-in 5s --exit`
}

// Run holds the sale.
func (c *demoCmd) Run(ctx context.Context, std *stdio) error {
	switch {
	case c.Users < 1:
		return usagef("--users %d: a sale needs at least one shopper", c.Users)
	case c.Stock < 1:
		return usagef("--stock %d: a sale needs at least one unit", c.Stock)
	case c.OpensIn < 0:
		return usagef("--opens-in %s: a sale cannot open before now", words.Duration(c.OpensIn))
	}
	// Two descriptors a shopper: both ends of the socket are in this process.
	if err := allowFiles(uint64(2*c.Users + spareFiles)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo: %w", err)
	}
	defer os.RemoveAll(dir)
	n, err := c.start(ctx, dir, std)
	if err != nil {
		return err
	}
	defer n.close()

	fmt.Fprintf(std.out, "A sale of %s with %s opens in %s.\nWatch it, or join: %s/s/%s\nDrive it:          %s/admin, with the token %s\n\n",
		words.Count(c.Stock, "unit"), words.Count(c.Users, "simulated shopper"), words.Duration(c.OpensIn), n.URL, demoSale, n.URL, n.Admin)
	problems, err := c.crowd(ctx, n, std)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	if c.Exit {
		return nil
	}
	fmt.Fprintf(std.out, "\nThe page stays at %s/s/%s until you press Ctrl-C.\n", n.URL, demoSale)
	return n.wait(ctx, nil)
}

// start runs a node with everything embedded, and the sale on it.
func (c *demoCmd) start(ctx context.Context, dir string, std *stdio) (*node, error) {
	backends := backendFlags{databaseFlags: databaseFlags{DataDir: dir}, RedisPool: 16, DatabaseConns: 8}
	level := c.level()
	if level == slog.LevelInfo {
		// What an operator wants to know is noise to somebody who watches a demo; trouble is not.
		level = slog.LevelError
	}
	log := c.logger(std, level)
	serve := serveFlags{Listen: c.freeAddress(), ConnsSeat: 8, Auth: []string{"jwt", "hmac", "guest"}}
	settings, err := serve.settings(backends, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	n, err := newNode(ctx, backends, traceFlags{}, log)
	if err != nil {
		return nil, err
	}
	if err := n.run(ctx, settings, workerFlags{OrderBatch: 500, RelayWindow: 1000, PauseOnImbalance: true}, true); err != nil {
		n.close()
		return nil, err
	}
	if err := n.hold(ctx, c.sale()); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// freeAddress is --listen, or a port that is free when that one is not.
func (c *demoCmd) freeAddress() string {
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return c.Listen
}

// sale is what is sold. Nothing needs payment, so that "sold out" is final the moment the last unit is taken.
func (c *demoCmd) sale() queue.Sale {
	opens := time.Now().Add(c.OpensIn).UTC().Truncate(time.Millisecond)
	return queue.Sale{
		ID:       demoSale,
		Title:    queue.Text{"en": "Phone X, " + words.Count(c.Stock, "unit"), "zh": fmt.Sprintf("Phone X 限量 %d 台", c.Stock)},
		Items:    []queue.Item{{ID: queue.MainItem, Title: queue.Text{"en": "Phone X", "zh": "Phone X"}, Stock: c.Stock, Price: 299900}},
		Currency: "CNY",
		OpensAt:  opens, ClosesAt: opens.Add(time.Hour),
		Limit: 1,
		Line: queue.Line{
			Order: queue.FIFO, Rate: max(10, int64(c.Users)/20), Ratio: 5,
			Turn: queue.Duration(20 * time.Second), Grace: queue.Duration(10 * time.Minute),
		},
	}
}

// hold applies a sale on this node, the database first.
func (n *node) hold(ctx context.Context, sale queue.Sale) error {
	if err := n.backends.store.SaveSale(ctx, sale); err != nil {
		return err
	}
	return n.backends.queue.Restore(ctx, sale, queue.Reach{}, func(yield func([]queue.Order) error) error {
		return n.backends.store.EachOrder(ctx, sale.ID, 1000, yield)
	})
}

// crowd sends the shoppers, matches what they were told with the rows, prints it, and returns what of it is not the truth.
func (c *demoCmd) crowd(ctx context.Context, n *node, std *stdio) ([]string, error) {
	audit := func(ctx context.Context) (auditReport, error) {
		client, err := serverFlags{URL: n.URL, AdminToken: n.Admin}.client()
		if err != nil {
			return auditReport{}, err
		}
		report, _, err := fetchAudit(ctx, client, demoSale)
		return report, err
	}
	crowd := newCrowd(crowdOptions{
		URL: n.URL, Sale: demoSale, Users: c.Users, Prefix: "shopper", Secret: n.Secret,
		Ramp: c.OpensIn * 4 / 5, GrabDelay: time.Second, Qty: 1, Timeout: 10 * time.Minute, Company: true, Audit: audit,
	})
	shown := showProgress(std.out, crowd.Progress)
	report, err := crowd.Run(ctx)
	shown()
	if err != nil {
		return nil, err
	}
	problems, err := matchRows(ctx, n.backends.store, report)
	if err != nil {
		return nil, err
	}
	report.Problems, report.Matched = append(report.Problems, problems...), true
	fmt.Fprintln(std.out)
	return report.Problems, report.print(std.out)
}

// matchRows compares what each shopper was told with the rows of the database: an order told must be a live row of that
// user, and a row of one of the shoppers must have been told to them.
func matchRows(ctx context.Context, store *worker.Store, report crowdReport) ([]string, error) {
	told := map[string]string{} // order id → user
	for user, orders := range report.Orders {
		for _, order := range orders {
			told[order.ID] = user
		}
	}
	var problems []string
	err := store.EachOrder(ctx, report.Sale, 1000, func(page []queue.Order) error {
		for _, row := range page {
			if !row.Status.Live() || !strings.HasPrefix(row.User, "shopper-") {
				continue
			}
			if told[row.ID] != row.User {
				problems = append(problems, fmt.Sprintf("the order %s of %s is in the database, and its shopper was not told", row.ID, row.User))
			}
			delete(told, row.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for id, user := range told {
		problems = append(problems, fmt.Sprintf("%s was told of the order %s, which is not in the database", user, id))
	}
	slices.Sort(problems)
	return problems, nil
}
