package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pretender is a program in the place of docker that writes down its arguments and answers `port` as an engine does.
const pretender = `#!/bin/sh
echo "$@" >>"$(dirname "$0")/calls"
case "$*" in
*" port redis 6379") echo 127.0.0.1:49153 ;;
*" up "*nothing*) echo "no such service: nothing" >&2; exit 14 ;;
esac
`

func pretend(t *testing.T) *engine {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sluice-services-1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(dir)
	if err != nil {
		t.Fatal(err)
	}
	e.docker = filepath.Join(dir, "docker")
	if err := os.WriteFile(e.docker, []byte(pretender), 0o700); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestContainersOfARunAreAProjectOfItsOwn(t *testing.T) {
	t.Parallel()
	e := pretend(t)
	if err := e.up(t.Context(), []string{"redis", "postgres"}); err != nil {
		t.Fatal(err)
	}
	address, err := e.address(t.Context(), "redis", 6379)
	if err != nil || address != "127.0.0.1:49153" {
		t.Errorf("address = %q, %v, want 127.0.0.1:49153", address, err)
	}
	if err := e.down(); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(filepath.Join(filepath.Dir(e.docker), "calls"))
	if err != nil {
		t.Fatal(err)
	}
	project := "compose --project-name sluice-services-1 --file " + e.file + " "
	want := []string{
		project + "up --detach --quiet-pull --no-color redis postgres",
		project + "port redis 6379",
		project + "down --volumes --timeout 0",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(string(calls)), "\n")); diff != "" {
		t.Errorf("calls of docker, -want +got:\n%s", diff)
	}
}

func TestWhatDockerComplainsAboutIsPassedOn(t *testing.T) {
	t.Parallel()
	err := pretend(t).up(t.Context(), []string{"nothing"})
	if err == nil || !strings.Contains(err.Error(), "no such service: nothing") {
		t.Errorf("up of an unknown service: %v, want what docker said", err)
	}
}

func TestEveryServiceIsInTheComposeFileWithThePortThatIsAskedFor(t *testing.T) {
	t.Parallel()
	file := string(composeFile)
	for _, n := range needs() {
		if !n.service {
			continue
		}
		_, rest, found := strings.Cut(file, "\n  "+n.name+":\n")
		own, _, _ := strings.Cut(rest, "\n\n")
		if port := `ports: ["127.0.0.1::` + strconv.Itoa(n.inside) + `"]`; !found || !strings.Contains(own, port) {
			t.Errorf("compose.yaml has no service %s with %s", n.name, port)
		}
	}
}
