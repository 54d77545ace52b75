package server

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

// saleView is what everybody may know of a sale. Times and durations are milliseconds.
type saleView struct {
	ID         string           `json:"id"`
	Title      wireText         `json:"title,omitempty"`
	Items      []itemView       `json:"items"`
	Currency   string           `json:"currency,omitempty"`
	OpensAt    int64            `json:"opens_at"`
	ClosesAt   int64            `json:"closes_at"`
	LobbyAt    int64            `json:"lobby_at,omitempty"` // when joining begins; absent = it may be done at once
	State      queue.State      `json:"state"`
	Stock      queue.StockState `json:"stock"`
	Waiting    int64            `json:"waiting"` // people in the line
	Rate       float64          `json:"rate"`    // turns given a second, as seen lately
	Limit      int64            `json:"limit"`   // units one order may have
	Line       lineView         `json:"line"`
	Hold       int64            `json:"hold"`             // how long an order may stay unpaid; 0 = orders need no payment
	Access     *accessView      `json:"access,omitempty"` // what a new seat is asked for; absent = nothing
	ServerTime int64            `json:"server_time,omitempty"`
}

// itemView is one item of a saleView.
type itemView struct {
	ID    string   `json:"id"`
	Title wireText `json:"title,omitempty"`
	Price int64    `json:"price,omitempty"` // minor units of the currency
	Stock int64    `json:"stock"`           // units left
	Total int64    `json:"total"`
}

type lineView struct {
	Order      queue.LineOrder `json:"order"`
	Grace      int64           `json:"grace,omitempty"`      // how long a seat is kept while nobody of it is here
	Commitment string          `json:"commitment,omitempty"` // of a lottery: the SHA-256 of its secret, in hex
	Beacon     string          `json:"beacon,omitempty"`     // what else its seed depends on
}

// viewOf is the public view of a sale, without the time.
func viewOf(snap *queue.Snapshot) saleView {
	sale := snap.Sale
	view := saleView{
		ID:       sale.ID,
		Title:    wireText(sale.Title),
		Items:    make([]itemView, len(sale.Items)),
		Currency: sale.Currency,
		OpensAt:  sale.OpensAt.UnixMilli(),
		ClosesAt: sale.ClosesAt.UnixMilli(),
		State:    snap.Told(),
		Stock:    snap.Stock,
		Waiting:  snap.Waiting(),
		Rate:     snap.Rate,
		Limit:    sale.Limit,
		Line:     lineView{Order: sale.Line.Order, Grace: sale.Line.Grace.Milliseconds()},
		Hold:     sale.Hold.Milliseconds(),
		Access:   viewOfAccess(&sale.Access),
	}
	if sale.Line.Order == queue.Lottery {
		view.Line.Commitment, view.Line.Beacon = sale.Commitment, queue.NoBeacon
	}
	if sale.Lobby > 0 {
		view.LobbyAt = sale.OpensAt.Add(-time.Duration(sale.Lobby)).UnixMilli()
	}
	for i, item := range sale.Items {
		view.Items[i] = itemView{ID: item.ID, Title: wireText(item.Title), Price: item.Price, Stock: snap.Items[item.ID], Total: item.Stock}
	}
	return view
}

// wireText is a text as a sale file would have it: one string where it was given as one.
type wireText queue.Text

// MarshalJSON writes the string, or one for each language.
func (t wireText) MarshalJSON() ([]byte, error) {
	if text, ok := t[""]; ok && len(t) == 1 {
		return json.Marshal(text)
	}
	return json.Marshal(map[string]string(t))
}

// listSales is GET /sales.
func (s *Server) listSales(c *echo.Context) error {
	snaps := s.opts.Snapshots.All()
	views := make([]saleView, 0, len(snaps))
	for _, snap := range snaps {
		if snap != nil {
			views = append(views, viewOf(snap))
		}
	}
	slices.SortFunc(views, func(a, b saleView) int { return strings.Compare(a.ID, b.ID) })
	fingerprint, err := etagOf(views)
	if err != nil {
		return err
	}
	return s.answerPublic(c, fingerprint, struct {
		Sales      []saleView `json:"sales"`
		ServerTime int64      `json:"server_time"`
	}{views, s.now().UnixMilli()})
}

// showSale is GET /sales/{sale}.
func (s *Server) showSale(c *echo.Context) error {
	snap, err := s.snapshot(c.Request().Context(), c.Param("sale"))
	if queue.IsOver(err) {
		snap, err = s.lastOf(c.Request().Context(), c.Param("sale"))
	}
	if err != nil {
		return err
	}
	view := viewOf(snap)
	fingerprint, err := etagOf(view)
	if err != nil {
		return err
	}
	view.ServerTime = s.now().UnixMilli()
	return s.answerPublic(c, fingerprint, view)
}

// answerPublic answers with body, or with 304 to a caller who has it already.
func (s *Server) answerPublic(c *echo.Context, etag string, body any) error {
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "public, max-age=1")
	header.Set("ETag", etag)
	if matches(c.Request().Header.Get("If-None-Match"), etag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.JSON(http.StatusOK, body)
}

// etagOf is a tag of what view says. It is a weak one, since the time in the answer is not part of it.
func etagOf(view any) (string, error) {
	data, err := json.Marshal(view)
	if err != nil {
		return "", fmt.Errorf("write a sale: %w", err)
	}
	hash := fnv.New64a()
	_, _ = hash.Write(data) // never fails
	return `W/"` + strconv.FormatUint(hash.Sum64(), 36) + `"`, nil
}

// matches says whether an If-None-Match header names etag, by weak comparison.
func matches(header, etag string) bool {
	if header == "" {
		return false
	}
	opaque := strings.TrimPrefix(etag, "W/")
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == opaque {
			return true
		}
	}
	return false
}

// firstLook is how long somebody who asks for a sale waits for this node to read it the first time.
const firstLook = 2 * time.Second

// snapshot is the newest of a sale: a *queue.Error NoSuchSale when there is no such sale, Unavailable when this node
// could not read it yet.
func (s *Server) snapshot(ctx context.Context, sale string) (*queue.Snapshot, error) {
	if snap := s.opts.Snapshots.Snapshot(sale); snap != nil {
		return snap, nil
	}
	if _, err := s.settings(ctx, sale); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstLook)
	defer cancel()
	if s.opts.Snapshots == Snapshots(s.registry) {
		if snap := s.registry.await(ctx, sale); snap != nil {
			return snap, nil
		}
	}
	return nil, &queue.Error{Code: queue.Unavailable, Message: "the sale is being read; try again in a moment"}
}

// settings are those of a sale, as this node knows them or, for a sale that it has not read yet, from Redis.
func (s *Server) settings(ctx context.Context, sale string) (*queue.Sale, error) {
	if snap := s.opts.Snapshots.Snapshot(sale); snap != nil {
		return snap.Sale, nil
	}
	settings, err := s.fromRedis(ctx, sale)
	if err != nil {
		return nil, err
	}
	return &settings, nil
}

func noSuchSale(sale string) error {
	return &queue.Error{Code: queue.NoSuchSale, Message: fmt.Sprintf("there is no sale %q", clip(sale))}
}

// clip keeps what somebody sent short enough to be repeated to them.
func clip(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}
