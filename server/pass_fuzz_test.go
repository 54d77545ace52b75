package server

import (
	"strings"
	"testing"
	"time"
)

// FuzzNoPassThatWasNotMintedIsTaken has one pass of each kind; whatever else is shown, also a form of these that says the same,
// is none. Nor is either for another sale.
func FuzzNoPassThatWasNotMintedIsTaken(f *testing.F) {
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	p, err := newPasses([][]byte{[]byte("a secret of passes, long enough")}, "", now)
	if err != nil {
		f.Fatal(err)
	}
	foreign, err := newPasses([][]byte{[]byte("another secret, just as long as it")}, "", now)
	if err != nil {
		f.Fatal(err)
	}
	minted := map[string]bool{}
	for _, g := range []ground{
		{sale: "phone-x", user: "ann", seat: 7, epoch: 1, until: now().Add(time.Hour).UnixMilli()},
		{sale: "phone-x", user: "bob", seat: 8, epoch: 1, order: "019b0000-0000-7000-8000-000000000000"},
	} {
		token, _, err := p.mint(g)
		if err != nil || token == "" {
			f.Fatalf("no pass for %+v: %v", g, err)
		}
		forged, _, err := foreign.mint(g)
		if err != nil {
			f.Fatal(err)
		}
		minted[token] = true
		parts := strings.Split(token, ".")
		f.Add(token, "phone-x")
		f.Add(token, "other")
		f.Add(token+"=", "phone-x")
		f.Add(forged, "phone-x")
		f.Add("eyJhbGciOiJub25lIn0."+parts[1]+".", "phone-x")
		f.Add(parts[0]+"."+parts[1], "phone-x")
		f.Add(strings.Join([]string{parts[0], parts[1], strings.Split(forged, ".")[2]}, "."), "phone-x")
	}
	f.Fuzz(func(t *testing.T, token, sale string) {
		claims, err := p.verify(token, sale)
		if err == nil && (!minted[token] || sale != "phone-x" || claims.Sale != sale) {
			t.Errorf("%q is a pass for %q: %+v", token, sale, claims)
		}
		if err != nil && minted[token] && sale == "phone-x" {
			t.Errorf("a minted pass is none: %v", err)
		}
	})
}
