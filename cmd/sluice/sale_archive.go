package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// saleArchiveCmd is `sluice sale archive`.
type saleArchiveCmd struct {
	saleStep
	PurgeUsers bool `help:"Also replace the users of its orders by pseudonyms, for good. Shoppers do not find their orders any more then."`
}

// Help is shown below the flags.
func (*saleArchiveCmd) Help() string {
	return `A sale is over when it is closed, no order of it waits for its payment, and its audit holds; the answer says what is missing. Its
id cannot be used again. Archiving again changes nothing.

Example:

    sluice sale archive phone-x
    sluice sale archive phone-x --purge-users`
}

// Run archives the sale.
func (c *saleArchiveCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	var query url.Values
	if c.PurgeUsers {
		query = url.Values{"purge_users": {"true"}}
	}
	answer, err := client.ask(ctx, http.MethodPost, salesPath(string(c.Sale), "archive"), query, "", nil)
	if err != nil {
		return fmt.Errorf("archive %s: %w", c.Sale, err)
	}
	return c.print(ctx, std, client, string(c.Sale), answer)
}
