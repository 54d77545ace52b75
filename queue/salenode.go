package queue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/words"
)

// node is one value of a sale file with the place where it stands, so that an error can name both.
type node struct {
	line     int
	path     string // like line.rate or items[1].stock
	scalar   string
	null     bool
	children []child // of a mapping, in the order of the file
	list     []*node // of a sequence
	kind     string  // "text", "number", "list", "fields", …: what the person wrote, in their words
}

type child struct {
	name  string
	line  int
	value *node
}

// child returns the value of a field, nil when it is not there.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	for _, c := range n.children {
		if c.name == name {
			return c.value
		}
	}
	return nil
}

// parseNode reads YAML, of which JSON is a part.
func parseNode(data []byte) (*node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil, &Error{Code: Invalid, Message: "the sale file is empty"}
	}
	if err == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		return nil, &Error{Code: Invalid, Message: "the sale file must hold one sale, and there is more after it"}
	}
	if err != nil {
		return nil, &Error{Code: Invalid, Message: "the sale file cannot be read: " + firstLine(err)}
	}
	b := &builder{}
	root := b.node(&document, "", 0)
	if b.err != nil {
		return nil, b.err
	}
	if root.kind != "fields" {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf(
			"line %d: the sale file must be fields like id, items and opens_at, not a %s", root.line, root.kind)}
	}
	return root, nil
}

// firstLine is the library's error without its name.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	for _, prefix := range []string{"yaml: ", "go-yaml: "} {
		line = strings.TrimPrefix(line, prefix)
	}
	return line
}

// builder turns the library's tree into nodes. Aliases are refused: a sale file has no use for them, and they can make a
// small file huge.
type builder struct{ err error }

func (b *builder) node(v *yaml.Node, path string, depth int) *node {
	n := &node{line: v.Line, path: path}
	if depth > 8 {
		b.fail(n, "is nested too deeply")
		return n
	}
	switch v.Kind {
	case yaml.DocumentNode:
		if len(v.Content) == 1 {
			return b.node(v.Content[0], path, depth)
		}
		n.kind, n.null = "nothing", true
	case yaml.MappingNode:
		b.fields(n, v.Content, depth)
	case yaml.SequenceNode:
		n.kind, n.list = "list", []*node{}
		for i, entry := range v.Content {
			n.list = append(n.list, b.node(entry, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case yaml.ScalarNode:
		n.scalar = v.Value
		switch v.ShortTag() {
		case "!!int", "!!float":
			n.kind = "number"
		case "!!null":
			n.kind, n.null = "nothing", true
		default: // a date or a word like yes is the text that was written
			n.kind = "text"
		}
	default:
		b.fail(n, "uses an alias, which a sale file cannot have")
	}
	return n
}

// fields reads the keys and values of a mapping.
func (b *builder) fields(n *node, content []*yaml.Node, depth int) {
	n.kind, n.children = "fields", []child{}
	for i := 0; i+1 < len(content); i += 2 {
		key, value := content[i], content[i+1]
		name, path := key.Value, key.Value
		if n.path != "" {
			path = n.path + "." + name
		}
		if n.child(name) != nil {
			b.fail(&node{line: key.Line, path: path}, "is there twice")
			return
		}
		n.children = append(n.children, child{name: name, line: key.Line, value: b.node(value, path, depth+1)})
	}
}

func (b *builder) fail(n *node, problem string) {
	if b.err == nil {
		b.err = fieldError(n, problem)
	}
}

// longestFault is how much is said of what is wrong in a file, in bytes: what was found there may be as long as the file.
const longestFault = 600

// fieldError names the line and the field, and says what is wrong with it.
func fieldError(n *node, problem string) error {
	message := fmt.Sprintf("line %d: %s %s", n.line, n.path, problem)
	if len(message) > longestFault {
		message = strings.ToValidUTF8(message[:longestFault], "") + "…"
	}
	return &Error{Code: Invalid, Message: message, Line: n.line, Field: n.path}
}

// decoder reads nodes into values and keeps the first thing that is wrong.
type decoder struct{ err error }

func (d *decoder) fail(n *node, problem string) {
	if d.err == nil {
		d.err = fieldError(n, problem)
	}
}

// fields reads a mapping with one function a field; others are refused by name. check runs at the end with a function
// that fails when a field is not there.
func (d *decoder) fields(n *node, known map[string]func(*node), check func(missing func(string))) {
	if n.children == nil {
		d.fail(n, "must be fields, not a "+n.kind)
		return
	}
	for _, c := range n.children {
		read := known[c.name]
		if read == nil {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			d.fail(&node{line: c.line, path: c.value.path}, "is not a known field; there are "+strings.Join(names, ", "))
			return
		}
		read(c.value)
	}
	if check == nil {
		return
	}
	check(func(name string) {
		if n.child(name) == nil && d.err == nil {
			path := name
			if n.path != "" {
				path = n.path + "." + name
			}
			d.fail(&node{line: n.line, path: path}, "is missing")
		}
	})
}

func (d *decoder) list(n *node) []*node {
	if n.list == nil {
		d.fail(n, "must be a list, not a "+n.kind)
	}
	return n.list
}

// text reads a text of one line; a number or a word counts as the text that was written.
func (d *decoder) text(n *node) string {
	if n.list != nil || n.children != nil || n.null {
		d.fail(n, "must be text, not "+n.kind)
	}
	if strings.ContainsFunc(n.scalar, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		d.fail(n, "must be one line without control characters")
	}
	return n.scalar
}

func (d *decoder) int(n *node, least, most int64) int64 {
	v, err := strconv.ParseInt(strings.ReplaceAll(n.scalar, "_", ""), 10, 64)
	if n.kind != "number" || err != nil || v < least || v > most {
		bound := fmt.Sprintf("from %d to %d", least, most)
		if most == math.MaxInt64 {
			bound = fmt.Sprintf("of at least %d", least)
		}
		d.fail(n, fmt.Sprintf("must be a whole number %s, not %q", bound, n.scalar))
	}
	return v
}

func (d *decoder) float(n *node, least, most float64) float64 {
	v, err := strconv.ParseFloat(n.scalar, 64)
	if n.kind != "number" || err != nil || v < least || v > most {
		d.fail(n, fmt.Sprintf("must be a number from %g to %g, not %q", least, most, n.scalar))
	}
	return v
}

func (d *decoder) duration(n *node, least, most time.Duration) Duration {
	v, err := time.ParseDuration(n.scalar)
	if err != nil || v < least || v > most {
		d.fail(n, fmt.Sprintf("must be a time from %s to %s, written like 90s, 10m or 1h30m, not %q", words.Duration(least), words.Duration(most), n.scalar))
	}
	return Duration(v)
}
