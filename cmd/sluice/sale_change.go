package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// saleLineCmd is `sluice sale line`.
type saleLineCmd struct {
	saleStep
	Rate   *int64   `help:"Turns given a second, at most; 0 = as fast as the caps allow."`
	Active *int64   `help:"Turns outstanding at once, at most; 0 = no cap."`
	Ratio  *float64 `help:"Outstanding turns for each unit left, at most; 0 = no cap."`
}

// Help is shown below the flags.
func (*saleLineCmd) Help() string {
	return "Takes effect within a second. What is left out stays.\n\nExample:\n\n    sluice sale line phone-x --rate 200 --active 500"
}

// Run changes the line.
func (c *saleLineCmd) Run(ctx context.Context, std *stdio) error {
	if c.Rate == nil && c.Active == nil && c.Ratio == nil {
		return usagef("say what to change: --rate, --active or --ratio")
	}
	return c.send(ctx, std, http.MethodPatch, "line", struct {
		Rate   *int64   `json:"rate,omitempty"`
		Active *int64   `json:"active,omitempty"`
		Ratio  *float64 `json:"ratio,omitempty"`
	}{c.Rate, c.Active, c.Ratio})
}

// saleExtendCmd is `sluice sale extend`.
type saleExtendCmd struct {
	saleStep
	ClosesAt closingTime `name:"closes-at" required:"" placeholder:"TIME" help:"Until when, like 2026-12-01T13:00:00+08:00, or how much later than planned, like +30m."`
}

// Help is shown below the flags.
func (*saleExtendCmd) Help() string {
	return "An earlier time shortens the sale.\n\nExample:\n\n    sluice sale extend phone-x --closes-at +30m\n    sluice sale extend phone-x --closes-at 2026-12-01T13:30:00+08:00"
}

// Run extends the sale.
func (c *saleExtendCmd) Run(ctx context.Context, std *stdio) error {
	var planned saleView
	if c.ClosesAt.at.IsZero() {
		client, err := c.client()
		if err != nil {
			return err
		}
		if _, err := client.get(ctx, &planned, salesPath(string(c.Sale))...); err != nil {
			return fmt.Errorf("extend %s: %w", c.Sale, err)
		}
	}
	closes, err := c.ClosesAt.from(planned.ClosesAt.Time)
	if err != nil {
		return fmt.Errorf("extend %s: %w", c.Sale, err)
	}
	return c.send(ctx, std, http.MethodPost, "extend", map[string]string{"closes_at": closes.Format(time.RFC3339Nano)})
}

// saleStockCmd is `sluice sale stock`.
type saleStockCmd struct {
	saleStep
	Item  string `placeholder:"ID" help:"The item; a sale that sells one thing needs none."`
	Total int64  `required:"" help:"Units in total, sold ones included; not below what is sold."`
}

// Help is shown below the flags.
func (*saleStockCmd) Help() string {
	return "Example:\n\n    sluice sale stock phone-x --item black --total 350"
}

// Run changes the stock.
func (c *saleStockCmd) Run(ctx context.Context, std *stdio) error {
	return c.send(ctx, std, http.MethodPost, "stock", map[string]any{"item": c.Item, "total": c.Total})
}
