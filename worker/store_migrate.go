package worker

import (
	"context"
	"embed"
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
		goose.WithSessionLocker(s.dialect.migrating()), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate the %s database: %w", s.dialect.name, err)
	}
	return nil
}
