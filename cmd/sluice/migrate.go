package main

import (
	"context"
	"fmt"

	"sluice/worker"
)

// migrateCmd is `sluice migrate`.
type migrateCmd struct {
	databaseFlags
}

// Help is shown below the flags.
func (*migrateCmd) Help() string {
	return `Brings the tables of the database to the newest version. serve and worker do it too when they start; this is for those who want it done before.

Example:

    sluice migrate --database-url postgres://sluice@127.0.0.1/sluice`
}

// Run migrates.
func (c *migrateCmd) Run(ctx context.Context, std *stdio) error {
	url, err := c.databaseFlags.url()
	if err != nil {
		return err
	}
	store, err := worker.OpenStore(ctx, url, worker.StoreOptions{})
	if err != nil {
		return err
	}
	if err = store.Writable(ctx); err == nil {
		err = store.Migrate(ctx)
	}
	if err != nil {
		_ = store.Close()
		return err
	}
	if err := store.Close(); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "the tables of the %s database are up to date\n", store.Dialect())
	return nil
}
