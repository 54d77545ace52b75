package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEachThreatHasATestThatThereIs reads the tables of docs/security.md and docs/reliability.md.
func TestEachThreatHasATestThatThereIs(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			there[string(name[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"docs/security.md", "docs/reliability.md"} {
		rows := 0
		for line := range bytes.Lines(readFile(t, document)) {
			if !bytes.HasPrefix(line, []byte("| ")) || bytes.HasPrefix(line, []byte("| who ")) {
				continue
			}
			names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllSubmatch(line, -1)
			for _, name := range names {
				if !there[string(name[1])] {
					t.Errorf("%s names %s, which is not there", document, name[1])
				}
			}
			if len(names) > 0 {
				rows++
			} else if document == "docs/security.md" && !bytes.Contains(line, []byte("| by reading: ")) && !bytes.Contains(line, []byte("(left; ")) && !bytes.Contains(line, []byte("_test.go")) {
				t.Errorf("%s has a row without a test: %s", document, line)
			}
		}
		if rows < 40 {
			t.Errorf("%s has %d rows with a test", document, rows)
		}
	}
}
