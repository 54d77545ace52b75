package server

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/queue"
)

// frozenDraws has one draw, whose entries are frozen.
type frozenDraws struct{ Draws }

func (frozenDraws) DrawOf(_ context.Context, sale string) (queue.Draw, bool, error) {
	return queue.Draw{Sale: sale, Tickets: 5000, Live: 5000, Root: queue.NewMerkleTree(hashesOf(entriesOf(5000))).Root()}, true, nil
}

// entriesOf are the first so many entries.
func entriesOf(n int) []queue.DrawEntry {
	entries := make([]queue.DrawEntry, n)
	for i := range entries {
		binary.BigEndian.PutUint32(entries[i].Leaf[:], uint32(i))
	}
	return entries
}

func hashesOf(entries []queue.DrawEntry) [][32]byte {
	hashes := make([][32]byte, len(entries))
	for i, entry := range entries {
		hashes[i] = entry.Hash()
	}
	return hashes
}

func TestAPartOfTheEntrantsDoesNotLookLikeAllOfThem(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Draws = frozenDraws{} })
	sale := phoneX()
	sale.Line.Order = queue.Lottery
	b.store.sales[sale.ID], b.line.sales[sale.ID] = sale, sale
	b.snaps[sale.ID] = openSnapshot(sale)
	site := httptest.NewServer(b.server.Handler())
	defer site.Close()
	lost := make([]queue.DrawEntry, 5000)
	for _, c := range []struct {
		name    string
		entries []queue.DrawEntry
		status  int
		fails   bool
		whole   bool
	}{
		{"what was lost before", lost, http.StatusServiceUnavailable, false, true},
		{"all of them", entriesOf(5000), http.StatusOK, false, true}, // from here on the tree is known
		{"none, for Redis is away", nil, http.StatusServiceUnavailable, true, true},
		{"few, and Redis went away", entriesOf(10), http.StatusServiceUnavailable, true, true},
		{"many, and it went away", entriesOf(4000), http.StatusOK, true, false},
		{"what was lost", lost, http.StatusServiceUnavailable, false, true},
		{"what was lost meanwhile", append(entriesOf(4000), lost[:1000]...), http.StatusOK, false, false},
	} {
		b.line.each = func(fn func([]queue.DrawEntry) error) error {
			if err := fn(c.entries); err != nil || !c.fails {
				return err
			}
			return errors.New("it went away")
		}
		resp, err := http.Get(site.URL + "/api/v1/sales/" + sale.ID + "/draw/entrants")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != c.status || (err == nil) != c.whole {
			t.Errorf("%s: got %d and %d bytes, %v; want %d, whole %t", c.name, resp.StatusCode, len(body), err, c.status, c.whole)
		}
		lines, stored := strings.Count(string(body), "\n"), strings.Contains(resp.Header.Get("Cache-Control"), "public")
		if c.status == http.StatusOK && c.whole && lines != len(c.entries) || c.status != http.StatusOK && stored {
			t.Errorf("%s: got %d lines, kept by whoever likes %t", c.name, lines, stored)
		}
	}
}
