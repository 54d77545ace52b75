package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// claimsOf verifies a JWT and returns what it says.
func claimsOf(t *testing.T, token, secret string) jwt.RegisteredClaims {
	t.Helper()
	var claims jwt.RegisteredClaims
	parsed, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return []byte(secret), nil }, jwt.WithValidMethods([]string{"HS256"}))
	if err != nil {
		t.Fatalf("token %q: %v", token, err)
	}
	want(t, "algorithm", parsed.Method.Alg(), "HS256")
	return claims
}

func TestTokenIsAJWTOfTheFirstSecret(t *testing.T) {
	t.Parallel()
	code, out, said := sluice(t, "", "token", "--user", "alice", "--secret", "first,second", "--ttl", "90m")
	want(t, "exit code", code, 0)
	want(t, "standard error", said, "")
	claims := claimsOf(t, strings.TrimSuffix(out, "\n"), "first")
	want(t, "sub", claims.Subject, "alice")
	want(t, "lifetime", claims.ExpiresAt.Sub(claims.IssuedAt.Time), 90*time.Minute)
}

func TestTokenForHeadersIsExpiryAndHMAC(t *testing.T) {
	t.Parallel()
	code, out, _ := sluice(t, "", "token", "--user", "ünï", "--secret", "first", "--kind", "hmac")
	want(t, "exit code", code, 0)
	expiry, digest, _ := strings.Cut(strings.TrimSuffix(out, "\n"), ".")
	if n, err := strconv.ParseInt(expiry, 10, 64); err != nil || n <= time.Now().Unix() {
		t.Errorf("expiry %q: %v", expiry, err)
	}
	mac := hmac.New(sha256.New, []byte("first"))
	mac.Write([]byte("ünï." + expiry))
	want(t, "digest", digest, hex.EncodeToString(mac.Sum(nil)))
}

func TestTokensAreCountedOut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte("from the file\nsecond\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := sluice(t, "", "token", "--user", "u", "--secret-file", file, "--count", "3")
	want(t, "exit code", code, 0)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	want(t, "lines", len(lines), 3)
	for i, line := range lines {
		user, token, _ := strings.Cut(line, " ")
		want(t, "user", user, "u-"+strconv.Itoa(i+1))
		want(t, "sub", claimsOf(t, token, "from the file").Subject, user)
	}
}

func TestTokenCommandRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		code int
		says string
	}{
		"no secret":      {[]string{"--user", "a"}, exitUsage, "give --secret or --secret-file"},
		"two sources":    {[]string{"--user", "a", "--secret", "s", "--secret-file", empty}, exitUsage, "keep one"},
		"empty file":     {[]string{"--user", "a", "--secret-file", empty}, exitFailed, "is empty"},
		"no file":        {[]string{"--user", "a", "--secret-file", empty + "x"}, exitFailed, "no such file"},
		"no user":        {[]string{"--secret", "s"}, exitUsage, "--user=ID"},
		"empty user":     {[]string{"--secret", "s", "--user", ""}, exitUsage, "1 to 128 bytes"},
		"long user":      {[]string{"--secret", "s", "--user", strings.Repeat("a", 129)}, exitUsage, "1 to 128 bytes"},
		"long with -10":  {[]string{"--secret", "s", "--user", strings.Repeat("a", 126), "--count", "10"}, exitUsage, "1 to 128 bytes"},
		"control":        {[]string{"--secret", "s", "--user", "a\tb"}, exitUsage, "control characters"},
		"no UTF-8":       {[]string{"--secret", "s", "--user", "a\xff"}, exitUsage, "UTF-8"},
		"no time":        {[]string{"--secret", "s", "--user", "a", "--ttl", "0s"}, exitUsage, "--ttl"},
		"unknown kind":   {[]string{"--secret", "s", "--user", "a", "--kind", "x"}, exitUsage, "--kind"},
		"negative count": {[]string{"--secret", "s", "--user", "a", "--count=-1"}, exitUsage, "--count"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, said := sluice(t, "", append([]string{"token"}, test.args...)...)
			want(t, "exit code", code, test.code)
			want(t, "standard output", out, "")
			if !strings.HasPrefix(said, "sluice: ") || strings.Count(said, "\n") != 1 || !strings.Contains(said, test.says) {
				t.Errorf("said %q, want one sentence with %q in it", said, test.says)
			}
		})
	}
}
