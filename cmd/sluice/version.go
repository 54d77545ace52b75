package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
)

// versionCmd is `sluice version`.
type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Help is shown below the flags.
func (*versionCmd) Help() string {
	return "A build from a folder without its history knows no commit.\n\nExample:\n\n    sluice version"
}

// Run prints a line for each fact.
func (c *versionCmd) Run(std *stdio) error {
	facts := factsOfBuild(debug.ReadBuildInfo())
	if c.JSON {
		return json.NewEncoder(std.out).Encode(facts)
	}
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "sluice\t%s\n", facts.Version)
	if facts.Commit != "" {
		fmt.Fprintf(table, "commit\t%s\n", strings.Join(facts.commit(), ", "))
	}
	fmt.Fprintf(table, "go\t%s\n", facts.Go)
	return table.Flush()
}

// buildFacts are what the Go tool recorded in this binary.
type buildFacts struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`    // "" = it is not recorded
	At       string `json:"commit_at,omitempty"` // RFC 3339
	Modified bool   `json:"modified,omitempty"`  // it was not built from that commit alone
	Go       string `json:"go"`
}

// factsOfBuild reads what debug.ReadBuildInfo returns.
func factsOfBuild(info *debug.BuildInfo, ok bool) buildFacts {
	if !ok {
		return buildFacts{Version: "(unknown build)", Go: runtime.Version()}
	}
	facts := buildFacts{Version: info.Main.Version, Go: info.GoVersion}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			facts.Commit = setting.Value
		case "vcs.time":
			facts.At = setting.Value
		case "vcs.modified":
			facts.Modified = setting.Value == "true"
		}
	}
	return facts
}

// commit is what is known of the commit, short.
func (f buildFacts) commit() []string {
	var details []string
	if f.Commit != "" {
		details = append(details, f.Commit[:min(12, len(f.Commit))])
	}
	if f.At != "" {
		details = append(details, f.At)
	}
	if f.Modified {
		details = append(details, "modified")
	}
	return details
}

// build names this binary in one line.
func build() string {
	facts := factsOfBuild(debug.ReadBuildInfo())
	return fmt.Sprintf("%s (%s)", facts.Version, strings.Join(append([]string{facts.Go}, facts.commit()...), ", "))
}
