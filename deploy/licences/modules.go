package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modules returns those of which packages are in the program, and those that only tests and tools use.
func modules() (program, rest []dependency, err error) {
	program, err = modulesOf("./cmd/sluice")
	if err != nil {
		return nil, nil, err
	}
	all, err := modulesOf("-test", "./...", "tool")
	for _, d := range all {
		if !slices.Contains(program, d) {
			rest = append(rest, d)
		}
	}
	return program, rest, err
}

// modulesOf asks the go command for the modules of all packages that those named need, on the systems that Sluice is built for.
func modulesOf(patterns ...string) ([]dependency, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, patterns...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	seen := map[string]dependency{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module == nil || p.Module.Main || seen[p.Module.Path].name != "" {
			continue
		}
		licence, err := licenceIn(p.Module.Dir)
		if err != nil {
			return nil, err
		}
		seen[p.Module.Path] = dependency{p.Module.Path, p.Module.Version, licence}
	}
	var found []dependency
	for _, d := range seen {
		found = append(found, d)
	}
	return found, nil
}

// licenceIn finds the licences in the files of a module that are called like that.
func licenceIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look for a licence: %w", err)
	}
	var names []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("read a licence: %w", err)
		}
		for _, name := range licencesOf(string(text)) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(names, " AND "), nil
}
