package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"sluice/docs"
)

const (
	openapi  = "openapi.yaml"
	asyncapi = "asyncapi.yaml"
	// base is where the documents are to one another.
	base = "https://sluice.invalid/"
)

// library is both documents, and the schemas that were compiled of them. It is safe for concurrent use.
type library struct {
	documents map[string]any // by name

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema // by location
}

func newLibrary() (*library, error) {
	l := &library{documents: map[string]any{}, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	l.compiler.DefaultDraft(jsonschema.Draft2020)
	l.compiler.AssertFormat()
	for _, name := range []string{openapi, asyncapi} {
		text, err := docs.Specifications.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		document, err := fromYAML(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		shut(document)
		if err := l.compiler.AddResource(base+name, document); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		l.documents[name] = document
	}
	return l, nil
}

// fromYAML reads a document as if it had been written in JSON.
func fromYAML(text []byte) (any, error) {
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	data, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// shut has all schemas refuse fields that they do not name. It is said where a schema is used, and not in what that is put
// together of: there the fields of the other parts would be unknown.
func shut(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			shut(item)
		}
	case map[string]any:
		for name, item := range v {
			switch name {
			case "schema", "payload", "items", "additionalProperties":
				shutOne(item)
			case "properties":
				if fields, ok := item.(map[string]any); ok {
					for _, field := range fields {
						shutOne(field)
					}
				}
			}
			shut(item)
		}
	}
}

func shutOne(schema any) {
	if s, ok := schema.(map[string]any); ok {
		s["unevaluatedProperties"] = false
	}
}

// place is somewhere in a document.
type place struct {
	library *library
	name    string // of the document
	pointer string // RFC 6901
	value   any
}

func (l *library) root(name string) place { return place{l, name, "", l.documents[name]} }

// at goes down by those keys. Where there is nothing, value is nil. References on the way are followed, unless it is a schema's.
func (p place) at(keys ...string) place {
	for _, key := range keys {
		fields, _ := p.value.(map[string]any)
		p.value = fields[key]
		p.pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
		if key != "schema" && key != "payload" {
			p = p.followed()
		}
	}
	return p
}

// followed is where a reference leads.
func (p place) followed() place {
	fields, _ := p.value.(map[string]any)
	ref, ok := fields["$ref"].(string)
	if !ok {
		return p
	}
	name, pointer, _ := strings.Cut(ref, "#/")
	if name == "" {
		name = p.name
	}
	there := p.library.root(name)
	for key := range strings.SplitSeq(pointer, "/") {
		there = there.at(strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
	}
	return there
}

func (p place) there() bool { return p.value != nil }

// text is a string at that key, "" for none.
func (p place) text(key string) string {
	fields, _ := p.value.(map[string]any)
	text, _ := fields[key].(string)
	return text
}

// keys are those of an object.
func (p place) keys() []string {
	fields, _ := p.value.(map[string]any)
	var keys []string
	for key := range fields {
		keys = append(keys, key)
	}
	return keys
}

// hold says whether a value is as the schema at this place wants it.
func (p place) hold(value any) error {
	schema, err := p.compile()
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s#%s: %w", p.name, p.pointer, err)
	}
	return nil
}

// holdJSON is hold for JSON text.
func (p place) holdJSON(text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	return p.hold(value)
}

func (p place) compile() (*jsonschema.Schema, error) {
	l, location := p.library, base+p.name+"#"+p.pointer
	l.mu.Lock()
	defer l.mu.Unlock()
	schema, ok := l.compiled[location]
	if !ok {
		var err error
		if schema, err = l.compiler.Compile(strings.NewReplacer("{", "%7B", "}", "%7D").Replace(location)); err != nil {
			return nil, fmt.Errorf("compile %s: %w", location, err)
		}
		l.compiled[location] = schema
	}
	return schema, nil
}
