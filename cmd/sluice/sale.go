package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/queue"
)

// saleCmd is `sluice sale …`.
type saleCmd struct {
	Apply  saleApplyCmd  `cmd:"" help:"Apply a sale file: create the sale, or change what may be changed."`
	List   saleListCmd   `cmd:"" help:"List the sales."`
	Show   saleShowCmd   `cmd:"" help:"Show one sale."`
	Open   saleOpenCmd   `cmd:"" help:"Open a sale now, before its time."`
	Pause  salePauseCmd  `cmd:"" help:"Pause a sale; nobody loses a turn by it."`
	Resume saleResumeCmd `cmd:"" help:"Go on after a pause."`
	Close  saleCloseCmd  `cmd:"" help:"Close a sale now, before its time."`

	Line    saleLineCmd    `cmd:"" help:"Change how fast a running sale gives turns."`
	Extend  saleExtendCmd  `cmd:"" help:"Change until when a sale lasts."`
	Stock   saleStockCmd   `cmd:"" help:"Change how many units of an item there are in total."`
	Archive saleArchiveCmd `cmd:"" help:"Take a sale that is over out of Redis, and keep its orders."`
	Recover saleRecoverCmd `cmd:"" help:"Put a sale right in Redis from its orders, as after a loss."`
}

// saleFlags are the flags of every sale command.
type saleFlags struct {
	serverFlags
	JSON bool `name:"json" help:"Print the server's JSON."`
}

// saleName is the argument of the commands that are about one sale.
type saleName struct {
	Sale saleID `arg:"" help:"Id of the sale."`
}

// saleID is the id of a sale on the command line.
type saleID string

// UnmarshalText refuses what cannot name a sale, before it becomes part of a URL.
func (id *saleID) UnmarshalText(text []byte) error {
	if !queue.ValidID(string(text)) {
		return fmt.Errorf("%q is no sale id: %s", text, saleIDRule)
	}
	*id = saleID(text)
	return nil
}

// saleIDRule is what isSaleID wants, for people.
const saleIDRule = "use 1 to 63 lower-case letters, digits and -, and begin with a letter or digit"

// salesPath is the path of the sales in the admin API, or of what is below it.
func salesPath(more ...string) []string {
	return append([]string{"api", "v1", "admin", "sales"}, more...)
}

// saleApplyCmd is `sluice sale apply`.
type saleApplyCmd struct {
	saleFlags
	File string `arg:"" help:"Sale file, YAML or JSON; - reads it from standard input."`
}

// Help is shown below the flags.
func (*saleApplyCmd) Help() string {
	return `Applying the same file again changes nothing.

Example:

    sluice sale apply phone-x.yaml`
}

// Run sends the file as it is: the server alone decides what it means.
func (c *saleApplyCmd) Run(ctx context.Context, std *stdio) error {
	data, err := readSaleFile(c.File, std.in)
	if err != nil {
		return err
	}
	sale, err := saleIDOf(data)
	if err != nil {
		return fmt.Errorf("%s: %w", c.source(), err)
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	answer, err := client.do(ctx, http.MethodPut, salesPath(sale), saleFileType(c.File, data), data)
	if err != nil {
		return fmt.Errorf("apply %s: %w", c.source(), err)
	}
	return c.print(ctx, std, client, sale, answer)
}

// source is where the sale comes from, for people.
func (c *saleApplyCmd) source() string {
	if c.File == "-" {
		return "standard input"
	}
	return c.File
}

// readSaleFile reads the file, or in when it is "-".
func readSaleFile(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("read the sale from standard input: %w", err)
		}
		return data, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the sale file: %w", err)
	}
	return data, nil
}

// saleIDOf reads the id of a sale file, YAML or JSON, and leaves everything else to the server.
func saleIDOf(data []byte) (string, error) {
	var file struct {
		ID string `yaml:"id"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("neither YAML nor JSON: %w", err)
	}
	if file.ID == "" {
		return "", errors.New("it has no field id, the name of the sale")
	}
	if !queue.ValidID(file.ID) {
		return "", fmt.Errorf("id %q: %s", file.ID, saleIDRule)
	}
	return file.ID, nil
}

// saleFileType is the media type of a sale file. JSON is YAML as well, so only a file that is called JSON and is broken
// needs its name to be complained about as JSON.
func saleFileType(file string, data []byte) string {
	if json.Valid(data) || filepath.Ext(file) == ".json" {
		return "application/json"
	}
	return "application/yaml"
}

// saleListCmd is `sluice sale list`.
type saleListCmd struct {
	saleFlags
	Archived bool `help:"List those that were archived instead."`
}

// Help is shown below the flags.
func (*saleListCmd) Help() string { return "Example:\n\n    sluice sale list" }

// Run prints a line for each sale.
func (c *saleListCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var list saleList
	var query url.Values
	if c.Archived {
		query = url.Values{"archived": {"true"}}
	}
	answer, err := client.find(ctx, &list, query, salesPath()...)
	if err != nil {
		return fmt.Errorf("list the sales: %w", err)
	}
	if c.JSON {
		return printJSON(std.out, answer)
	}
	var about struct{ Incomplete string }
	if json.Unmarshal(answer, &about) == nil && about.Incomplete != "" {
		fmt.Fprintln(std.err, about.Incomplete)
	}
	none := "no sales yet; make one with: sluice sale apply FILE"
	if c.Archived {
		none = "no sale was archived yet"
	}
	return printSales(std.out, list, time.Now(), none)
}

// saleShowCmd is `sluice sale show`.
type saleShowCmd struct {
	saleFlags
	saleName
}

// Help is shown below the flags.
func (*saleShowCmd) Help() string { return "Example:\n\n    sluice sale show phone-x" }

// Run prints the sale.
func (c *saleShowCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return c.print(ctx, std, client, string(c.Sale), nil)
}

// saleStep is what the commands share that move a sale from one state to the next.
type saleStep struct {
	saleFlags
	saleName
}

func (c *saleStep) post(ctx context.Context, std *stdio, step string) error {
	return c.send(ctx, std, http.MethodPost, step, nil)
}

// send makes a change of the sale; change is written as JSON unless it is nil.
func (c *saleStep) send(ctx context.Context, std *stdio, method, step string, change any) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var kind string
	var body []byte
	if change != nil {
		kind = "application/json"
		if body, err = json.Marshal(change); err != nil {
			return fmt.Errorf("write the change: %w", err)
		}
	}
	answer, err := client.do(ctx, method, salesPath(string(c.Sale), step), kind, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", step, c.Sale, err)
	}
	return c.print(ctx, std, client, string(c.Sale), answer)
}

type (
	saleOpenCmd   struct{ saleStep }
	salePauseCmd  struct{ saleStep }
	saleResumeCmd struct{ saleStep }
	saleCloseCmd  struct{ saleStep }

	saleRecoverCmd struct{ saleStep }
)

// Run opens the sale.
func (c *saleOpenCmd) Run(ctx context.Context, std *stdio) error { return c.post(ctx, std, "open") }

// Run pauses the sale.
func (c *salePauseCmd) Run(ctx context.Context, std *stdio) error { return c.post(ctx, std, "pause") }

// Run resumes the sale.
func (c *saleResumeCmd) Run(ctx context.Context, std *stdio) error { return c.post(ctx, std, "resume") }

// Run has the sale put right.
func (c *saleRecoverCmd) Run(ctx context.Context, std *stdio) error {
	return c.post(ctx, std, "recover")
}

// Run closes the sale.
func (c *saleCloseCmd) Run(ctx context.Context, std *stdio) error { return c.post(ctx, std, "close") }

// Help is shown below the flags.
func (*saleOpenCmd) Help() string { return "Example:\n\n    sluice sale open phone-x" }

// Help is shown below the flags.
func (*salePauseCmd) Help() string { return "Example:\n\n    sluice sale pause phone-x" }

// Help is shown below the flags.
func (*saleResumeCmd) Help() string { return "Example:\n\n    sluice sale resume phone-x" }

// Help is shown below the flags.
func (*saleRecoverCmd) Help() string {
	return "Nothing is granted until it is done, which takes a second for some 10,000 orders. It changes nothing that is right.\n\nExample:\n\n    sluice sale recover phone-x"
}

// Help is shown below the flags.
func (*saleCloseCmd) Help() string { return "Example:\n\n    sluice sale close phone-x" }

// print shows the sale that the server answered with, and asks for it when the answer to the change held none.
func (f saleFlags) print(ctx context.Context, std *stdio, client *apiClient, sale string, answer []byte) error {
	var view saleView
	if len(bytes.TrimSpace(answer)) == 0 {
		var err error
		if answer, err = client.get(ctx, &view, salesPath(sale)...); err != nil {
			return fmt.Errorf("show %s: %w", sale, err)
		}
	} else if err := json.Unmarshal(answer, &view); err != nil {
		return fmt.Errorf("understand the server's answer about %s: %w", sale, err)
	}
	if f.JSON {
		return printJSON(std.out, answer)
	}
	return printSale(std.out, view, time.Now())
}
