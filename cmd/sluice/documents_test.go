package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are all Markdown files of the tree, by their path from its root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"node_modules", ".git", "bin"}, entry.Name()) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			texts[filepath.ToSlash(name)] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

var (
	linked  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	code    = regexp.MustCompile("(?s)```.*?```")
)

// anchors are the names by which the headings of a document are linked.
func anchors(text string) []string {
	var names []string
	for _, found := range heading.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 0x7f:
				return r
			}
			return -1
		}, strings.ToLower(found[1]))
		names = append(names, name)
	}
	return names
}

func TestEveryLinkOfADocumentLeadsSomewhereAndEveryDocumentIsReached(t *testing.T) {
	t.Parallel()
	texts := documents(t)
	reached, open := map[string]bool{"README.md": true}, []string{"README.md"}
	links := map[string][]string{}
	for document, text := range texts {
		for _, found := range linked.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
			if strings.Contains(found[1], ":") { // of another site, whose pages no test may ask for
				continue
			}
			path, anchor, _ := strings.Cut(found[1], "#")
			target := document
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(document), path))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", document, found[1])
			}
			if anchor != "" && !slices.Contains(anchors(texts[target]), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", document, found[1])
			}
			links[document] = append(links[document], target)
		}
	}
	for len(open) > 0 {
		for _, target := range links[open[0]] {
			if !reached[target] {
				reached[target] = true
				open = append(open, target)
			}
		}
		open = open[1:]
	}
	for document := range texts {
		if !reached[document] {
			t.Errorf("no link leads from README.md to %s", document)
		}
	}
	if len(links) < 10 {
		t.Errorf("only %d documents have links", len(links))
	}
}

func TestEveryFileThatADocumentNamesIsThere(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var tops []string
	for _, folder := range folders {
		if folder.IsDir() && folder.Name() != "bin" && !strings.HasPrefix(folder.Name(), ".") {
			tops = append(tops, folder.Name())
		}
	}
	// A folder of ours, and what is in it. What has a * or a {…} in it stands for many, and is looked up as a pattern.
	named := regexp.MustCompile(`(?:^|[\s` + "`" + `("./])((?:` + strings.Join(tops, "|") + `)/[\w./*-]*[\w*])`)
	count := 0
	for document, text := range documents(t) {
		if document == "CHANGELOG.md" { // what is said of the past stays
			continue
		}
		for _, found := range named.FindAllStringSubmatch(linked.ReplaceAllString(text, "]"), -1) {
			count++
			there, err := filepath.Glob(filepath.Join(root, found[1]))
			beside, _ := filepath.Glob(filepath.Join(root, filepath.Dir(document), found[1]))
			if err != nil || len(there)+len(beside) == 0 {
				t.Errorf("%s names %s, which is not there", document, found[1])
			}
		}
	}
	if count < 50 {
		t.Errorf("the documents name only %d files", count)
	}
}
