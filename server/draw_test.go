package server

import (
	"context"
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
	return queue.Draw{Sale: sale, Tickets: 5000, Live: 5000, Root: [32]byte{1}}, true, nil
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
	for name, c := range map[string]struct {
		entries, status int
		fails           bool
		whole           bool
	}{
		"all of them":              {entries: 5000, status: http.StatusOK, whole: true},
		"none, for Redis is away":  {fails: true, status: http.StatusServiceUnavailable, whole: true},
		"few, and Redis went away": {entries: 10, fails: true, status: http.StatusServiceUnavailable, whole: true},
		"many, and it went away":   {entries: 5000, fails: true, status: http.StatusOK},
	} {
		b.line.each = func(fn func([]queue.DrawEntry) error) error {
			if err := fn(make([]queue.DrawEntry, c.entries)); err != nil || !c.fails {
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
			t.Errorf("%s: got %d and %d bytes, %v; want %d, whole %t", name, resp.StatusCode, len(body), err, c.status, c.whole)
		}
		lines, stored := strings.Count(string(body), "\n"), strings.Contains(resp.Header.Get("Cache-Control"), "public")
		if c.status == http.StatusOK && c.whole && lines != c.entries || c.status != http.StatusOK && stored {
			t.Errorf("%s: got %d lines, kept by whoever likes %t", name, lines, stored)
		}
	}
}
