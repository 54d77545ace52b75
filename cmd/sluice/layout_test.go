package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// mayImport says which packages of the tree a package may import, as docs/architecture.md draws it: a grab goes down
// from server to lua, an order up from worker to queue, and nothing goes round. Only the commands see everything.
func mayImport() map[string][]string {
	return map[string][]string{
		"cmd/sluice":              {"server", "hub", "queue", "lua", "worker", "web", "doctor", "trace", "words"},
		"deploy/control":          {},
		"deploy/services":         {},
		"deploy/faults":           {"server", "deploy/control"},
		"deploy/licences":         {},
		"deploy/lobby":            {"queue"},
		"deploy/stack":            {"deploy/control"},
		"docs":                    {},
		"docs/examples/passes/go": {},
		"docs/spec":               {"docs"},
		"server":                  {"queue", "hub", "web", "fault", "trace", "words"},
		"hub":                     {},
		"queue":                   {"lua", "fault", "trace", "words"},
		"lua":                     {},
		"worker":                  {"queue", "fault", "trace", "words"},
		"doctor":                  {"queue", "server", "worker", "words"},
		"fault":                   {},
		"trace":                   {},
		"web":                     {},
		"words":                   {},
	}
}

// library says where a library of others may be imported, so that replacing one stays a matter of one package.
type library struct {
	prefix   string   // its module, and with it all its packages
	packages []string // packages of the tree that may import it
	files    string   // if set, the only files of cmd/sluice that may
}

func libraries() []library {
	return []library{
		{prefix: "github.com/labstack/echo", packages: []string{"server"}},
		{prefix: "github.com/gorilla/websocket", packages: []string{"hub", "server", "cmd/sluice", "deploy/faults", "deploy/stack"}, files: "crowd*.go"},
		{prefix: "github.com/redis/go-redis", packages: []string{"queue", "cmd/sluice", "deploy/faults", "deploy/stack"}},
		{prefix: "github.com/alicebob/miniredis", packages: []string{"cmd/sluice"}},
		{prefix: "github.com/rabbitmq/amqp091-go", packages: []string{"worker", "cmd/sluice", "deploy/services", "deploy/faults", "deploy/stack"}},
		{prefix: "github.com/jmoiron/sqlx", packages: []string{"worker", "cmd/sluice"}},
		{prefix: "github.com/pressly/goose", packages: []string{"worker"}},
		{prefix: "github.com/go-sql-driver/mysql", packages: []string{"worker", "deploy/services", "deploy/faults", "deploy/stack"}},
		{prefix: "github.com/jackc/pgx", packages: []string{"worker", "deploy/services"}},
		{prefix: "modernc.org/sqlite", packages: []string{"worker"}},
		{prefix: "github.com/golang-jwt/jwt", packages: []string{"server", "cmd/sluice", "docs/examples/passes/go"}},
		{prefix: "go.opentelemetry.io", packages: []string{"trace"}},
		{prefix: "github.com/alecthomas/kong", packages: []string{"cmd/sluice"}},
		{prefix: "github.com/santhosh-tekuri/jsonschema", packages: []string{"docs/spec"}},
	}
}

// listed is what `go list -json` tells of a package, as far as it matters here; imports of tests are told apart.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
}

func TestPackagesImportOnlyWhatTheLayoutLetsThem(t *testing.T) {
	t.Parallel()
	packages, err := list("./...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		for _, sentence := range directionsBroken(p) {
			t.Error(sentence)
		}
		for _, sentence := range librariesBroken(p, fileImports) {
			t.Error(sentence)
		}
	}
}

func TestTheLayoutNamesNoPackageThatIsNotThere(t *testing.T) {
	t.Parallel()
	packages, err := list("./...")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, p := range packages {
		there = append(there, inTree(p.ImportPath))
	}
	for name := range mayImport() {
		if !slices.Contains(there, name) {
			t.Errorf("The layout names %s, which is not there.", name)
		}
	}
}

func TestAWrongImportIsNamedInASentence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    listed
		want string
	}{
		{listed{ImportPath: "sluice/hub", Imports: []string{"fmt", "sluice/queue"}}, "hub imports queue"},
		{listed{ImportPath: "sluice/queue", Imports: []string{"sluice/server"}}, "queue imports server"},
		{listed{ImportPath: "sluice/helpers"}, "helpers is not in the layout"},
		{listed{ImportPath: "sluice/server", Imports: []string{"github.com/redis/go-redis/v9"}}, "server imports github.com/redis/go-redis/v9"},
		{listed{ImportPath: "sluice/cmd/sluice", GoFiles: []string{"serve.go"}, Imports: []string{"github.com/gorilla/websocket"}}, "serve.go"},
	} {
		everyFile := func(listed, string) ([]string, error) { return c.p.Imports, nil }
		got := strings.Join(append(directionsBroken(c.p), librariesBroken(c.p, everyFile)...), "\n")
		if !strings.Contains(got, c.want) {
			t.Errorf("for %+v the test would say %q, want something with %q", c.p, got, c.want)
		}
	}
}

// directionsBroken returns a sentence for every import against the directions of the layout.
func directionsBroken(p listed) []string {
	name := inTree(p.ImportPath)
	allowed, ok := mayImport()[name]
	if !ok {
		return []string{fmt.Sprintf("Package %s is not in the layout: give it a place there, and a reason in docs/architecture.md.", name)}
	}
	var sentences []string
	for _, imported := range p.Imports {
		other := inTree(imported)
		if other == imported || slices.Contains(allowed, other) {
			continue
		}
		may := "nothing of the tree"
		if len(allowed) > 0 {
			may = "only " + strings.Join(allowed, ", ")
		}
		sentences = append(sentences, fmt.Sprintf("Package %s imports %s, but may import %s.", name, other, may))
	}
	return sentences
}

// librariesBroken returns a sentence for every library that is imported where it does not belong. imports returns what
// a file of the package imports.
func librariesBroken(p listed, imports func(p listed, file string) ([]string, error)) []string {
	name := inTree(p.ImportPath)
	var sentences []string
	for _, lib := range libraries() {
		i := slices.IndexFunc(p.Imports, lib.holds)
		if i < 0 {
			continue
		}
		if !slices.Contains(lib.packages, name) {
			sentences = append(sentences, fmt.Sprintf("Package %s imports %s, which belongs to %s only.",
				name, p.Imports[i], strings.Join(lib.packages, ", ")))
			continue
		}
		if lib.files == "" || !strings.HasPrefix(name, "cmd/") {
			continue
		}
		for _, file := range p.GoFiles {
			if matched, _ := path.Match(lib.files, file); matched {
				continue
			}
			imported, err := imports(p, file)
			if err != nil {
				sentences = append(sentences, fmt.Sprintf("The imports of %s/%s cannot be read: %v.", name, file, err))
			} else if slices.ContainsFunc(imported, lib.holds) {
				sentences = append(sentences, fmt.Sprintf("File %s/%s imports %s, which in this package belongs to %s only.",
					name, file, lib.prefix, lib.files))
			}
		}
	}
	return sentences
}

// holds says whether a package belongs to the library.
func (l library) holds(imported string) bool {
	return imported == l.prefix || strings.HasPrefix(imported, l.prefix+"/")
}

// fileImports asks for one file alone, as a package of its own.
func fileImports(p listed, file string) ([]string, error) {
	packages, err := list(path.Join(p.Dir, file))
	if err != nil {
		return nil, err
	}
	return packages[0].Imports, nil
}

// inTree returns a package's path below the module; that of a package of others comes back as it is.
func inTree(importPath string) string { return strings.TrimPrefix(importPath, "sluice/") }

// list asks the go command about packages of the module.
func list(patterns ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-e", "-json=ImportPath,Dir,GoFiles,Imports"}, patterns...)...)
	cmd.Dir = "../.."
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", strings.Join(patterns, " "), err, complaint.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(patterns, " "), err)
		}
		packages = append(packages, p)
	}
}
