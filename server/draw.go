package server

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// drawView is what everybody may know of a lottery. Hashes are in hex.
type drawView struct {
	Sale       string `json:"sale"`
	State      string `json:"state"` // committed, frozen or drawn
	Commitment string `json:"commitment"`
	Beacon     string `json:"beacon"`
	Count      int64  `json:"count,omitempty"` // entries, from frozen on
	Root       string `json:"root,omitempty"`
	Priorities bool   `json:"priorities,omitempty"` // some entries have a priority
	Value      string `json:"value,omitempty"`      // of the beacon
	Secret     string `json:"secret,omitempty"`     // from drawn on
	Seed       string `json:"seed,omitempty"`
}

// entryView is the caller's own entry, and what shows that it took part.
type entryView struct {
	Sale     string   `json:"sale"`
	User     string   `json:"user"`
	Nonce    string   `json:"nonce"`
	Leaf     string   `json:"leaf"`
	Priority uint8    `json:"priority,omitempty"`
	Index    int64    `json:"index"` // among the entries, from 0
	Count    int64    `json:"count"`
	Path     []string `json:"path"`
	Number   int64    `json:"number,omitempty"` // the place that was drawn, from 1
}

// showDraw is GET /sales/{sale}/draw.
func (s *Server) showDraw(c *echo.Context) error {
	draw, err := s.drawings.of(c.Request().Context(), c.Param("sale"))
	if err != nil {
		return err
	}
	commitment := queue.Commitment(draw.Secret)
	view := drawView{Sale: draw.Sale, State: "committed", Commitment: hex.EncodeToString(commitment[:]), Beacon: draw.Beacon}
	if draw.Frozen() {
		view.State, view.Count, view.Root = "frozen", draw.Live, hex.EncodeToString(draw.Root[:])
		view.Priorities = draw.Priorities() != nil
	}
	if draw.Drawn() {
		view.State, view.Value = "drawn", draw.Value
		view.Secret, view.Seed = hex.EncodeToString(draw.Secret[:]), hex.EncodeToString(draw.Seed[:])
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=1")
	return c.JSON(http.StatusOK, view)
}

// listEntrants is GET /sales/{sale}/draw/entrants: the entry of each who took part, a line each, in hex, and behind a space
// the priority of those who have one.
func (s *Server) listEntrants(c *echo.Context) error {
	ctx := c.Request().Context()
	draw, err := s.frozenDraw(ctx, c.Param("sale"))
	if err != nil {
		return err
	}
	tree, err := s.drawings.tree(ctx, draw) // is refused where Redis has lost the entries: others would be published as theirs
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMETextPlainCharsetUTF8)
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=3600")
	hideAllowance(c)
	// A million entries take a while, and longer than other answers may.
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(10 * time.Minute))
	w := bufio.NewWriterSize(c.Response(), 64<<10)
	index := 0
	err = s.line.Entries(ctx, draw, func(entries []queue.DrawEntry) error {
		var line [65]byte
		line[64] = '\n'
		for _, entry := range entries {
			if entry.Hash() != tree.Leaf(index) { // lost since
				return notFrozen(draw)
			}
			index++
			hex.Encode(line[:], entry.Leaf[:])
			text := line[:]
			if entry.Priority > 0 {
				text = fmt.Appendf(nil, "%s %d\n", line[:64], entry.Priority)
			}
			if _, err := w.Write(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = w.Flush()
	}
	switch {
	case err == nil:
		return nil
	case !begun(c):
		return err
	}
	// A part of the list must not look like the whole one, from which another result would follow: the connection is cut.
	if ctx.Err() == nil {
		s.logFailure(c, err)
	}
	panic(http.ErrAbortHandler)
}

// listPriorities is GET /sales/{sale}/draw/priorities: a byte for each entry, its priority; nothing when none has any. It is for
// those who repeat the draw without all the entries.
func (s *Server) listPriorities(c *echo.Context) error {
	draw, err := s.frozenDraw(c.Request().Context(), c.Param("sale"))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=3600")
	return c.Blob(http.StatusOK, echo.MIMEOctetStream, draw.Priorities())
}

// showEntry is GET /sales/{sale}/draw/mine.
func (s *Server) showEntry(c *echo.Context) error {
	ctx, sale := c.Request().Context(), c.Param("sale")
	who, err := s.caller(c)
	if err != nil {
		return err
	}
	draw, err := s.frozenDraw(ctx, sale)
	if err != nil {
		return err
	}
	seat, err := s.line.Look(ctx, sale, who.User)
	if err != nil {
		return fmt.Errorf("look at a seat of sale %s: %w", sale, err)
	}
	index := draw.Index(seat.Ticket)
	if index < 0 {
		return &queue.Error{Code: queue.Conflict, Message: "you have no entry in this draw: you hold no place, took it after the entries were frozen, or the line was lost since"}
	}
	tree, err := s.drawings.tree(ctx, draw)
	if err != nil {
		return err
	}
	entry := queue.DrawEntry{Priority: draw.Priority(seat.Ticket)}
	nonce, known := s.current().identities.nonceOf(tree.Leaf(int(index)), entry.Priority, sale, who.User)
	if !known {
		return fmt.Errorf("the entry of ticket %d of sale %s is not the one of its user", seat.Ticket, sale)
	}
	entry.Leaf = queue.Leaf(who.User, nonce)
	view := entryView{
		Sale: sale, User: who.User, Nonce: hex.EncodeToString(nonce[:]), Leaf: hex.EncodeToString(entry.Leaf[:]), Priority: entry.Priority,
		Index: index, Count: draw.Live, Path: []string{}, Number: seat.Number,
	}
	for _, hash := range tree.Path(int(index)) {
		view.Path = append(view.Path, hex.EncodeToString(hash[:]))
	}
	return c.JSON(http.StatusOK, view)
}

// frozenDraw is the draw of a sale whose entries are known.
func (s *Server) frozenDraw(ctx context.Context, sale string) (*queue.Draw, error) {
	draw, err := s.drawings.of(ctx, sale)
	if err == nil && !draw.Frozen() {
		err = &queue.Error{Code: queue.Conflict, Message: "the entries of this draw are not frozen yet: come back once the sale has opened"}
	}
	return draw, err
}

// notFrozen is the error of entries that Redis does not have any more.
func notFrozen(draw *queue.Draw) error {
	return fmt.Errorf("the entries of sale %s are not those that were frozen: Redis has lost them", draw.Sale)
}

// drawings keeps what was read of draws: a drawn one never changes, and of others a second is soon enough.
type drawings struct {
	server *Server

	mu    sync.Mutex
	draws map[string]keptDraw
	trees map[string]*queue.MerkleTree // by root
}

type keptDraw struct {
	draw *queue.Draw
	at   time.Time
}

// of is the draw of a sale. Errors: NoSuchSale, Conflict for a sale without a lottery. It may block on the database.
func (d *drawings) of(ctx context.Context, sale string) (*queue.Draw, error) {
	settings, err := d.server.settings(ctx, sale)
	if err != nil {
		return nil, err
	}
	if settings.Line.Order != queue.Lottery || d.server.opts.Draws == nil {
		return nil, &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf("the sale %q draws no lottery", sale)}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.server.now()
	if kept, ok := d.draws[sale]; ok && (kept.draw.Drawn() || now.Sub(kept.at) < time.Second) {
		return kept.draw, nil
	}
	draw, there, err := d.server.opts.Draws.DrawOf(ctx, sale)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("the sale %s has no secret", sale)
	}
	d.draws[sale] = keptDraw{&draw, now}
	return &draw, nil
}

// tree is over the entries of a frozen draw. It is read once, in seconds for a million of them.
func (d *drawings) tree(ctx context.Context, draw *queue.Draw) (*queue.MerkleTree, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	root := string(draw.Root[:])
	if tree := d.trees[root]; tree != nil {
		return tree, nil
	}
	tree, err := treeOf(ctx, d.server.line, draw)
	if err != nil {
		return nil, err
	}
	if tree.Root() != draw.Root {
		return nil, notFrozen(draw)
	}
	d.trees[root] = tree
	return tree, nil
}
