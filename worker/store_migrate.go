package worker

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// Migrate brings the tables to the newest version. Processes that start together wait for one another, for up to five
// minutes; a database that is up to date is not changed.
func (s *Store) Migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations/"+s.dialect.name)
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	provider, err := goose.NewProvider(s.dialect.goose, s.writer.DB, files,
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	// The provider's own lock would come too late: it looks for what is pending before it takes it, and in MySQL may
	// find a table of versions that another process has created and not yet filled.
	unlock, err := s.dialect.migrating.lock(ctx)
	if err != nil {
		return fmt.Errorf("lock the migrations of the %s database: %w", s.dialect.name, err)
	}
	_, err = provider.Up(ctx)
	if err := errors.Join(err, unlock()); err != nil {
		return fmt.Errorf("migrate the %s database: %w", s.dialect.name, err)
	}
	return nil
}
