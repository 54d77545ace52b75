package main

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// alertFile is what the tests look at in deploy/prometheus/alerts.yml.
type alertFile struct {
	Groups []struct {
		Rules []struct {
			Alert       string
			Expr        string
			Annotations struct{ Summary, Runbook string }
		}
	}
}

func TestEachAlertHasARunbookAndATest(t *testing.T) {
	t.Parallel()
	var alerts alertFile
	if err := yaml.Unmarshal(readFile(t, "deploy/prometheus/alerts.yml"), &alerts); err != nil {
		t.Fatal(err)
	}
	runbooks, tests := string(readFile(t, "docs/operate.md")), string(readFile(t, "deploy/prometheus/alerts_test.yml"))
	var names []string
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
			if !strings.Contains(runbooks, "### "+rule.Alert+"\n") || rule.Annotations.Runbook != "docs/operate.md#"+strings.ToLower(rule.Alert) {
				t.Errorf("%s has no run-book, or does not lead to it: %q", rule.Alert, rule.Annotations.Runbook)
			}
			for _, name := range []string{rule.Alert, rule.Alert + " stays silent"} {
				if !strings.Contains(tests, "- name: "+name+"\n") {
					t.Errorf("there is no test %q", name)
				}
			}
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (Sluice\w+)$`).FindAllStringSubmatch(runbooks, -1) {
		if !slices.Contains(names, heading[1]) {
			t.Errorf("there is a run-book of %s, which is no alert", heading[1])
		}
	}
}

func TestDashboardAndAlertsAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(readFile(t, "deploy/grafana/sluice.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var asked strings.Builder
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			asked.WriteString(target.Expr + "\n")
		}
	}
	asked.Write(readFile(t, "deploy/prometheus/alerts.yml"))
	// The names are those of the source: what counts nothing yet is not in an answer of /metrics.
	var known strings.Builder
	for _, file := range []string{
		"hub/metrics.go", "server/metrics.go", "server/collector.go", "queue/metrics.go", "worker/metrics.go", "worker/inspector.go",
		"worker/restorer.go", "worker/sweeper.go", "server/keyring.go", "cmd/sluice/reload.go",
	} {
		known.Write(readFile(t, file))
	}
	seen := 0
	for _, name := range regexp.MustCompile(`sluice_[a-z_]+`).FindAllString(asked.String(), -1) {
		name = strings.TrimSuffix(name, "_bucket")
		seen++
		if short := strings.TrimPrefix(name, "sluice_"); !strings.Contains(known.String(), `"`+name+`"`) && !strings.Contains(known.String(), `"`+short+`"`) {
			t.Errorf("%s is asked for, and no part counts it", name)
		}
	}
	if seen < 30 {
		t.Errorf("only %d metrics are asked for", seen)
	}
}
