package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeysAreInspectedByTheRulesOfTheNode(t *testing.T) {
	t.Parallel()
	good, oct := documentKey(t, newEd(t, "good")), `{"kty":"oct","k":"c2VjcmV0"}`
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "jwks.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	site := func(status int, text string) string {
		p := newProvider(t)
		p.says(status, text)
		return p.url
	}
	for name, c := range map[string]struct {
		from          string
		refused, away string
		keys          int
		useless       string
	}{
		"a file":                {file(`{"keys":[` + good + `]}`), "", "", 1, ""},
		"a file, by URL":        {"file://" + file(`{"keys":[`+good+`,`+oct+`]}`), "", "", 1, "key 2: it is a symmetric key"},
		"a file that is away":   {file("") + "x", "no such file", "", 0, ""},
		"a file without keys":   {file(`{"keys":[` + oct + `,` + oct + `]}`), "RS256, ES256 or EdDSA (key 1: it is a symmetric key", "", 0, ""},
		"a provider":            {site(http.StatusOK, `{"keys":[`+good+`]}`), "", "", 1, ""},
		"a provider that fails": {site(http.StatusTeapot, ""), "", "it answers 418", 0, ""},
		"a page":                {site(http.StatusOK, "<html>"), "", "no JSON", 0, ""},
		"no keys":               {site(http.StatusOK, `{"keys":[]}`), "", "no key that signs", 0, ""},
		"nobody":                {"http://127.0.0.1:1/", "", "refused", 0, ""},
		"no address":            {"https:///x", "like https://", "", 0, ""},
	} {
		facts, err := InspectKeys(t.Context(), c.from)
		for _, said := range []struct {
			got  error
			want string
		}{{err, c.refused}, {facts.Away, c.away}} {
			if (said.got == nil) != (said.want == "") || said.got != nil && (!strings.Contains(said.got.Error(), said.want) || strings.Contains(said.got.Error(), "\n")) {
				t.Errorf("%s: got %v, want %q in one line", name, said.got, said.want)
			}
		}
		if facts.Keys != c.keys || !strings.HasPrefix(facts.Useless, c.useless) || c.keys == 1 && facts.Plain {
			t.Errorf("%s: got %+v", name, facts)
		}
		if _, starts := NewKeyring(c.from, nil, nil); (starts == nil) != (err == nil) {
			t.Errorf("%s: a node says %v, and this %v", name, starts, err)
		}
	}
	if facts, err := InspectKeys(t.Context(), "http://id.invalid/"); err != nil || !facts.Plain || facts.Away == nil {
		t.Errorf("plain HTTP of another machine: got %+v, %v", facts, err)
	}
}
