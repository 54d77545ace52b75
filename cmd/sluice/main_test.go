package main

import (
	"strings"
	"testing"
)

func TestEveryCommandHasHelpWithAnExampleAndItsVariables(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"demo", "serve", "worker", "migrate", "dead list", "dead show", "dead retry", "dead drop", "token", "audit", "verify", "doctor", "version", "crowd", "sale apply", "sale list", "sale show", "sale open", "sale pause", "sale resume", "sale recover", "sale line", "sale extend", "sale stock", "sale close", "sale archive"} {
		code, out, said := sluice(t, "", append(strings.Fields(command), "--help")...)
		want(t, "exit code of "+command+" --help", code, 0)
		want(t, "standard error of "+command+" --help", said, "")
		if !strings.Contains(out, "Example:\n\n    sluice "+command) {
			t.Errorf("%s --help has no example:\n%s", command, out)
		}
		_, flags, _ := strings.Cut(out, "\nFlags:\n")
		for _, flag := range strings.Split(flags, "\n      --")[1:] {
			if name, text, _ := strings.Cut(flag, " "); name != "version" && !strings.Contains(text, "($SLUICE_") {
				t.Errorf("%s --%s has no environment variable", command, name)
			}
		}
	}
}

func TestSecretsFromTheEnvironmentAreNotShownInHelp(t *testing.T) {
	t.Setenv("SLUICE_SECRET", "hush-hush")
	t.Setenv("SLUICE_ADMIN_TOKEN", "hush-hush")
	_, out, _ := sluice(t, "", "crowd", "--help")
	if strings.Contains(out, "hush-hush") {
		t.Errorf("help shows a secret:\n%s", out)
	}
	code, out, _ := sluice(t, "", "token", "--user", "alice")
	want(t, "exit code with SLUICE_SECRET", code, 0)
	claimsOf(t, strings.TrimSuffix(out, "\n"), "hush-hush")
}

func TestBadUsageExitsWithTwoAndSaysWhereHelpIs(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"bogus":                               "unexpected argument bogus (see sluice --help)",
		"sale":                                "(see sluice sale --help)",
		"sale open":                           `expected "<sale>" (see sluice sale open --help)`,
		"token --bogus":                       "unknown flag --bogus (see sluice token --help)",
		"crowd --users two":                   "(see sluice crowd --help)",
		"audit x --url x":                     "write it like http://127.0.0.1:8080",
		"serve --jwt-leeway 24h":              "--jwt-leeway 24h: give 0s to 5m",
		"demo --opens-in=-90m":                "--opens-in -1h30m:",
		"token --user a --secret s --ttl=-1m": "--ttl -1m:",
	} {
		code, out, said := sluice(t, "", strings.Fields(line)...)
		want(t, "exit code of "+line, code, 2)
		want(t, "standard output of "+line, out, "")
		if !strings.HasPrefix(said, "sluice: ") || !strings.Contains(said, says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s says %q, want %q in it", line, said, says)
		}
	}
}

func TestNoCommandIsAQuestionForHelp(t *testing.T) {
	t.Parallel()
	code, out, _ := sluice(t, "")
	want(t, "exit code", code, 0)
	if !strings.Contains(out, "Usage: sluice <command>") {
		t.Errorf("printed %q", out)
	}
}
