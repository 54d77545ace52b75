package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// book is all that was measured, as docs/performance.json keeps it. The tables of docs/performance.md are made of it, so
// that a run of one figure leaves those of the others as they are.
type book struct {
	root    string
	Machine machine  `json:"machine"`
	Results []result `json:"results"`
}

func readBook(root string) (*book, error) {
	k := &book{root: root}
	data, err := os.ReadFile(k.path("performance.json"))
	if errors.Is(err, os.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	return k, json.Unmarshal(data, k)
}

func (k *book) path(parts ...string) string {
	return filepath.Join(append([]string{k.root, "docs"}, parts...)...)
}

// put replaces what an earlier run found for the figure. The results stay in the order of figures.
func (k *book) put(r result) {
	var results []result
	for _, f := range figures() {
		if f.name == r.Name {
			results = append(results, r)
			continue
		}
		for _, old := range k.Results {
			if old.Name == f.name {
				results = append(results, old)
			}
		}
	}
	k.Results = results
}

// write puts everything into docs: the values, the tables between the marks of docs/performance.md, and the charts.
func (k *book) write(ctx context.Context, b *bench) error {
	k.Machine = b.machine(ctx)
	data, err := json.MarshalIndent(k, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(k.path("performance.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	text, err := os.ReadFile(k.path("performance.md"))
	if err != nil {
		return err
	}
	page := string(text)
	if page, err = between(page, "promises", k.promises()); err != nil {
		return err
	}
	for _, r := range k.Results {
		block := fmt.Sprintf("Measured %s at commit %s, in %.0f s, on %s.\n\n%s", r.At.Format("2006-01-02"), r.Commit, r.Took, r.Machine, r.table())
		if page, err = between(page, r.Name, block); err != nil {
			return err
		}
		if len(r.Charts) > 0 {
			if err := drawCharts(r.Charts, k.path("images", r.Name+".svg")); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(k.path("performance.md"), []byte(page), 0o644)
}

// between replaces what stands between two marks of a page.
func between(page, name, block string) (string, error) {
	begin, end := "<!-- bench:"+name+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("docs/performance.md has no mark %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("docs/performance.md: the part %s has no end", name)
	}
	return before + begin + "\n" + strings.TrimSpace(block) + "\n\n" + end + after, nil
}

// promises is the table of what was promised, with what was measured.
func (k *book) promises() string {
	var text strings.Builder
	m := k.Machine
	fmt.Fprintf(&text, "Everything, load included, runs on one machine; the tables below say on which processor. The last run: %s, %s, %s; %s.\n\n", m.name(), m.Memory, m.System,
		strings.Join(m.Versions, ", "))
	text.WriteString("| promised: measured | |\n|---|---|\n")
	for _, r := range k.Results {
		for _, p := range r.Promises {
			verdict := "kept"
			if !p.Kept {
				verdict = "**not kept**"
			}
			fmt.Fprintf(&text, "| %s | %s |\n", p.Text, verdict)
		}
	}
	return text.String()
}
