// Command licences writes docs/dependencies.md: what of others is in the program, in its pages, and in its tests and tools
// only, and under which licence each is. It fails when something is under a licence that does not go with that of Sluice,
// or under none that it knows. It reads go.mod, the module cache, the lock of npm and node_modules, and nothing else.
//
//	go run ./deploy/licences           writes docs/dependencies.md
//	go run ./deploy/licences --check   fails when it would be another
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

const list = "docs/dependencies.md"

func main() {
	check := flag.Bool("check", false, "change nothing, and fail when the list is out of date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	program, rest, err := modules()
	if err != nil {
		return err
	}
	pages, tools, err := packages()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("# Dependencies\n\nWhat of others is in Sluice, which itself is under Apache-2.0. `make licences` writes this list, and `make lint` holds that it is\n" +
		"current and that everything on it may be used together.\n")
	for _, part := range []struct {
		title string
		deps  []dependency
	}{
		{"In the program", program}, {"In its pages", pages}, {"In tests and tools of Go only", rest}, {"In tests and tools of the pages only", tools},
	} {
		write(&b, part.title, part.deps)
		for _, d := range part.deps {
			if problem := d.problem(); problem != "" {
				err = fmt.Errorf("%s %s", d.name, problem)
			}
		}
	}
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(list, b.Bytes(), 0o644) //nolint:gosec // a document
	}
	if there, err := os.ReadFile(list); err != nil || !bytes.Equal(there, b.Bytes()) {
		return fmt.Errorf("%s is out of date: run make licences", list)
	}
	return nil
}

func write(b *bytes.Buffer, title string, deps []dependency) {
	fmt.Fprintf(b, "\n## %s\n\n| what | version | licence |\n|---|---|---|\n", title)
	slices.SortFunc(deps, func(a, b dependency) int { return strings.Compare(a.name+a.version, b.name+b.version) })
	for _, d := range slices.Compact(deps) {
		fmt.Fprintf(b, "| %s | %s | %s |\n", d.name, d.version, d.licence)
	}
}

// dependency is something of others.
type dependency struct{ name, version, licence string }

// allowed are the licences that go with Apache-2.0, each by its SPDX name. MPL-2.0 concerns its own files only.
func allowed() []string {
	return []string{
		"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Python-2.0",
		"CC-BY-4.0", "Unlicense", "Zlib",
	}
}

// problem is why the dependency may not be used, "" when it may. Of several licences joined by OR one is enough.
func (d dependency) problem() string {
	if d.licence == "" {
		return "is under no licence that is known"
	}
	for choice := range strings.SplitSeq(strings.Trim(d.licence, "()"), " OR ") {
		parts := strings.Split(choice, " AND ")
		if !slices.ContainsFunc(parts, func(l string) bool { return !slices.Contains(allowed(), strings.Trim(l, "() ")) }) {
			return ""
		}
	}
	return "is under " + d.licence + ", which does not go with Apache-2.0"
}
