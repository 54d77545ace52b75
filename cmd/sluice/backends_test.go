package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNodesRefuseWhatWouldLoseOrders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url, empty := filepath.Join(dir, "url"), filepath.Join(dir, "empty")
	if err := os.WriteFile(url, []byte("amqp://127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commas := filepath.Join(dir, "commas")
	if err := os.WriteFile(commas, []byte(",,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args string
		code int
		says string
	}{
		"broker without redis":         {"serve --amqp-url amqp://127.0.0.1", exitUsage, "--amqp-url needs --redis-url"},
		"broker by file":               {"serve --amqp-url-file " + url, exitUsage, "--amqp-url needs --redis-url"},
		"broker without database":      {"serve --secret s --redis-url redis://127.0.0.1 --amqp-url amqp://127.0.0.1", exitUsage, "--amqp-url needs --database-url"},
		"worker without database":      {"worker --redis-url redis://127.0.0.1 --amqp-url-file " + url, exitUsage, "--amqp-url needs --database-url"},
		"worker by itself":             {"worker", exitUsage, "a worker needs"},
		"nobody to write":              {"serve --no-worker", exitUsage, "--no-worker needs"},
		"two sources":                  {"serve --redis-url redis://127.0.0.1 --redis-url-file " + url, exitUsage, "keep one"},
		"two sources of the database":  {"migrate --database-url sqlite:///x --database-url-file " + url, exitUsage, "SLUICE_DATABASE_URL_FILE"},
		"no page of the broker":        {"serve --broker-ui-url javascript:alert(1)", exitUsage, "--broker-ui-url"},
		"no host of the broker's page": {"serve --broker-ui-url http://", exitUsage, "--broker-ui-url"},
		"no webhook secret":            {"serve --webhook-secret-file " + commas + " --data-dir " + dir, exitFailed, "holds no secret"},
		"empty file":                   {"serve --database-url-file " + empty, exitFailed, "is empty"},
		"no file":                      {"migrate --database-url-file " + empty + "x", exitFailed, "no such file"},
		"no connections":               {"serve --redis-pool 1", exitUsage, "--redis-pool"},
		"no redis":                     {"serve --redis-url http://127.0.0.1 --secret s --admin-token t --data-dir " + dir, exitFailed, "redis://"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, said := sluice(t, "", strings.Fields(test.args)...)
			want(t, "exit code", code, test.code)
			want(t, "standard output", out, "")
			if !strings.HasPrefix(said, "sluice: ") || strings.Count(said, "\n") != 1 || !strings.Contains(said, test.says) {
				t.Errorf("said %q, want one sentence with %q in it", said, test.says)
			}
		})
	}
}

func TestTheURLOfADatabaseMayBeInAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte("sqlite://"+filepath.Join(t.TempDir(), "orders.db")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, said := sluice(t, "", "migrate", "--database-url-file", file)
	want(t, "exit code", code, 0)
	want(t, "standard error", said, "")
	want(t, "standard output", out, "the tables of the sqlite database are up to date\n")
}
