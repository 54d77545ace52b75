package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"

	"sluice/queue"
	"sluice/words"
)

// verifyCmd is `sluice verify`.
type verifyCmd struct {
	URL           string `default:"http://127.0.0.1:8080" help:"Where the server is."`
	Sale          saleID `arg:"" help:"Id of the sale."`
	Commitment    *hash  `placeholder:"HEX" help:"The commitment as you noted it before the sale opened; without it the one is taken that the server names now."`
	UserToken     string `placeholder:"TOKEN" help:"Token of a user who took part, to check that user's entry and place as well."`
	UserTokenFile string `placeholder:"FILE" help:"File with that token."`
}

// Help is shown below the flags.
func (*verifyCmd) Help() string {
	return `Repeats the draw of a lottery from what everybody can read: that the secret is the one that was committed to before, that the
published entries have the published root, that the seed follows from both, and which place it gives to each entry. Exits
with 1 when it does not hold.

Example:

    sluice verify phone-x --commitment 9f86d0…`
}

// draw is a lottery as the server publishes it.
type publishedDraw struct {
	State      string `json:"state"`
	Commitment hash   `json:"commitment"`
	Beacon     string `json:"beacon"`
	Count      int    `json:"count"`
	Priorities bool   `json:"priorities"`
	Root       hash   `json:"root"`
	Value      string `json:"value"`
	Secret     hash   `json:"secret"`
	Seed       hash   `json:"seed"`
}

// publishedEntry is one user's entry as the server tells that user.
type publishedEntry struct {
	User     string `json:"user"`
	Nonce    string `json:"nonce"`
	Leaf     hash   `json:"leaf"`
	Priority uint8  `json:"priority"`
	Index    int    `json:"index"`
	Count    int    `json:"count"`
	Path     []hash `json:"path"`
	Number   int    `json:"number"`
}

// hash is 32 bytes, in hex on the wire.
type hash [32]byte

// UnmarshalText reads 64 hex digits.
func (h *hash) UnmarshalText(text []byte) error {
	if len(text) == hex.EncodedLen(len(h)) {
		if _, err := hex.Decode(h[:], text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%.80q is not a hash, write it with %d digits from 0 to 9 and a to f", text, hex.EncodedLen(len(h)))
}

// Run checks the draw and prints what was checked.
func (c *verifyCmd) Run(ctx context.Context, std *stdio) error {
	client, err := newAPIClient("url", c.URL, "")
	if err != nil {
		return err
	}
	var draw publishedDraw
	if _, err := client.get(ctx, &draw, drawPath(c.Sale)...); err != nil {
		return fmt.Errorf("read the draw of %s: %w", c.Sale, err)
	}
	if draw.State != "drawn" {
		return fmt.Errorf("the lottery of %s is not drawn yet: it is %s", c.Sale, draw.State)
	}
	if c.Commitment != nil {
		draw.Commitment = *c.Commitment
	}
	entries, err := client.entrants(ctx, c.Sale, draw.Count)
	if err != nil {
		return err
	}
	var mine *publishedEntry
	token, err := valueOrFile("user-token", c.UserToken, c.UserTokenFile)
	if err != nil {
		return err
	}
	if token != "" {
		client.token = token
		mine = new(publishedEntry)
		if _, err := client.get(ctx, mine, drawPath(c.Sale, "mine")...); err != nil {
			return fmt.Errorf("read the entry of the user: %w", err)
		}
	}
	return printChecks(std.out, checkDraw(draw, entries, mine))
}

func drawPath(sale saleID, more ...string) []string {
	return append([]string{"api", "v1", "sales", string(sale), "draw"}, more...)
}

// entrants reads the entries of a draw, a line each: a hash, and behind a space the priority of those who have one.
func (c *apiClient) entrants(ctx context.Context, sale saleID, count int) ([]queue.DrawEntry, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(drawPath(sale, "entrants")...).String(), nil)
	if err != nil {
		return nil, fmt.Errorf("read the entries of %s: %w", sale, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the entries of %s: %w", sale, cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return nil, problemOf(resp, answer)
	}
	entries := make([]queue.DrawEntry, 0, max(0, min(count, 1<<24)))
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		text, rank, ranked := bytes.Cut(lines.Bytes(), []byte(" "))
		var leaf hash
		err := leaf.UnmarshalText(text)
		priority := uint64(0)
		if err == nil && ranked {
			priority, err = strconv.ParseUint(string(rank), 10, 8)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of %s: %w", len(entries)+1, sale, err)
		}
		entries = append(entries, queue.DrawEntry{Leaf: leaf, Priority: uint8(priority)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the entries of %s: %w", sale, err)
	}
	return entries, nil
}

// check is one thing that must hold of a draw.
type check struct {
	what, found string
	holds       bool
}

// checkDraw repeats a draw. What does not hold makes the checks after it meaningless, so they end there.
func checkDraw(draw publishedDraw, entries []queue.DrawEntry, mine *publishedEntry) []check {
	leaves, priorities := make([][32]byte, len(entries)), []byte(nil)
	for i, entry := range entries {
		leaves[i] = entry.Hash()
		if entry.Priority > 0 {
			if priorities == nil {
				priorities = make([]byte, len(entries))
			}
			priorities[i] = entry.Priority
		}
	}
	var checks []check
	holds := func(what, found string, ok bool) bool {
		checks = append(checks, check{what, found, ok})
		return ok
	}
	if !holds("commitment", "the secret is the one that was committed to", queue.Commitment(draw.Secret) == draw.Commitment) ||
		!holds("beacon", "the seed depends on the secret and the entries alone", draw.Beacon == queue.NoBeacon && draw.Value == "") ||
		!holds("entries", words.Plural(len(leaves), "is", "are")+" published, as many as were frozen", len(leaves) == draw.Count) ||
		!holds("root", "the entries have the root that was published", queue.NewMerkleTree(leaves).Root() == draw.Root) ||
		!holds("seed", "it follows from the secret and the root", queue.DrawSeed(draw.Secret, draw.Root, draw.Value) == draw.Seed) {
		return checks
	}
	order := queue.DrawOrder(draw.Seed, len(leaves))
	queue.RankOrder(order, priorities)
	if found := words.Plural(len(order), "place is", "places are") + " drawn"; priorities == nil {
		holds("order", found, true)
	} else {
		holds("order", found+", and those of a higher priority come first", true)
	}
	if mine == nil {
		return checks
	}
	path := make([][32]byte, len(mine.Path))
	for i, hash := range mine.Path {
		path[i] = hash
	}
	nonce, err := hex.DecodeString(mine.Nonce)
	_ = holds("your entry", "it is made of your user id and your nonce",
		err == nil && len(nonce) == 16 && queue.Leaf(mine.User, [16]byte(nonce)) == mine.Leaf) &&
		holds("your path", "your entry is among those that were frozen",
			mine.Count == draw.Count && queue.VerifyPath(draw.Root, queue.DrawEntry{Leaf: mine.Leaf, Priority: mine.Priority}.Hash(), mine.Index, mine.Count, path)) &&
		holds("your place", fmt.Sprintf("number %d is what was drawn for your entry", mine.Number),
			mine.Number >= 1 && mine.Number <= len(order) && int(order[mine.Number-1]) == mine.Index)
	return checks
}

// printChecks prints what was checked, and fails when something does not hold.
func printChecks(out io.Writer, checks []check) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		verdict := "holds"
		if !c.holds {
			verdict = "DOES NOT HOLD"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.what, verdict, c.found)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if last := checks[len(checks)-1]; !last.holds {
		return errors.New("the draw does not hold: " + last.what)
	}
	return nil
}
