package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v4"
)

// configFile is the file of --config: flags by their names, as YAML. It stands behind the command line and the environment, and
// before the defaults. It may have flags of all commands; each takes its own from it.
type configFile struct {
	path   string // "" = there is none
	values map[string]string
	err    error // of reading it
}

// Resolve is what the file has for a flag; nil when that is nothing.
func (f *configFile) Resolve(c *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if f.path == "" {
		if f.path = configPath(c); f.path == "" {
			return nil, nil
		}
		f.values, f.err = readConfig(f.path)
	}
	value, ok := f.values[flag.Name]
	if !ok || goesFirst(c, flag) {
		return nil, nil
	}
	return value, nil
}

// shadowed are the flags that the file has in vain.
func (f *configFile) shadowed(c *kong.Context) []string {
	var names []string
	for _, flag := range c.Flags() {
		if _, ok := f.values[flag.Name]; ok && goesFirst(c, flag) {
			names = append(names, flag.Name)
		}
	}
	slices.Sort(names)
	return names
}

// goesFirst says whether a flag, or the one that stands for the same, is given where that counts more than the file.
func goesFirst(c *kong.Context, flag *kong.Flag) bool {
	return slices.ContainsFunc(c.Flags(), func(other *kong.Flag) bool {
		return (other == flag || twins(flag.Name, other.Name)) && (inEnvironment(other) || onCommandLine(c, other))
	})
}

func inEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(name string) bool { return os.Getenv(name) != "" })
}

func onCommandLine(c *kong.Context, flag *kong.Flag) bool {
	return slices.ContainsFunc(c.Path, func(p *kong.Path) bool { return p.Flag == flag && !p.Resolved })
}

// twins says whether one flag is for the value of the other and one for a file with it: who gives either has given both.
func twins(one, other string) bool { return one+"-file" == other || other+"-file" == one }

// configPath is what --config or its variable says.
func configPath(c *kong.Context) string {
	for _, flag := range c.Model.Flags {
		if flag.Name == "config" {
			path, _ := c.FlagValue(flag).(string)
			return path
		}
	}
	return ""
}

// readConfig takes the values as text, whatever kind of scalar they are, and lists with commas between.
func readConfig(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read --config: %w", err)
	}
	var file yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if err := documents.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("--config %s is no YAML%s", path, lineOf(err))
	}
	if err := documents.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("--config %s has something behind a line of ---, which nobody would read", path)
	}
	if len(file.Content) == 0 || file.Content[0].Tag == "!!null" {
		return nil, nil // nothing but comments
	}
	lines := file.Content[0]
	if lines.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("--config %s must have lines like %q", path, "limit-user: 20/s")
	}
	values := map[string]string{}
	for pair := range slices.Chunk(lines.Content, 2) {
		name := pair[0].Value
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" { // it may be a secret
			return nil, fmt.Errorf("--config %s, line %d: write lines like %q", path, pair[0].Line, "limit-user: 20/s")
		}
		if _, twice := values[name]; twice {
			return nil, fmt.Errorf("--config %s, line %d: %s is there twice", path, pair[0].Line, name)
		}
		if values[name], err = textOf(pair[1]); err != nil {
			return nil, fmt.Errorf("--config %s, line %d: %s: %w", path, pair[0].Line, name, err)
		}
	}
	return values, nil
}

// lineOf is where the parser came to a stop. What it says besides may repeat what is there, a secret for instance.
func lineOf(err error) string {
	var at *yaml.LoadError
	if !errors.As(err, &at) || at.Mark.Line == 0 {
		return ""
	}
	return fmt.Sprintf(": line %d", at.Mark.Line)
}

func textOf(node *yaml.Node) (string, error) {
	switch {
	case node.Kind == yaml.ScalarNode && node.Tag != "!!null":
		return node.Value, nil
	case node.Kind == yaml.SequenceNode:
		var texts []string
		for _, each := range node.Content {
			if each.Kind != yaml.ScalarNode || strings.Contains(each.Value, ",") {
				return "", errors.New("a list must have plain values without commas")
			}
			texts = append(texts, each.Value)
		}
		return strings.Join(texts, ","), nil
	}
	return "", errors.New("give a value or a list of values, or leave the line out")
}

// Validate refuses a file that cannot be read, and names that no command has: a setting that is misspelt would quietly stay as
// it is.
func (f *configFile) Validate(app *kong.Application) error {
	if f.err != nil {
		return f.err
	}
	known := map[string]bool{}
	var learn func(*kong.Node)
	learn = func(node *kong.Node) {
		for _, flag := range node.Flags {
			known[flag.Name] = flag.Name != "help" && flag.Name != "version" && flag.Name != "config"
		}
		for _, child := range node.Children {
			learn(child)
		}
	}
	learn(app.Node)
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !known[name] {
			return fmt.Errorf("--config %s: no command has a flag --%s", f.path, name)
		}
	}
	return nil
}
