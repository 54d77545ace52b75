package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sluice/words"
)

const (
	// requestTimeout bounds one call of the admin API; its slowest, the audit, reads every order of a sale.
	requestTimeout = time.Minute
	// maxAnswer bounds what is kept of an answer, far above the largest audit.
	maxAnswer = 64 << 20
)

// serverFlags are how a command finds the server whose API it drives.
type serverFlags struct {
	URL            string `default:"http://127.0.0.1:8080" help:"Where the server is."`
	AdminToken     string `placeholder:"TOKEN" help:"Token of the admin API."`
	AdminTokenFile string `placeholder:"FILE" help:"File with the token of the admin API."`
}

// adminToken returns the token, "" when neither flag was given.
func (f serverFlags) adminToken() (string, error) {
	return valueOrFile("admin-token", f.AdminToken, f.AdminTokenFile)
}

// client returns the client of that server.
func (f serverFlags) client() (*apiClient, error) {
	token, err := f.adminToken()
	if err != nil {
		return nil, err
	}
	return newAPIClient("url", f.URL, token)
}

// apiClient speaks to the HTTP API of one server. It is safe for concurrent use.
type apiClient struct {
	flag  string // that says where the server is, without its dashes
	base  *url.URL
	token string
	http  *http.Client
}

// newAPIClient makes the client of the server at base, which may have a path and is said by that flag. An empty token sends none.
func newAPIClient(flag, base, token string) (*apiClient, error) {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, usagef("--%s: write it like http://127.0.0.1:8080", flag)
	}
	return &apiClient{flag: flag, base: parsed, token: token, http: &http.Client{Timeout: requestTimeout}}, nil
}

// do sends one request and returns the body of a 2xx answer. Path segments are escaped here. Every error is a sentence
// for the person at the terminal: a *problem when the server said what is wrong.
func (c *apiClient) do(ctx context.Context, method string, path []string, contentType string, body []byte) ([]byte, error) {
	return c.ask(ctx, method, path, nil, contentType, body)
}

// ask is do with a query.
func (c *apiClient) ask(ctx context.Context, method string, path []string, query url.Values, contentType string, body []byte) ([]byte, error) {
	escaped := make([]string, len(path))
	for i, segment := range path {
		escaped[i] = url.PathEscape(segment)
	}
	target := c.base.JoinPath(escaped...)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request to %s: %w", target.Redacted(), cause(err))
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %s: interrupted", method, target.Redacted())
		}
		return nil, fmt.Errorf("%s does not answer (is `sluice serve` running there?): %w", c.base.Redacted(), cause(err))
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", target.Redacted(), err)
	}
	if resp.StatusCode/100 != 2 {
		err := problemOf(resp, answer)
		if len(path) > 2 && path[2] == "admin" && isNowhere(resp, err) {
			return nil, fmt.Errorf("there is no admin API at %s: where operators have a listener of their own (serve --admin-listen), give its URL with --%s", c.base.Redacted(), c.flag)
		}
		return nil, err
	}
	return answer, nil
}

// isNowhere says whether an answer means that there is nothing at an address at all: not that a sale or an order is not there.
func isNowhere(resp *http.Response, err error) bool {
	var p *problem
	return resp.StatusCode == http.StatusNotFound && (!errors.As(err, &p) || p.Code == "not_found")
}

// get is do with GET and decodes the answer into out; the raw answer is returned for --json.
func (c *apiClient) get(ctx context.Context, out any, path ...string) ([]byte, error) {
	return c.find(ctx, out, nil, path...)
}

// find is get with a query.
func (c *apiClient) find(ctx context.Context, out any, query url.Values, path ...string) ([]byte, error) {
	answer, err := c.ask(ctx, http.MethodGet, path, query, "", nil)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return nil, fmt.Errorf("understand the answer of %s: %w", c.base.Redacted(), err)
	}
	return answer, nil
}

// cause strips the method and address that net/http puts before what went wrong.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// problem is what a server answers when it refuses or fails, as RFC 9457 writes it.
type problem struct {
	Status       int    `json:"status"`
	Title        string `json:"title"`
	Detail       string `json:"detail"`
	Code         string `json:"code"`
	Reason       string `json:"reason"` // which rule keeps the caller out, of forbidden
	Field        string `json:"field"`  // of the sale file, when one field is at fault
	Line         int    `json:"line"`   // of the sale file, from 1
	RetryAfterMS int64  `json:"retry_after_ms"`
}

// Error is the problem as one sentence, with the place in the file and what to do about it.
func (p *problem) Error() string {
	var text strings.Builder
	text.WriteString(strings.TrimRight(firstOf(p.Detail, p.Title, http.StatusText(p.Status), "refused"), "."))

	var place []string
	if line := fmt.Sprintf("line %d", p.Line); p.Line > 0 && !strings.Contains(p.Detail, line) {
		place = append(place, line)
	}
	if p.Field != "" && !strings.Contains(p.Detail, p.Field) {
		place = append(place, "field "+p.Field)
	}
	if len(place) > 0 {
		fmt.Fprintf(&text, " (%s)", strings.Join(place, ", "))
	}
	switch {
	case p.Status == http.StatusUnauthorized:
		text.WriteString(": give the server's admin token with --admin-token or --admin-token-file")
	case p.RetryAfterMS > 0:
		fmt.Fprintf(&text, ": try again in %s", words.Duration((time.Duration(p.RetryAfterMS) * time.Millisecond).Round(100*time.Millisecond)))
	}
	return text.String()
}

// problemOf reads an answer that is no success, whoever wrote it: a proxy on the way may know nothing of problems.
func problemOf(resp *http.Response, body []byte) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p problem
	if kind != "application/problem+json" || json.Unmarshal(body, &p) != nil {
		return fmt.Errorf("%s answered %s", resp.Request.URL.Redacted(), resp.Status)
	}
	p.Status = resp.StatusCode
	return &p
}

// firstOf is the first text that is not empty.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// printJSON prints an answer of the server as it came, with a line end.
func printJSON(out io.Writer, answer []byte) error {
	if _, err := fmt.Fprintf(out, "%s\n", bytes.TrimRight(answer, "\n")); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
