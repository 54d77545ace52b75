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
// minutes; a database that is up to date is not changed. The guards of the audit log are put into place where that is allowed.
func (s *Store) Migrate(ctx context.Context) error {
	provider, err := s.migrator()
	if err != nil {
		return err
	}
	// The provider's own lock would come too late: it looks for what is pending before it takes it, and in MySQL may
	// find a table of versions that another process has created and not yet filled.
	unlock, err := s.dialect.migrating.lock(ctx)
	if err != nil {
		return fmt.Errorf("lock the migrations of the %s database: %w", s.dialect.name, err)
	}
	if _, err = provider.Up(ctx); err == nil {
		err = s.guardLog(ctx)
	}
	if err := errors.Join(err, unlock()); err != nil {
		return fmt.Errorf("migrate the %s database: %w", s.dialect.name, err)
	}
	return nil
}

func (s *Store) migrator() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+s.dialect.name)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	provider, err := goose.NewProvider(s.dialect.goose, s.writer.DB, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}

// versions are the newest version of the tables that this program knows, and the one that the database has. A database
// that was never migrated stays without a table of versions.
func (s *Store) versions(ctx context.Context) (known, applied int64, err error) {
	provider, err := s.migrator()
	if err != nil {
		return 0, 0, err
	}
	for _, source := range provider.ListSources() {
		known = max(known, source.Version)
	}
	// What goose offers for this makes its table first.
	var there bool
	if err = s.db.GetContext(ctx, &there, map[string]string{
		"mysql":    "SELECT COUNT(*) > 0 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'goose_db_version'",
		"postgres": "SELECT to_regclass('goose_db_version') IS NOT NULL",
		"sqlite":   "SELECT COUNT(*) > 0 FROM sqlite_master WHERE name = 'goose_db_version'",
	}[s.dialect.name]); err == nil && there {
		err = s.db.GetContext(ctx, &applied, "SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the version of the tables: %w", err)
	}
	return known, applied, nil
}
