package server

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// FuzzNoPassThatWasNotMintedIsTaken has one pass of each kind; whatever is taken says what one of them says, in the one form that it
// has, for the sale that it is for.
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
	said := map[passClaims]bool{} // but for the id, which is another in each process that fuzzes
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
		claims, err := p.verify(token, g.sale)
		if err != nil {
			f.Fatal(err)
		}
		claims.ID = ""
		said[claims] = true
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
		if err != nil {
			return
		}
		claims.ID = ""
		if !said[claims] || sale != claims.Sale {
			t.Errorf("%q is a pass for %q: %+v", token, sale, claims)
		}
		for _, part := range strings.Split(token, ".") {
			data, err := base64.RawURLEncoding.DecodeString(part)
			if err != nil || base64.RawURLEncoding.EncodeToString(data) != part {
				t.Errorf("%q is taken in another form (%v)", token, err)
			}
		}
	})
}
