package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"sluice/queue"
)

// Draws is where lotteries are kept. worker.Store is one. Each of its writes leaves alone what is kept already and returns
// what is, so that all who draw the same lottery go on with the same.
type Draws interface {
	MakeDraw(ctx context.Context, sale string, secret [32]byte, beacon string) (queue.Draw, error)
	DrawOf(ctx context.Context, sale string) (queue.Draw, bool, error)
	FreezeDraw(ctx context.Context, draw queue.Draw) (queue.Draw, error)
	SealDraw(ctx context.Context, draw queue.Draw) (queue.Draw, error)
}

// How often a node tries a draw that fails, and how long it keeps other nodes from doing the same work.
const (
	drawAgain   = time.Second
	drawLease   = 10 * time.Second
	drawTimeout = time.Minute
)

// commit makes the secret of a lottery, once, and notes its hash in the settings of the sale. A lobby that priorities put in
// order is kept where draws are, so it gets one too, which decides nothing.
func (s *Server) commit(ctx context.Context, sale *queue.Sale) error {
	sale.Commitment = ""
	if !sale.Sorted() {
		return nil
	}
	if s.opts.Draws == nil {
		return errNoDraws()
	}
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return fmt.Errorf("draw the secret of sale %s: %w", sale.ID, err)
	}
	draw, err := s.opts.Draws.MakeDraw(ctx, sale.ID, secret, queue.NoBeacon)
	if err != nil {
		return err
	}
	if sale.Line.Order == queue.Lottery {
		commitment := queue.Commitment(draw.Secret)
		sale.Commitment = hex.EncodeToString(commitment[:])
	}
	return nil
}

func errNoDraws() error {
	return invalid("line.order and access.codes: this server cannot draw lotteries, nor put a lobby in order by priority")
}

// drawer draws the lotteries of sales that have opened, and puts lobbies in order by priority. Every node has one; which of them does it makes no difference.
type drawer struct {
	server *Server

	mu   sync.Mutex
	busy map[string]bool
}

// wake begins to draw the lottery of a sale, unless that is going on.
func (d *drawer) wake(sale string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[sale] || d.server.opts.Draws == nil {
		return
	}
	d.busy[sale] = true
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), drawTimeout)
		defer cancel()
		if err := d.draw(ctx, sale); err != nil && !queue.IsOver(err) {
			d.server.log.Error("a lottery cannot be drawn yet; it is tried again", "sale", sale, "error", err)
			time.Sleep(drawAgain)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.busy, sale)
	}()
}

// draw freezes the entries, keeps their root, then the seed, and then brings the numbers to Redis. Whoever dies in between,
// or does it at the same time, changes nothing: each step takes what is kept, and the seed follows from the secret and
// the root.
func (d *drawer) draw(ctx context.Context, sale string) error {
	s := d.server
	settings, err := s.settings(ctx, sale)
	if err != nil {
		return err
	}
	first, err := s.line.Lease(ctx, "draw:"+sale, s.leaseName, drawLease)
	if err != nil || !first {
		return err
	}
	draw, there, err := s.opts.Draws.DrawOf(ctx, sale)
	if err == nil && !there {
		err = fmt.Errorf("the sale %s has no secret: apply it again", sale)
	}
	if err != nil {
		return err
	}
	begun := time.Now()
	draw, due, err := s.line.Freeze(ctx, draw)
	if err != nil || !due {
		return err
	}
	if !draw.Frozen() {
		tree, err := treeOf(ctx, s.line, &draw)
		if err != nil {
			return err
		}
		draw.Root = tree.Root()
		if draw, err = s.opts.Draws.FreezeDraw(ctx, draw); err != nil {
			return err
		}
	}
	if !draw.Drawn() {
		draw.Seed = queue.DrawSeed(draw.Secret, draw.Root, draw.Value)
		if draw, err = s.opts.Draws.SealDraw(ctx, draw); err != nil {
			return err
		}
	}
	rooted := time.Now()
	table := draw.Table(settings.Line.Order)
	shuffled := time.Now()
	if err := s.line.Draw(ctx, draw, table); err != nil {
		return err
	}
	s.opts.Snapshots.Kick(sale)
	s.log.Info("the lobby is put in order", "sale", sale, "order", settings.Line.Order, "entries", draw.Live, "root", hex.EncodeToString(draw.Root[:]),
		"rooted_ms", rooted.Sub(begun).Milliseconds(), "shuffled_ms", shuffled.Sub(rooted).Milliseconds(),
		"written_ms", time.Since(shuffled).Milliseconds())
	return nil
}

// treeOf reads the entries of a frozen draw.
func treeOf(ctx context.Context, line line, draw *queue.Draw) (*queue.MerkleTree, error) {
	leaves := make([][32]byte, 0, draw.Live)
	err := line.Entries(ctx, draw, func(page []queue.DrawEntry) error {
		for _, entry := range page {
			leaves = append(leaves, entry.Hash())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return queue.NewMerkleTree(leaves), nil
}
