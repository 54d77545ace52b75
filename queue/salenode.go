package queue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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

func (n *node) empty() bool {
	return n.null || n.scalar == "" && len(n.children) == 0 && len(n.list) == 0 || n.scalar == "0"
}

// parseNode reads YAML, of which JSON is a part.
func parseNode(data []byte) (*node, error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, &Error{Code: Invalid, Message: "the sale file cannot be read: " + firstLine(err)}
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf("the sale file must hold one sale, not %d", bodies(file))}
	}
	b := &builder{}
	root := b.node(file.Docs[0].Body, "", 0)
	if b.err != nil {
		return nil, b.err
	}
	if root.kind != "fields" {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf(
			"line %d: the sale file must be fields like id, items and opens_at, not a %s", root.line, root.kind)}
	}
	return root, nil
}

func bodies(file *ast.File) int {
	n := 0
	for _, doc := range file.Docs {
		if doc.Body != nil {
			n++
		}
	}
	return n
}

// firstLine is the library's error without the excerpt of the file that follows it: "[3:4] what is wrong".
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if place, what, found := strings.Cut(strings.TrimPrefix(line, "["), "] "); found {
		row, _, _ := strings.Cut(place, ":")
		return "line " + row + ": " + what
	}
	return line
}

// builder turns the library's tree into nodes. Anchors, aliases and tags are refused: a sale file has no use for them,
// and aliases can make a small file huge.
type builder struct{ err error }

func (b *builder) node(v ast.Node, path string, depth int) *node {
	n := &node{line: v.GetToken().Position.Line, path: path}
	if depth > 8 {
		b.fail(n, "is nested too deeply")
		return n
	}
	switch v := v.(type) {
	case *ast.MappingNode:
		b.fields(n, v.Values, depth)
	case *ast.MappingValueNode:
		b.fields(n, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		n.kind, n.list = "list", []*node{}
		for i, entry := range v.Values {
			n.list = append(n.list, b.node(entry, fmt.Sprintf("%s[%d]", path, i), depth+1))
		}
	case *ast.StringNode:
		n.kind, n.scalar = "text", v.Value
	case *ast.LiteralNode:
		n.kind, n.scalar = "text", v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode:
		n.kind, n.scalar = "number", v.GetToken().Value
	case *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.scalar = "word", v.GetToken().Value
	case *ast.NullNode:
		n.kind, n.null = "nothing", true
	default:
		b.fail(n, fmt.Sprintf("uses %s, which a sale file cannot have", strings.ToLower(v.Type().String())))
	}
	return n
}

func (b *builder) fields(n *node, values []*ast.MappingValueNode, depth int) {
	n.kind, n.children = "fields", []child{}
	for _, v := range values {
		name := v.Key.GetToken().Value
		path := name
		if n.path != "" {
			path = n.path + "." + name
		}
		if n.child(name) != nil {
			b.fail(&node{line: v.Key.GetToken().Position.Line, path: path}, "is there twice")
			return
		}
		c := child{name: name, line: v.Key.GetToken().Position.Line, value: b.node(v.Value, path, depth+1)}
		n.children = append(n.children, c)
	}
	if len(n.children) > 0 {
		n.line = n.children[0].line
	}
}

func (b *builder) fail(n *node, problem string) {
	if b.err == nil {
		b.err = fieldError(n, problem)
	}
}

// fieldError names the line and the field, and says what is wrong with it.
func fieldError(n *node, problem string) error {
	return &Error{Code: Invalid, Message: fmt.Sprintf("line %d: %s %s", n.line, n.path, problem), Line: n.line, Field: n.path}
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
		d.fail(n, fmt.Sprintf("must be a time from %s to %s, written like 90s, 10m or 1h30m, not %q", least, most, n.scalar))
	}
	return Duration(v)
}
