package main

import (
	"encoding/json"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// goWords are what only those understand who know Go, or the library that reads the command line.
var goWords = regexp.MustCompile(`strconv\.|parsing |parse error|time: |invalid syntax|invalid duration|flag provided|encoding/|EOL|envar|` +
	`int but got|float but got|expected .* value|bool value|missing port|too many colons|net/url|missing unit|unknown port|no such host|stat |tls: |invalid character`)

// badValues are wrong for one kind of flag or another, and most of them for all but texts.
var badValues = []string{"x", "", "-", "5", "1e999", "99999999999999999999", "NaN"}

// leaves are the commands that do something, each with the words and values that it cannot do without.
func leaves(t *testing.T) (*kong.Kong, map[*kong.Node][]string) {
	t.Helper()
	parser, err := kong.New(&cli{}, append(plainValues(), kong.Vars{"version": ""}, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"closes-at": "+30m", "total": "5", "user": "ann", "sale": "phone-x", "order": "id", "file": "/dev/null"}
	lines := map[*kong.Node][]string{}
	for _, leaf := range parser.Model.Leaves(true) {
		line := strings.Fields(strings.TrimPrefix(leaf.Path(), "sluice "))
		line = slices.DeleteFunc(line, func(word string) bool { return word[0] == '<' || word[0] == '[' })
		for _, arg := range leaf.Positional {
			line = append(line, good[arg.Name])
		}
		for _, flag := range allFlagsOf(leaf) {
			if flag.Required {
				line = append(line, "--"+flag.Name+"="+good[flag.Name])
			}
		}
		lines[leaf] = line
	}
	return parser, lines
}

// allFlagsOf are all flags of a command but those that end it at once.
func allFlagsOf(leaf *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	for _, group := range leaf.AllFlags(false) {
		for _, flag := range group {
			if flag.Name != "help" && flag.Name != "version" {
				flags = append(flags, flag)
			}
		}
	}
	return flags
}

func TestNoFlagOfAnyCommandAnswersInTheWordsOfGo(t *testing.T) {
	t.Parallel()
	parser, lines := leaves(t)
	refused := 0
	try := func(about string, line ...string) {
		_, err := parser.Parse(line)
		if err == nil {
			return
		}
		refused++
		said := usageOf(err).Error()
		if found := goWords.FindString(said); found != "" {
			t.Errorf("sluice %q: %q is in the words of Go: %s", line, found, said)
		}
		if !strings.Contains(said, about) {
			t.Errorf("sluice %q does not name %s: %s", line, about, said)
		}
	}
	for leaf, line := range lines {
		for _, flag := range allFlagsOf(leaf) {
			name := "--" + flag.Name
			others := slices.DeleteFunc(slices.Clone(line), func(word string) bool { return strings.HasPrefix(word, name+"=") })
			others = others[:len(others):len(others)]
			if kind := flag.Target.Type().String(); kind != "string" && kind != "[]string" { // texts the command itself looks at
				for _, bad := range badValues {
					try(name, append(others, name+"="+bad)...)
				}
			}
			if !flag.IsBool() {
				try(name, append(others, name)...)
				try(name, append(others, name, "--version")...)
			}
		}
		for i, arg := range leaf.Positional {
			words := slices.IndexFunc(append(line, "-"), func(word string) bool { return word[0] == '-' })
			for _, bad := range badValues {
				broken := slices.Clone(line)
				if broken[words+i-len(leaf.Positional)] = bad; bad != "-" { // a flag that nobody knows
					try("<"+arg.Name+">", broken...)
				}
			}
		}
	}
	if refused < 500 {
		t.Errorf("%d refusals are too few: are all commands there?", refused)
	}
}

func TestWhatACommandItselfFindsWrongIsSaidWithoutTheWordsOfGo(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct{ line, says string }{
		{"serve --listen nope", `--listen: "nope" is not an address, write it like --listen=127.0.0.1:8080`},
		{"serve --listen 127.0.0.1:0 --ops-listen 127.0.0.1:99999", `--ops-listen: "127.0.0.1:99999" is not an address`},
		{"serve --listen 127.0.0.1:0 --admin-listen a:b:c", `--admin-listen: "a:b:c" is not an address`},
		{"serve --listen " + taken.Addr().String(), "a second sluice on this machine needs a --listen of its own"},
		{"serve --otlp-url nope", "--otlp-url: write it like http://collector:4318"},
		{"serve --trusted-proxies nope", `"nope": write an address or a range, like 10.0.0.7`},
		{"serve --origins nope", `"nope": write scheme and host`},
		{"crowd --sale x --guests --source nope", `--source "nope": write local addresses`},
		{"crowd --sale x --guests --code-file /nope/nope", "--code-file: /nope/nope cannot be read (no such file or directory)"},
		{"sale show x --url nope", "--url: write it like http://127.0.0.1:8080"},
		{"migrate --database-url nope", "write it as mysql://"},
		{"migrate --database-url mysql://u@h/d?tls=nope", "database URL"},
		{"migrate --database-url postgres://u@h/d?sslmode=nope", "database URL"},
		{"migrate --database-url postgres://u@h:x/d", "database URL"},
		{"verify x --commitment nope", `--commitment: "nope" is not a hash, write it with 64 digits`},
	} {
		args := strings.Fields(test.line)
		if args[0] == "serve" {
			args = append(args, "--data-dir", t.TempDir())
			if !strings.Contains(test.line, "--ops-listen") {
				args = append(args, "--ops-listen=")
			}
		}
		code, _, said := sluice(t, "", args...)
		if code == exitOK || !strings.Contains(said, test.says) || goWords.MatchString(said) {
			t.Errorf("sluice %s exits with %d and says %q, want %q in it and no word of Go", test.line, code, said, test.says)
		}
	}
}

func TestASaleIsExtendedToATimeOrByADuration(t *testing.T) {
	t.Parallel()
	sale := sampleSale()
	planned := time.UnixMilli(sale["closes_at"].(int64)).UTC()
	url, last := admin(t, 200, sale)
	for given, sent := range map[string]string{
		"2026-12-01T13:30:00+08:00": "2026-12-01T13:30:00+08:00",
		"+30m":                      planned.Add(30 * time.Minute).Format(time.RFC3339Nano),
		"+1h30m":                    planned.Add(90 * time.Minute).Format(time.RFC3339Nano),
	} {
		code, _, said := sluice(t, "", "sale", "extend", "phone-x", "--closes-at", given, "--url", url)
		want(t, "exit code", code, 0)
		want(t, "standard error", said, "")
		var body struct {
			ClosesAt time.Time `json:"closes_at"`
		}
		if err := json.Unmarshal([]byte(last.body), &body); err != nil {
			t.Fatal(err)
		}
		wanted, err := time.Parse(time.RFC3339, sent)
		if err != nil {
			t.Fatal(err)
		}
		if last.path != "/api/v1/admin/sales/phone-x/extend" || !body.ClosesAt.Equal(wanted) {
			t.Errorf("%s: %s to %s, want %s", last.path, given, body.ClosesAt, wanted)
		}
	}
	for _, given := range []string{"30m", "+", "+0s", "+-5m", "++5m", "-5m", "tomorrow", "2026-12-01 13:30", "+30"} {
		code, _, said := sluice(t, "", "sale", "extend", "phone-x", "--closes-at="+given, "--url", url)
		want(t, "exit code of "+given, code, exitUsage)
		if !strings.Contains(said, "--closes-at: \""+given+"\" is not a time, write it like 2026-12-01T13:30:00+08:00, or like +30m") {
			t.Errorf("%s: said %q", given, said)
		}
	}

	delete(sale, "closes_at")
	code, _, said := sluice(t, "", "sale", "extend", "phone-x", "--closes-at", "+30m", "--url", url)
	want(t, "exit code without an end", code, exitFailed)
	if !strings.Contains(said, "it has no closing time") {
		t.Errorf("said %q", said)
	}
}
