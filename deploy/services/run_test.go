package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestARunStartsRedisTellsTheCommandAndLeavesNothing(t *testing.T) {
	report := filepath.Join(t.TempDir(), "address")
	temp := temporary(t)
	var progress strings.Builder
	code, err := run(nil, []string{"--only", "redis", "--", "sh", "-c", `echo "$SLUICE_TEST_REDIS" > ` + report + `; exit 7`},
		io.Discard, &progress)
	if code != 7 || err != nil {
		t.Fatalf("run = %d, %v, want the command's own 7 and no complaint; it said:\n%s", code, err, progress.String())
	}
	told, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSpace(string(told))
	if at == "" || !strings.Contains(progress.String(), at) {
		t.Errorf("the command was told %q, the person:\n%s", at, progress.String())
	}
	nothingLeft(t, temp, at)
}

func TestASignalEndsTheCommandAndTheServices(t *testing.T) {
	report := filepath.Join(t.TempDir(), "address")
	temp := temporary(t)
	if err := syscall.Mkfifo(report, 0o600); err != nil {
		t.Fatal(err)
	}
	signals := make(chan os.Signal, 1)
	ended := make(chan int, 1)
	go func() {
		code, err := run(signals, []string{"--only", "redis", "--", "sh", "-c", `echo "$SLUICE_TEST_REDIS" > ` + report + `; sleep 600`},
			io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "signal") {
			t.Errorf("a run that a signal ends says %v, want the signal", err)
		}
		ended <- code
	}()
	told, err := os.ReadFile(report) // waits for the command to write
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSpace(string(told))
	if err := redisAnswers(t.Context(), at); err != nil {
		t.Errorf("redis does not answer while the command runs: %v", err)
	}
	signals <- syscall.SIGINT
	if code := <-ended; code != 128+int(syscall.SIGINT) {
		t.Errorf("run = %d, want 130", code)
	}
	nothingLeft(t, temp, at)
}

func TestACommandThatDoesNotExistIsSaidAndLeavesNothing(t *testing.T) {
	temp := temporary(t)
	code, err := run(nil, []string{"--only", "redis", "--", "no-such-command-anywhere"}, io.Discard, io.Discard)
	if code != 127 || err == nil || !strings.Contains(err.Error(), "no-such-command-anywhere") {
		t.Errorf("run = %d, %v, want 127 and the command's name", code, err)
	}
	nothingLeft(t, temp, "")
}

// temporary makes the folder in which the run makes its own. Unlike the test's, whose parent is closed, services that
// run as another account can pass through it.
func temporary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

// nothingLeft checks that no folder is left in dir and that no Redis answers at the address.
func nothingLeft(t *testing.T, dir, at string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the run left %q, %v", left, err)
	}
	if at == "" {
		return
	}
	if err := redisAnswers(t.Context(), at); err == nil {
		t.Errorf("redis still answers at %s after the run", at)
	}
}
