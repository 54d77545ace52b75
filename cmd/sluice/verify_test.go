package main

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"sluice/queue"
)

// honest is a draw that holds, with its entries and one of them; some have a priority in one that is ranked.
func honest(ranked bool) (publishedDraw, []queue.DrawEntry, *publishedEntry) {
	const count, index = 37, 11
	entries, leaves := make([]queue.DrawEntry, count), make([][32]byte, count)
	nonce := [16]byte{4, 2}
	for i := range entries {
		entries[i].Leaf = queue.Leaf(fmt.Sprint("user-", i), nonce)
		if ranked {
			entries[i].Priority = uint8(i % 4)
		}
		leaves[i] = entries[i].Hash()
	}
	tree := queue.NewMerkleTree(leaves)
	draw := publishedDraw{State: "drawn", Beacon: queue.NoBeacon, Count: count, Root: tree.Root(), Secret: [32]byte{7, 7}}
	draw.Commitment = queue.Commitment(draw.Secret)
	draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, "")
	mine := &publishedEntry{User: fmt.Sprint("user-", index), Nonce: hex.EncodeToString(nonce[:]), Leaf: entries[index].Leaf, Priority: entries[index].Priority, Index: index, Count: count}
	for _, hash := range tree.Path(index) {
		mine.Path = append(mine.Path, hash)
	}
	higher, same := 0, 0
	for _, entry := range queue.DrawOrder(draw.Seed, count) {
		switch other := entries[entry].Priority; {
		case entry == index:
			mine.Number = same + 1
		case other > mine.Priority:
			higher++
		case other == mine.Priority:
			same++
		}
	}
	mine.Number += higher
	return draw, entries, mine
}

func TestAnHonestDrawHoldsAndATamperedOneDoesNot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fails  string // what does not hold; "" = everything does
		tamper func(*publishedDraw, []queue.DrawEntry, *publishedEntry)
	}{
		{"", func(*publishedDraw, []queue.DrawEntry, *publishedEntry) {}},
		{"commitment", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Secret[3] ^= 1 }},
		{"commitment", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Commitment[0] ^= 1 }},
		{"beacon", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Beacon = "the one that suits us" }},
		{"entries", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Count++ }},
		{"root", func(_ *publishedDraw, l []queue.DrawEntry, _ *publishedEntry) { l[30].Leaf[0] ^= 1 }},
		{"root", func(_ *publishedDraw, l []queue.DrawEntry, _ *publishedEntry) { l[3], l[4] = l[4], l[3] }},
		{"root", func(_ *publishedDraw, l []queue.DrawEntry, _ *publishedEntry) { l[3].Priority++ }},
		{"your path", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Priority++ }},
		{"root", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Root[31] ^= 128 }},
		{"seed", func(d *publishedDraw, _ []queue.DrawEntry, _ *publishedEntry) { d.Seed[0]++ }},
		{"your entry", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.User = "somebody" }},
		{"your entry", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Nonce = m.Nonce[2:] }},
		{"your path", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Path[1][5] ^= 4 }},
		{"your path", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Path = m.Path[1:] }},
		{"your path", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Index++ }},
		{"your path", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Count-- }},
		{"your place", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Number = m.Number%37 + 1 }},
		{"your place", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Number = 0 }},
		{"your place", func(_ *publishedDraw, _ []queue.DrawEntry, m *publishedEntry) { m.Number = 1 << 40 }},
	} {
		for _, ranked := range []bool{false, true} {
			draw, entries, mine := honest(ranked)
			test.tamper(&draw, entries, mine)
			var out strings.Builder
			err := printChecks(&out, checkDraw(draw, entries, mine))
			if test.fails == "" && err != nil || test.fails != "" && (err == nil || !strings.HasSuffix(err.Error(), ": "+test.fails)) {
				t.Errorf("want %q to fail, got %v\n%s", test.fails, err, out.String())
			}
		}
	}
}

// TestALotteryIsDrawnOnceAndAnybodyCanCheckIt is a whole one, on two servers that both try to draw it.
func TestALotteryIsDrawnOnceAndAnybodyCanCheckIt(t *testing.T) {
	t.Parallel()
	g := newGround(t, "mysql")
	one, two := open(t, g.flags...), open(t, append(g.flags, "--no-worker")...)
	sale := freshID()
	one.apply(saleFile(t, sale, 60, `opens_at: +4s
closes_at: +1h
hold: 0s
line: { order: lottery, rate: 100, ratio: 3, turn: 20s }`))

	before := one.ask(http.MethodGet, "/sales/"+sale+"/draw", "", "")
	commitment, _ := before.fields["commitment"].(string)
	want(t, "what is told before the opening", fmt.Sprint(before.fields["state"], before.fields["secret"], before.fields["seed"]), "committed<nil> <nil>")
	if entrants := one.ask(http.MethodGet, "/sales/"+sale+"/draw/entrants", "", ""); entrants.status != http.StatusConflict {
		t.Errorf("the entries before the opening: %d", entrants.status)
	}
	if code, _, said := command(t, "verify", sale, "--url", one.url); code != exitFailed || !strings.Contains(said, "not drawn yet") {
		t.Errorf("checked before the opening: %d %s", code, said)
	}
	ann := tokenOf(t, "ann")
	if answer := two.ask(http.MethodPost, "/sales/"+sale+"/seat", ann, ""); answer.status != http.StatusOK || answer.fields["type"] != "lobby" {
		t.Errorf("ann enters: %d %v", answer.status, answer.fields)
	}
	crowds := []*throng{
		one.crowd(sale, 100, "--prefix", "one", "--ramp", "1s", "--no-audit"),
		two.crowd(sale, 100, "--prefix", "two", "--ramp", "1s", "--no-audit"),
	}
	eventually(t, "the lottery is drawn", func() bool {
		return two.ask(http.MethodGet, "/sales/"+sale+"/draw", "", "").fields["state"] == "drawn"
	})
	var told int64
	for _, crowd := range crowds {
		told += int64(crowd.report().ToldUnits)
	}
	want(t, "units that the crowds know of", told, int64(60))
	g.wantBuyers(sale, 60)

	for _, site := range []*site{one, two} {
		out := succeed(t, "verify", sale, "--url", site.url, "--commitment", commitment, "--user-token", ann)
		for _, line := range []string{"commitment", "root", "seed", "your entry", "your path", "your place"} {
			if !strings.Contains(out, line) {
				t.Errorf("nothing is said of the %s:\n%s", line, out)
			}
		}
	}
	if code, _, _ := command(t, "verify", sale, "--url", one.url, "--commitment", strings.Repeat("0", 64)); code != exitFailed {
		t.Errorf("another commitment than the one noted passes: exit %d", code)
	}
	if code, _, _ := command(t, "verify", sale, "--url", one.url, "--commitment", "abc"); code != exitUsage {
		t.Errorf("what is no commitment exits with %d", code)
	}
	if late := one.ask(http.MethodGet, "/sales/"+sale+"/draw/mine", tokenOf(t, "stranger"), ""); late.status != http.StatusConflict {
		t.Errorf("the entry of somebody who has none: %d", late.status)
	}
	if none := one.ask(http.MethodGet, "/sales/none/draw", "", ""); none.status != http.StatusNotFound {
		t.Errorf("the draw of a sale that does not exist: %d", none.status)
	}
}
