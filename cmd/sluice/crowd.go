package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// spareFiles are the file descriptors that a crowd needs beside one for each shopper.
const spareFiles = 64

// crowdCmd is `sluice crowd`.
type crowdCmd struct {
	serverFlags
	secretFlags
	claimFlags
	Sale        saleID        `required:"" placeholder:"ID" help:"Id of the sale."`
	Users       int           `default:"1000" help:"How many shoppers there are."`
	Prefix      string        `default:"crowd" help:"Shoppers are called PREFIX-1, PREFIX-2 and so on. Crowds at the same time, or again in the same sale, need different ones."`
	Guests      bool          `help:"Shoppers are guests of the server instead of users with tokens of our own."`
	Ramp        time.Duration `default:"5s" help:"Arrivals are spread over this time."`
	Abandon     float64       `default:"0" help:"Fraction of the shoppers who leave before they buy, half of them without a word."`
	GrabDelay   time.Duration `default:"1s" help:"A shopper grabs at a random moment within this time after its turn came."`
	Item        string        `placeholder:"ID" help:"The item that everyone wants; without it each picks one of those left."`
	Qty         int64         `default:"1" help:"Units that each wants."`
	Code        []string      `placeholder:"CODE" help:"Codes of a sale that asks for them, which the shoppers bring in turn."`
	CodeFile    string        `placeholder:"FILE" help:"File with such codes, one in a line."`
	HTTP        bool          `name:"http" help:"Grab over HTTP, one request a shopper, without sockets: for sales whose line is off."`
	Concurrency int           `default:"100" help:"Requests at once, with --http."`
	Source      []string      `placeholder:"ADDRESS" help:"Local addresses to connect from in turn, each with ports of its own, like 127.0.0.2,127.0.0.3."`
	Timeout     time.Duration `default:"15m" help:"Who has no answer by then counts as unanswered."`
	Audit       *bool         `negatable:"" help:"Audit the sale at the end; on when there is an admin token. It needs the sale to itself: what others buy meanwhile, the crowd was not told of."`
	AdminURL    string        `name:"admin-url" placeholder:"URL" help:"Where the admin API is, for the audit; empty is --url. It is elsewhere where the server has an --admin-listen."`
	JSON        bool          `name:"json" help:"Print the report as JSON, with the orders of every user."`
}

// Help is shown below the flags.
func (*crowdCmd) Help() string {
	return `Every shopper follows the rules of a real page: it joins, waits, grabs when its turn comes, and reconnects when it is cut off. Exits with 1 when anyone was left without an answer or was told what is not true, and when nobody was let in.

Example:

    sluice crowd --sale phone-x --users 15000 --ramp 10s --secret "$SLUICE_SECRET" --admin-token "$SLUICE_ADMIN_TOKEN"
    sluice crowd --sale rush --users 200000 --http --concurrency 100 --ramp 0s --secret "$SLUICE_SECRET"`
}

// Run sends the crowd and prints the report.
func (c *crowdCmd) Run(ctx context.Context, std *stdio) error {
	client, err := newAPIClient("url", c.URL, "")
	if err != nil {
		return err
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	if err := c.lookAhead(ctx, client); err != nil {
		return err
	}
	files := c.Users
	if c.HTTP {
		files = c.Concurrency
	}
	if err := allowFiles(uint64(files + spareFiles)); err != nil {
		return err
	}

	crowd := newCrowd(opts)
	shown := showProgress(std.err, crowd.Progress)
	report, err := crowd.Run(ctx)
	shown()
	if err != nil {
		return err
	}
	if c.JSON {
		err = report.printJSON(std.out)
	} else {
		err = report.print(std.out)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	switch {
	case len(report.Problems) > 0:
		return errors.New(strings.Join(report.Problems, "; "))
	case report.shut():
		return errors.New(shutOut)
	}
	return nil
}

// lookAhead asks for the sale, so that a wrong address or name is said at once and not by a thousand reconnecting shoppers.
func (c *crowdCmd) lookAhead(ctx context.Context, client *apiClient) error {
	_, err := client.do(ctx, http.MethodGet, []string{"api", "v1", "sales", string(c.Sale)}, "", nil)
	if err != nil {
		return fmt.Errorf("look at the sale %s: %w", c.Sale, err)
	}
	return nil
}

// codes are those of the flags, then those of the file.
func (c *crowdCmd) codes() ([]string, error) {
	codes := c.Code
	if c.CodeFile != "" {
		text, err := os.ReadFile(c.CodeFile)
		if err != nil {
			return nil, usagef("--code-file: %s cannot be read (%v); give a file with a code in each line", c.CodeFile, underlying(err))
		}
		codes = append(codes, strings.Fields(string(text))...)
	}
	switch {
	case c.CodeFile != "" && len(codes) == len(c.Code):
		return nil, usagef("--code-file %s: there is no code in it", c.CodeFile)
	case len(codes) > 0 && c.HTTP:
		return nil, usagef("--code has no meaning with --http, where nobody joins")
	}
	return codes, nil
}

// options checks the flags and makes the crowd's options of them.
func (c *crowdCmd) options() (crowdOptions, error) {
	opts := crowdOptions{
		URL: c.URL, Sale: string(c.Sale), Users: c.Users, Prefix: c.Prefix, Guests: c.Guests, Ramp: c.Ramp, Abandon: c.Abandon,
		Claims: c.claimFlags, GrabDelay: c.GrabDelay, Item: c.Item, Qty: c.Qty, HTTP: c.HTTP, Concurrency: c.Concurrency, Timeout: c.Timeout,
	}
	secrets, err := c.secrets()
	if err != nil {
		return opts, err
	}
	if len(secrets) > 0 {
		opts.Secret = secrets[0]
	}
	switch {
	case len(secrets) == 0 && !c.Guests:
		return opts, usagef("shoppers need tokens: give --secret or --secret-file as the server has it, or --guests")
	case c.Users < 1:
		return opts, usagef("--users %d: a crowd has at least one shopper", c.Users)
	case c.Qty < 1:
		return opts, usagef("--qty %d: a shopper wants at least one unit", c.Qty)
	case c.Abandon < 0 || c.Abandon > 1:
		return opts, usagef("--abandon %g: give a fraction from 0 to 1", c.Abandon)
	case c.Abandon > 0 && c.HTTP:
		return opts, usagef("--abandon has no meaning with --http, where nobody waits")
	case c.Ramp < 0 || c.GrabDelay < 0 || c.Timeout <= 0:
		return opts, usagef("--ramp and --grab-delay cannot be negative, and --timeout must be positive")
	case c.HTTP && c.Concurrency < 1:
		return opts, usagef("--concurrency %d: at least one request must be possible at once", c.Concurrency)
	}
	if opts.Codes, err = c.codes(); err != nil {
		return opts, err
	}
	if !c.Guests {
		if err := checkUser(memberOf(c.Prefix, c.Users)); err != nil {
			return opts, err
		}
	}
	for _, source := range c.Source {
		ip := net.ParseIP(source)
		if ip == nil {
			return opts, usagef("--source %q: write local addresses like 127.0.0.2,127.0.0.3", source)
		}
		opts.Sources = append(opts.Sources, ip)
	}

	token, err := c.adminToken()
	if err != nil {
		return opts, err
	}
	wanted := token != ""
	if c.Audit != nil {
		wanted = *c.Audit
	}
	if wanted {
		client, err := newAPIClient("admin-url", firstOf(c.AdminURL, c.URL), token)
		if err != nil {
			return opts, err
		}
		opts.Audit = func(ctx context.Context) (auditReport, error) {
			audit, _, err := fetchAudit(ctx, client, string(c.Sale))
			return audit, err
		}
	}
	return opts, nil
}
