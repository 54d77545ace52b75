package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostWith is a machine that has only the named programs and no way to get more.
func hostWith(names ...string) *host {
	return &host{
		progress: io.Discard,
		lookup:   func(p program) (string, bool) { return "/bin/" + p.name, slices.Contains(names, p.name) },
		asRoot:   func(context.Context) ([]string, error) { return nil, errors.New("there is no root here") },
	}
}

func TestOnlyPackagesOfProgramsThatAreNotHereAreMissing(t *testing.T) {
	t.Parallel()
	h := hostWith("redis-server", "mariadbd", "postgres")
	for _, c := range []struct {
		name  string
		asked []string
		want  []string
	}{
		{"what is here", []string{"redis-server"}, nil},
		{"half of a package", []string{"mariadbd", "mariadb-install-db"}, []string{"mariadb-server"}},
		{"a package once, whatever it brings", []string{"rabbitmq-server", "epmd"}, []string{"rabbitmq-server"}},
		{"nothing that was not asked for", []string{"luacheck", "redis-server"}, []string{"lua-check"}},
	} {
		if diff := cmp.Diff(c.want, h.missing(c.asked)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", c.name, diff)
		}
	}
}

func TestEveryNeedNamesProgramsThatAPackageBrings(t *testing.T) {
	t.Parallel()
	for _, n := range needs() {
		for _, p := range n.programs {
			if !slices.Contains(programNames(), p) {
				t.Errorf("%s needs %s, which no package brings", n.name, p)
			}
		}
	}
}

func TestWhatCannotBeHadFailsAndSaysHowToGetIt(t *testing.T) {
	t.Parallel()
	h := hostWith("redis-server")
	asked := arguments{only: []string{"redis", "postgres"}, with: "packages"}
	started, err := startAll(t.Context(), asked, h, io.Discard)
	if stopErr := started.stop(); stopErr != nil {
		t.Error(stopErr)
	}
	if err == nil || !strings.Contains(err.Error(), "apt-get install postgresql") || !strings.Contains(err.Error(), "no root") {
		t.Errorf("starting a service that cannot be had: %v, want an error that says how to get it", err)
	}
}
