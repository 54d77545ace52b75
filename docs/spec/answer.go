package spec

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Answer is an answer over HTTP, and what was asked.
type Answer struct {
	Method string
	Path   string // without the query
	Asked  []byte // the body of the request; nil = not known
	Kind   string // and its type

	Status int
	Header http.Header
	Body   []byte // nil = not read
}

// Answered says whether an answer is as openapi.yaml has it. What that does not name must be refused as a problem when it is
// below /api, /ws or /.well-known; all else are pages, about which it says nothing.
func (s *Spec) Answered(a Answer) error {
	if !ours(a.Path) {
		return nil
	}
	route, _ := s.route(a.Path)
	operation := route.at(strings.ToLower(a.Method))
	switch {
	case operation.there():
		return s.operated(operation, a)
	case a.Method == http.MethodOptions && a.Status == http.StatusNoContent:
		return nil // a preflight
	case a.Method == http.MethodHead:
		a.Body = nil
	}
	refusal := s.refusalOf(a.Status)
	if !refusal.there() {
		return fmt.Errorf("%s %s was answered %d, and is not in openapi.yaml", a.Method, a.Path, a.Status)
	}
	return answered(refusal, a)
}

// Operated is Answered for the operations listener, of which Go's profiles are not in openapi.yaml.
func (s *Spec) Operated(a Answer) error {
	route, found := s.route(a.Path)
	if !found && strings.HasPrefix(a.Path, "/debug/pprof/") {
		return nil
	}
	operation := route.at(strings.ToLower(a.Method))
	if !operation.there() {
		return fmt.Errorf("%s %s is not in openapi.yaml", a.Method, a.Path)
	}
	return s.operated(operation, a)
}

// ours says whether a path is one of the API, and no page.
func ours(path string) bool {
	return strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/ws/") || strings.HasPrefix(path, "/.well-known/")
}

// refusalOf is how an address that is not in the document is answered.
func (s *Spec) refusalOf(status int) place {
	name := map[int]string{
		http.StatusNotFound: "NotFound", http.StatusMethodNotAllowed: "MethodNotAllowed",
		http.StatusTooManyRequests: "Limited", http.StatusServiceUnavailable: "Unavailable",
	}[status]
	return s.library.root(openapi).at("components", "responses", name)
}

func (s *Spec) operated(operation place, a Answer) error {
	response := operation.at("responses", strconv.Itoa(a.Status))
	if !response.there() {
		return fmt.Errorf("%s %s was answered %d, which openapi.yaml does not name: %s", a.Method, a.Path, a.Status, a.Body)
	}
	err := answered(response, a)
	if err == nil {
		err = s.figures(operation, response, a)
	}
	if err != nil {
		return fmt.Errorf("%s %s was answered %d: %w: %s", a.Method, a.Path, a.Status, err, a.Body)
	}
	if a.Status >= http.StatusBadRequest {
		return nil
	}
	if err := s.asked(operation, a); err != nil {
		return fmt.Errorf("%s %s was answered %d, though asked with %s: %w", a.Method, a.Path, a.Status, a.Asked, err)
	}
	return nil
}

// told are headers that mean something to a client, so that a response which has one must name it.
func told() []string {
	return []string{
		"Retry-After", "ETag", "X-Sluice-User", "WWW-Authenticate", "Content-Disposition",
	}
}

// figures says whether an answer has what a limit leaves only where there is a limit, which is where 429 is a response, and
// then all of it.
func (s *Spec) figures(operation, response place, a Answer) error {
	headers := map[string]string{
		"X-RateLimit-Limit": "RateLimitLimit", "X-RateLimit-Remaining": "RateLimitRemaining", "X-RateLimit-Reset": "RateLimitReset",
	}
	var there []string
	for name := range headers {
		if a.Header.Get(name) != "" {
			there = append(there, name)
		}
	}
	if len(there) == 0 || response.at("headers", there[0]).there() {
		return nil // none, or held already
	}
	if len(there) < len(headers) || !operation.at("responses", strconv.Itoa(http.StatusTooManyRequests)).there() {
		return fmt.Errorf("%v is there, of a limit that openapi.yaml does not have", there)
	}
	for name, component := range headers {
		header := s.library.root(openapi).at("components", "headers", component)
		if err := header.at("schema").hold(scalar(a.Header.Get(name), header)); err != nil {
			return fmt.Errorf("the header %s is %q: %w", name, a.Header.Get(name), err)
		}
	}
	return nil
}

func answered(response place, a Answer) error {
	headers := response.at("headers")
	for _, name := range headers.keys() {
		header := headers.at(name)
		if sent := a.Header.Values(name); len(sent) != 1 {
			return fmt.Errorf("the header %s is there %d times", name, len(sent))
		}
		if err := header.at("schema").hold(scalar(a.Header.Get(name), header)); err != nil {
			return fmt.Errorf("the header %s is %q: %w", name, a.Header.Get(name), err)
		}
	}
	for _, name := range told() {
		if a.Header.Get(name) != "" && !headers.at(name).there() {
			return fmt.Errorf("the header %s: %s is not in openapi.yaml", name, a.Header.Get(name))
		}
	}
	content := response.at("content")
	if !content.there() {
		if len(a.Body) > 0 {
			return errors.New("it has a body")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(content.keys(), kind) {
		return fmt.Errorf("it is of the type %q", a.Header.Get("Content-Type"))
	}
	if a.Body == nil || !strings.HasSuffix(kind, "json") {
		return nil
	}
	return content.at(kind, "schema").holdJSON(a.Body)
}

// scalar is the text of a header or a parameter as its schema means it.
func scalar(text string, of place) any {
	if of.at("schema").text("type") == "integer" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	}
	return text
}

// asked says whether a request that was granted is one that the document describes.
func (s *Spec) asked(operation place, a Answer) error {
	content := operation.at("requestBody", "content")
	if len(a.Asked) == 0 || !content.there() {
		return nil
	}
	value, err := fromYAML(a.Asked) // which JSON is, too
	if err != nil {
		return nil // it is not what the server read
	}
	kind, _, err := mime.ParseMediaType(a.Kind)
	if err != nil || !content.at(kind).there() {
		kind = "application/json"
	}
	return content.at(kind, "schema").hold(value)
}

// route finds the path of the document that matches, the one with the most words of its own first.
func (s *Spec) route(path string) (place, bool) {
	paths := s.library.root(openapi).at("paths")
	parts := strings.Split(path, "/")
	best, words := "", -1
	for _, template := range paths.keys() {
		if n, ok := matches(strings.Split(template, "/"), parts); ok && n > words {
			best, words = template, n
		}
	}
	return paths.at(best), words >= 0
}

// matches says whether a path is of a template, and how many words of it are the same.
func matches(template, path []string) (same int, ok bool) {
	if len(template) != len(path) {
		return 0, false
	}
	for i, word := range template {
		switch {
		case word == path[i]:
			same++
		case !strings.HasPrefix(word, "{") || path[i] == "":
			return 0, false
		}
	}
	return same, true
}

// Routes are those of the document, as "GET /api/v1/sales/{sale}".
func (s *Spec) Routes() []string {
	var routes []string
	paths := s.library.root(openapi).at("paths")
	for _, path := range paths.keys() {
		for _, method := range paths.at(path).keys() {
			switch method {
			case "get", "put", "post", "delete", "patch":
				routes = append(routes, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(routes)
	return routes
}

// Codes are those of problems.
func (s *Spec) Codes() []string { return s.words("Code") }

// Reasons are those of problems about access rules.
func (s *Spec) Reasons() []string { return s.words("Reason") }

// words are what an enum allows, sorted.
func (s *Spec) words(schema string) []string {
	fields, _ := s.library.root(openapi).at("components", "schemas", schema).value.(map[string]any)
	list, _ := fields["enum"].([]any)
	var words []string
	for _, item := range list {
		if word, ok := item.(string); ok {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

// Watched says whether an event of a stream is as openapi.yaml has it, given the path of the stream and the data of the event.
func (s *Spec) Watched(path string, data []byte) error {
	route, _ := s.route(path)
	return route.at("get", "responses", "200", "content", "text/event-stream", "schema").holdJSON(data)
}
