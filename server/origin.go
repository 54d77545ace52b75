package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v5"
	"github.com/labstack/echo/v5/middleware"
)

// origins are the pages of other origins that may act here, each in the form that originOf makes.
type origins map[string]bool

// parseOrigins reads a list like https://shop.example. There are no patterns: what may act for a shopper is named.
func parseOrigins(list []string) (origins, error) {
	set := origins{}
	for _, text := range list {
		origin, err := originOf(strings.TrimSuffix(text, "/"))
		if u, bad := url.Parse(text); bad == nil && u.User != nil {
			text = u.Redacted() // it goes into the log
		}
		if err != nil || strings.Contains(text, "*") {
			return nil, fmt.Errorf("origin %q: write scheme and host, and a port that is not the usual one, like https://shop.example; patterns and paths are not understood", text)
		}
		set[origin] = true
	}
	return set, nil
}

// originOf is an origin as it is compared: in small letters and without the usual port of its scheme.
func originOf(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("read an origin: %w", err)
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || !strings.EqualFold(bare.String(), text) {
		return "", errors.New("an origin is a scheme and a host")
	}
	return u.Scheme + "://" + hostOf(u.Host, u.Scheme), nil
}

// hostOf is a host with its port, as it is compared.
func hostOf(host, scheme string) string {
	host = strings.ToLower(host)
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// allows says whether a page of that origin may act here: our own host, or one of the list, compared whole. Our own scheme is
// not compared: behind a proxy that ends TLS nobody here knows it.
func (o origins) allows(origin, host string) bool {
	known, err := originOf(origin)
	if err != nil {
		return false
	}
	scheme, own, _ := strings.Cut(known, "://")
	return o[known] || own == hostOf(host, scheme)
}

// originAllowed says whether the page that made the request may act here. Callers that are no browsers send no origin.
func (s *Server) originAllowed(r *http.Request) bool {
	sent := r.Header.Values("Origin")
	return len(sent) == 0 || len(sent) == 1 && (sent[0] == "" || s.origins.allows(sent[0], r.Host))
}

// crossOrigin lets pages of the listed origins call the API, but not that of operators, whose pages are our own. Nothing is
// authenticated by a cookie, so no credentials are ever allowed along.
func (s *Server) crossOrigin() echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		Skipper: func(c *echo.Context) bool {
			path := c.Request().URL.Path
			return !strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, adminAPI)
		},
		UnsafeAllowOriginFunc: func(_ *echo.Context, origin string) (string, bool, error) {
			return origin, s.origins.allows(origin, ""), nil
		},
		AllowMethods: []string{http.MethodGet, http.MethodPost, http.MethodDelete},
		AllowHeaders: []string{
			echo.HeaderAuthorization, echo.HeaderContentType, "Accept-Language",
			headerUser, headerToken, echo.HeaderXRequestID,
		},
		ExposeHeaders: []string{
			echo.HeaderRetryAfter, headerLimit, headerRemaining, headerReset, echo.HeaderXRequestID, "ETag",
		},
		MaxAge: int((10 * time.Minute).Seconds()),
	})
}
