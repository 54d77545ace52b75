package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestGuestsAndSecretsAreTakenOnlyWhereThatIsMeant(t *testing.T) {
	t.Parallel()
	provider := serveFlags{JWKSURL: "https://id.example/jwks.json"}
	with := func(f serveFlags, auth ...string) serveFlags {
		f.Auth = auth
		return f
	}
	late := serveFlags{JWTLeeway: time.Hour}
	for name, tc := range map[string]struct {
		flags    serveFlags
		embedded bool
		methods  string // "" = refused
		warned   string
	}{
		"an embedded installation":           {serveFlags{}, true, "jwt hmac guest", "guests are let in"},
		"a real one":                         {serveFlags{}, false, "jwt hmac", ""},
		"guests where they are asked for":    {with(serveFlags{}, "jwt", "guest"), false, "jwt guest", ""},
		"a provider":                         {provider, false, "jwt", "--jwt-audience"},
		"a provider, embedded":               {provider, true, "jwt", "--jwt-audience"},
		"a provider, and secrets as well":    {with(provider, "jwt", "hs256"), false, "jwt hs256", "--jwt-audience"},
		"a provider that nobody could use":   {with(provider, "hmac"), false, "", ""},
		"a way that does not exist":          {with(serveFlags{}, "cookie"), false, "", ""},
		"a leeway that is none":              {late, false, "", ""},
		"a leeway that turns the clock back": {serveFlags{JWTLeeway: -1}, false, "", ""},
	} {
		var log bytes.Buffer
		methods, err := tc.flags.methods(tc.embedded, slog.New(slog.NewTextHandler(&log, nil)))
		if got := strings.Join(methods, " "); got != tc.methods || (err == nil) != (tc.methods != "") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if err == nil && (!strings.Contains(log.String(), tc.warned) || tc.warned == "" && log.Len() > 0) {
			t.Errorf("%s: the log says %q", name, log.String())
		}
	}
}

func TestATokenMayCarryWhatTheServerWants(t *testing.T) {
	t.Parallel()
	_, out, _ := sluice(t, "", "token", "--user", "alice", "--secret", "s", "--jwt-issuer", "https://id.example/", "--jwt-audience", "a,b")
	claims := claimsOf(t, strings.TrimSpace(out), "s")
	want(t, "iss", claims.Issuer, "https://id.example/")
	want(t, "aud", strings.Join(claims.Audience, " "), "a b")
}
