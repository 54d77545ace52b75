package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// maxKeys is how long the document of a provider may be, in bytes: many times what any has.
	maxKeys = 1 << 20
	// fetchTimeout bounds the whole of one reading.
	fetchTimeout = 4 * time.Second
	// mostRedirects is how often a provider may send us elsewhere.
	mostRedirects = 3
)

// keySource is where the keys of a provider are.
type keySource struct {
	name  string // for the log
	every time.Duration
	local bool
	plain bool // whoever is on the way may put in keys of their own
	read  func(context.Context) ([]byte, error)
}

// errFileURL is that of a file URL in which what was meant as the path is a host, or which is relative to nothing.
var errFileURL = errors.New("the URL of a file with keys has three slashes and then an absolute path: write it like file:///etc/sluice/jwks.json")

// newKeySource reads from a file (a path or file:///path) or from a URL.
func newKeySource(from string) (keySource, error) {
	if strings.HasPrefix(from, "file:") && !strings.HasPrefix(from, "file:///") {
		return keySource{}, errFileURL
	}
	if !strings.Contains(from, "://") {
		return fileSource(from), nil
	}
	u, err := url.Parse(from)
	switch {
	case err != nil: // which may quote what is in the URL
		return keySource{}, errors.New("the URL of the keys cannot be read: write it like https://id.example/jwks.json")
	case u.User != nil:
		return keySource{}, errors.New("the URL of the keys has a user or a password in it: public keys need none, leave it out")
	case u.Scheme == "file" && u.Host == "" && u.Path != "":
		return fileSource(u.Path), nil
	case u.Scheme == "file":
		return keySource{}, errFileURL
	case (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
		return httpSource(u), nil
	}
	return keySource{}, errors.New("the URL of the keys must be like https://id.example/jwks.json or file:///etc/sluice/jwks.json")
}

// take reads the keys once, within fetchTimeout.
func (s keySource) take(ctx context.Context) (*keySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	document, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	return parseKeys(document)
}

// unread is the error of keys that could not be read.
func (s keySource) unread(err error) error {
	return fmt.Errorf("read the keys of tokens from %s: %w", s.name, err)
}

// fileSource reads a file. It costs nothing, so a change is noticed within seconds.
func fileSource(path string) keySource {
	return keySource{name: path, every: 10 * time.Second, local: true, read: func(context.Context) ([]byte, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readKeys(file)
	}}
}

// httpSource asks a provider. Its errors do not have the URL in them, of which only the host is named.
func httpSource(u *url.URL) keySource {
	client := &http.Client{
		Timeout: fetchTimeout,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
			DisableKeepAlives:      true, // once in minutes
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			switch {
			case len(via) > mostRedirects:
				return errors.New("it sends us from one address to the next")
			case via[0].URL.Scheme == "https" && next.URL.Scheme != "https":
				return errors.New("it sends us to an address without TLS")
			}
			return nil
		},
	}
	fetch := func(ctx context.Context) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, withoutURL(err)
		}
		req.Header.Set("Accept", "application/jwk-set+json, application/json")
		resp, err := client.Do(req)
		if err != nil {
			return nil, withoutURL(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("it answers %d", resp.StatusCode)
		}
		return readKeys(resp.Body)
	}
	ip := net.ParseIP(u.Hostname())
	return keySource{
		name: u.Scheme + "://" + u.Host, every: 5 * time.Minute, read: fetch,
		plain: u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()),
	}
}

// readKeys reads a document that is not too long.
func readKeys(from io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(from, maxKeys+1))
	if err != nil {
		return nil, withoutURL(err)
	}
	if len(document) > maxKeys {
		return nil, fmt.Errorf("it is longer than %d bytes", maxKeys)
	}
	return document, nil
}

// withoutURL is the cause of an error of the client, which has the whole URL in its own text.
func withoutURL(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
