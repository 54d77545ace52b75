package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// inPages are the packages of which code comes to be in the built pages; the build leaves nothing else of others there.
func inPages() []string {
	return []string{"preact", "@preact/signals", "@preact/signals-core", "uplot", "uqr"}
}

// packages returns what of npm is in the pages, and what only builds and tests them, by the lock, which also names the licences.
func packages() (pages, tools []dependency, err error) {
	data, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		return nil, nil, fmt.Errorf("read the lock of npm: %w", err)
	}
	var lock struct {
		Packages map[string]struct{ Version, License string }
	}
	if err := json.Unmarshal(data, &lock); err != nil {
		return nil, nil, fmt.Errorf("read the lock of npm: %w", err)
	}
	for path, p := range lock.Packages {
		if path == "" {
			continue // ours
		}
		name := path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
		d := dependency{name, p.Version, p.License}
		part := &tools
		for _, page := range inPages() {
			if name == page {
				part = &pages
			}
		}
		*part = append(*part, d)
	}
	return pages, tools, nil
}
