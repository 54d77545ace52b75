package main

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionNamesTheBuild(t *testing.T) {
	t.Parallel()
	code, out, said := sluice(t, "", "--version")
	want(t, "exit code", code, 0)
	want(t, "standard error", said, "")
	if !strings.HasPrefix(out, "sluice ") || !strings.Contains(out, runtime.Version()) || strings.Count(out, "\n") != 1 {
		t.Errorf("--version is %q", out)
	}

	// The command of a binary as it is shipped says the same, a line for each fact.
	out = succeed(t, "version")
	one := succeed(t, "--version")
	facts := map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		facts[name] = strings.TrimSpace(value)
	}
	if facts["sluice"] == "" || facts["go"] != runtime.Version() || !strings.HasPrefix(one, "sluice "+facts["sluice"]+" ("+facts["go"]) || !strings.Contains(one, facts["commit"]) {
		t.Errorf("version is\n%s\nand --version is %s", out, one)
	}
	var told buildFacts
	if err := json.Unmarshal([]byte(succeed(t, "version", "--json")), &told); err != nil || told.Version != facts["sluice"] || told.Go != facts["go"] {
		t.Errorf("version --json is %+v, %v", told, err)
	}
}

func TestTheCommitOfABuildIsToldWhereItIsKnown(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v1.2.3"}}
	want(t, "without a history", strings.Join(factsOfBuild(info, true).commit(), ", "), "")
	info.Settings = []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-12-01T12:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	facts := factsOfBuild(info, true)
	want(t, "with one", strings.Join(facts.commit(), ", "), "0123456789ab, 2026-12-01T12:00:00Z, modified")
	want(t, "the version", facts.Version, "v1.2.3")
	want(t, "a build that says nothing", factsOfBuild(nil, false).Go, runtime.Version())
}
