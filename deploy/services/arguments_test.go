package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestArgumentsSayWhatToStartAndWhatToRun(t *testing.T) {
	t.Parallel()
	everything := usualNames()
	for _, c := range []struct {
		name string
		args []string
		want arguments
	}{
		{"nothing: start everything and stay", nil, arguments{only: everything, with: "auto", command: []string{}}},
		{"a command after the dashes keeps its own flags", []string{"--", "go", "test", "--only", "x"},
			arguments{only: everything, with: "auto", command: []string{"go", "test", "--only", "x"}}},
		{"a command needs no dashes", []string{"--with", "packages", "make", "test"},
			arguments{only: everything, with: "packages", command: []string{"make", "test"}}},
		{"a subset, in the order of needs and each once", []string{"--only", "postgres,redis,redis", "--", "true"},
			arguments{only: []string{"redis", "postgres"}, with: "auto", command: []string{"true"}}},
		{"what is started only for those who name it", []string{"--only", "brokers,redis"},
			arguments{only: []string{"redis", "brokers"}, with: "auto", command: []string{}}},
		{"programs to install", []string{"--install=luacheck,node"},
			arguments{only: everything, with: "auto", install: []string{"node", "luacheck"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(c.args, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(arguments{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("parse(%q), -want +got:\n%s", c.args, diff)
			}
		})
	}
}

func TestARunThatNamesNothingDoesWithoutTheBrokers(t *testing.T) {
	t.Parallel()
	if got := usualNames(); slices.Contains(got, "brokers") || len(got) != len(needNames())-1 {
		t.Errorf("it starts %q of %q", got, needNames())
	}
}

func TestArgumentsThatMakeNoSenseAreRefusedWithWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--only", "redis,mongo"}, "redis, rabbitmq, mariadb, postgres, cluster, brokers, chromium, node, nginx"},
		{[]string{"--only", "redis,"}, `no ""`},
		{[]string{"--with", "podman"}, "docker, packages or auto"},
		{[]string{"--install", "emacs"}, "luacheck"},
		{[]string{"--install", "luacheck", "--", "make"}, "leave out make"},
		{[]string{"--nonsense"}, "nonsense"},
	} {
		_, err := parse(c.args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("parse(%q) = %v, want an error that says %q", c.args, err, c.says)
		}
	}
}

func TestHelpNamesEveryFlagAndIsNoFailure(t *testing.T) {
	t.Parallel()
	var usage strings.Builder
	if _, err := parse([]string{"--help"}, &usage); !errors.Is(err, errHelp) {
		t.Fatalf("parse(--help) = %v, want errHelp", err)
	}
	for _, flag := range []string{"-only", "-with", "-install"} {
		if !strings.Contains(usage.String(), flag) {
			t.Errorf("the help does not name %s:\n%s", flag, usage.String())
		}
	}
	if code, err := run(nil, []string{"--help"}, io.Discard, io.Discard); code != 0 || err != nil {
		t.Errorf("run(--help) = %d, %v, want 0 and no error", code, err)
	}
}
