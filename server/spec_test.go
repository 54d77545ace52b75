package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/docs/spec"
	"sluice/queue"
)

// Every answer and every frame that a test of this package gets is held against docs/openapi.yaml and docs/asyncapi.yaml:
// over HTTP by the client that all use, and what a bench asks by itself. The tests here are about what is in the documents.

func TestMain(m *testing.M) {
	http.DefaultClient.Transport = specified{http.DefaultTransport}
	os.Exit(m.Run())
}

// specified is a transport that fails whoever gets an answer which is not as specified.
type specified struct{ http.RoundTripper }

// RoundTrip makes a request.
func (s specified) RoundTrip(req *http.Request) (*http.Response, error) {
	var asked []byte
	if req.GetBody != nil {
		if body, err := req.GetBody(); err == nil {
			asked, _ = io.ReadAll(body)
			body.Close()
		}
	}
	resp, err := s.RoundTripper.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if resp.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		return resp, nil // net/http said so, before anything of ours heard of it
	}
	documents, err := spec.Load()
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	answer := spec.Answer{
		Method: req.Method, Path: req.URL.Path, Asked: asked, Kind: req.Header.Get("Content-Type"),
		Status: resp.StatusCode, Header: resp.Header,
	}
	// Others may go on and on, or come a piece at a time.
	if kind := resp.Header.Get("Content-Type"); strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "json; charset=UTF-8") {
		answer.Body, err = io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(answer.Body))
	}
	if err := documents.Answered(answer); err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	return resp, nil
}

// specification is both documents.
func specification(t *testing.T) *spec.Spec {
	t.Helper()
	documents, err := spec.Load()
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// mustBeSpecified checks an answer that came without a client.
func (b *bench) mustBeSpecified(req *http.Request, asked []byte, a answer) {
	b.Helper()
	err := specification(b.T).Answered(spec.Answer{
		Method: req.Method, Path: req.URL.Path, Asked: asked, Kind: req.Header.Get("Content-Type"),
		Status: a.status, Header: a.header, Body: a.body,
	})
	if err != nil {
		b.Error(err)
	}
}

func TestEveryRouteIsInTheSpecification(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	var served []string
	for _, route := range b.server.echo.Router().Routes() {
		if route.Method == "echo_route_not_found" {
			continue
		}
		words := strings.Split(route.Path, "/")
		for i, word := range words {
			if name, ok := strings.CutPrefix(word, ":"); ok {
				words[i] = "{" + name + "}"
			}
		}
		served = append(served, route.Method+" "+strings.Join(words, "/"))
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		served = append(served, "GET "+path)
	}
	slices.Sort(served)
	if diff := cmp.Diff(served, specification(t).Routes()); diff != "" {
		t.Errorf("served, and in openapi.yaml: (-served +specified)\n%s", diff)
	}
}

func TestEveryCodeOfAProblemIsInTheSpecification(t *testing.T) {
	t.Parallel()
	var codes, reasons []string
	for _, file := range sources(t, ".", "../queue") {
		codes = append(codes, constantsOf(file, func(string) bool { return true }, "Code", "queue.Code")...)
		reasons = append(reasons, constantsOf(file, ast.IsExported, "Reason")...) // others are between the script and queue
	}
	slices.Sort(codes)
	slices.Sort(reasons)
	if diff := cmp.Diff(codes, specification(t).Codes()); diff != "" {
		t.Errorf("in the program, and in openapi.yaml: (-program +specified)\n%s", diff)
	}
	if diff := cmp.Diff(reasons, specification(t).Reasons()); diff != "" {
		t.Errorf("in the program, and in openapi.yaml: (-program +specified)\n%s", diff)
	}
}

func TestEveryFrameIsInTheSpecification(t *testing.T) {
	t.Parallel()
	types := map[string]bool{}
	for _, result := range []queue.Result{queue.Success, queue.Already, queue.SoldOut, queue.NoTurn, queue.NotOpen} {
		types[result.String()] = true // the frame that answers a grab is named after it
	}
	heard := map[string]bool{}
	for _, file := range sources(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if name, ok := n.Type.(*ast.Ident); ok && strings.HasSuffix(name.Name, "Frame") {
					if kind, ok := typeIn(n); ok {
						types[kind] = true
					}
				}
			case *ast.BinaryExpr: // frame.Type == "grab"
				if left, ok := n.X.(*ast.SelectorExpr); ok && left.Sel.Name == "Type" {
					if right, ok := n.Y.(*ast.BasicLit); ok {
						if of, ok := left.X.(*ast.Ident); ok && (of.Name == "frame" || of.Name == "hello") {
							heard[unquoted(right)] = true
						}
					}
				}
			}
			return true
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(types)), specification(t).TypesTold()); diff != "" {
		t.Errorf("what a node says, and asyncapi.yaml: (-program +specified)\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(heard)), specification(t).TypesSaid()); diff != "" {
		t.Errorf("what a node understands, and asyncapi.yaml: (-program +specified)\n%s", diff)
	}
}

func TestEveryCloseCodeIsInTheSpecification(t *testing.T) {
	t.Parallel()
	// 1006 is only ever counted. Those with a name of the library are 1000, 1011, 1012 and 1013.
	codes := map[int]bool{1000: true, 1011: true, 1012: true, 1013: true}
	for _, file := range sources(t, ".", "../hub") {
		ast.Inspect(file, func(n ast.Node) bool {
			if c, ok := n.(*ast.ValueSpec); ok && len(c.Values) == 1 && isCloseCode(c.Names[0].Name) {
				if value, ok := c.Values[0].(*ast.BasicLit); ok {
					if code, err := strconv.Atoi(value.Value); err == nil {
						codes[code] = true
					}
				}
			}
			return true
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(codes)), specification(t).CloseCodes()); diff != "" {
		t.Errorf("in the program, and in asyncapi.yaml: (-program +specified)\n%s", diff)
	}
}

func isCloseCode(name string) bool {
	return strings.HasPrefix(name, "close") || strings.HasPrefix(name, "code")
}

func TestWhatPagesHeardOfRealServersIsAsSpecified(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../web/test/frames/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	heard := map[string]bool{}
	for _, name := range files {
		text := must[[]byte](t)(os.ReadFile(name))
		var recording struct {
			Visits []struct {
				Connections []struct {
					Frames []struct {
						Heard, Said json.RawMessage
					} `json:"frames"`
				} `json:"connections"`
			} `json:"visits"`
		}
		if err := json.Unmarshal(text, &recording); err != nil {
			t.Fatal(err)
		}
		for _, visit := range recording.Visits {
			for _, connection := range visit.Connections {
				for _, frame := range connection.Frames {
					if frame.Said != nil {
						err = specification(t).Said(frame.Said)
					} else {
						err = specification(t).Told(frame.Heard)
						var f struct{ Type string }
						if json.Unmarshal(frame.Heard, &f) == nil {
							heard[f.Type] = true
						}
					}
					if err != nil {
						t.Errorf("%s: %v", filepath.Base(name), err)
					}
				}
			}
		}
	}
	for _, kind := range specification(t).TypesTold() {
		if !heard[kind] && kind != "stale" { // for which numbers must be lost
			t.Errorf("no recording has a frame of the type %s", kind)
		}
	}
}

func TestWhatIsNotSpecifiedIsNoticed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	good := b.send(http.MethodGet, "/api/v1/sales/solo", "")
	with := func(change func(a *answer)) answer {
		a := answer{good.status, good.header.Clone(), bytes.Clone(good.body)}
		change(&a)
		return a
	}
	for what, bad := range map[string]answer{
		"a status":              with(func(a *answer) { a.status = http.StatusTeapot }),
		"a field more":          with(func(a *answer) { a.body = bytes.Replace(a.body, []byte(`{`), []byte(`{"new":1,`), 1) }),
		"a field more, within":  with(func(a *answer) { a.body = bytes.Replace(a.body, []byte(`"line":{`), []byte(`"line":{"new":1,`), 1) }),
		"a field less":          with(func(a *answer) { a.body = bytes.Replace(a.body, []byte(`"state"`), []byte(`"title"`), 1) }),
		"a value":               with(func(a *answer) { a.body = bytes.Replace(a.body, []byte(`"open"`), []byte(`"ajar"`), 1) }),
		"a header less":         with(func(a *answer) { a.header.Del("ETag") }),
		"a header more":         with(func(a *answer) { a.header.Set("Retry-After", "1") }),
		"another type":          with(func(a *answer) { a.header.Set("Content-Type", "text/html") }),
		"no JSON":               with(func(a *answer) { a.body = a.body[1:] }),
		"a problem that is one": with(func(a *answer) { a.status = http.StatusNotFound }),
	} {
		err := specification(t).Answered(spec.Answer{
			Method: http.MethodGet, Path: "/api/v1/sales/solo", Status: bad.status, Header: bad.header, Body: bad.body,
		})
		if err == nil {
			t.Errorf("%s: not noticed", what)
		}
	}
	for _, frame := range []string{`{}`, `{"type":"new","at":1}`, `{"type":"none"}`, `{"type":"none","at":1,"new":1}`, `{"type":"hello","token":""}`} {
		if specification(t).Told([]byte(frame)) == nil {
			t.Errorf("%s: not noticed", frame)
		}
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer site.Close()
	req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, site.URL+"/api/v1/sales", nil))
	if resp, err := http.DefaultClient.Do(req); err == nil {
		resp.Body.Close()
		t.Error("the client of the tests does not notice")
	}
}

// sources are the files of packages, without tests.
func sources(t *testing.T, folders ...string) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, folder := range folders {
		for _, name := range must[[]string](t)(filepath.Glob(filepath.Join(folder, "*.go"))) {
			if !strings.HasSuffix(name, "_test.go") {
				files = append(files, must[*ast.File](t)(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)))
			}
		}
	}
	return files
}

// constantsOf are the texts that a file has as constants of one of these types, with a name that is wanted.
func constantsOf(file *ast.File, wanted func(name string) bool, types ...string) []string {
	var texts []string
	ast.Inspect(file, func(n ast.Node) bool {
		if c, ok := n.(*ast.ValueSpec); ok && len(c.Values) == 1 && slices.Contains(types, nameOf(c.Type)) && wanted(c.Names[0].Name) {
			if value, ok := c.Values[0].(*ast.BasicLit); ok {
				texts = append(texts, unquoted(value))
			}
		}
		return true
	})
	return texts
}

// nameOf is a type as it is written.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	}
	return ""
}

// typeIn is the text of the field Type.
func typeIn(literal *ast.CompositeLit) (string, bool) {
	for _, element := range literal.Elts {
		if field, ok := element.(*ast.KeyValueExpr); ok && nameOf(field.Key) == "Type" {
			value, ok := field.Value.(*ast.BasicLit)
			if !ok {
				return "", false
			}
			return unquoted(value), true
		}
	}
	return "", false
}

func unquoted(literal *ast.BasicLit) string {
	text, _ := strconv.Unquote(literal.Value)
	return text
}
