package server

import (
	"bytes"
	"context"
	"encoding/csv"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/labstack/echo/v5"

	"sluice/queue"
)

const (
	// exportPage is how many orders are read and sent at once.
	exportPage = 1000
	// exportTime is how a time is written: RFC 3339 in UTC, with the milliseconds that it has.
	exportTime = "2006-01-02T15:04:05.000Z07:00"
)

// exportOrders is GET /admin/sales/{sale}/orders.csv: all orders that have a row, the oldest first, a page at a time, so
// that a sale of any size takes the same memory.
func (s *Server) exportOrders(c *echo.Context) error {
	id := c.Param("sale")
	ctx, cancel := context.WithCancel(c.Request().Context())
	defer cancel()
	// Each reading has its own limit; sending, for which the client takes its time, is none of it.
	late := time.AfterFunc(readTimeout, cancel)
	defer late.Stop()
	if err := s.storedSale(ctx, id); err != nil {
		return err
	}
	e := &export{c: c}
	err := s.opts.Sales.EachOrder(ctx, id, exportPage, func(page []queue.Order) error {
		late.Stop()
		defer late.Reset(readTimeout)
		return e.send(page)
	})
	switch {
	case err == nil && e.stream == nil:
		return e.send(nil) // the header at least
	case err != nil && e.stream != nil:
		// Half a file must not look like a whole one: the connection is cut, and the client sees that.
		if c.Request().Context().Err() == nil {
			s.logFailure(c, err)
		}
		panic(http.ErrAbortHandler)
	}
	return err
}

// export is one CSV file on its way.
type export struct {
	c      *echo.Context
	stream *stream // nil before the first page
}

// send sends a page, the first one with what comes before it: until then, trouble can still be told as such.
func (e *export) send(page []queue.Order) error {
	var text bytes.Buffer
	rows := csv.NewWriter(&text)
	rows.UseCRLF = true // RFC 4180
	if e.stream == nil {
		header := e.c.Response().Header()
		header.Set(echo.HeaderContentType, "text/csv; charset=utf-8")
		header.Set(echo.HeaderContentDisposition, `attachment; filename="`+e.c.Param("sale")+`-orders.csv"`)
		e.stream = newStream(e.c)
		_ = rows.Write([]string{"id", "sale", "item", "user", "qty", "status", "created_at", "pay_by", "paid_at"}) // a buffer never fails
	}
	for _, o := range page {
		_ = rows.Write([]string{
			cell(o.ID), cell(o.Sale), cell(o.Item), cell(o.User), strconv.FormatInt(o.Qty, 10), cell(string(o.Status)),
			moment(o.CreatedAt), moment(o.PayBy), moment(o.PaidAt),
		})
	}
	rows.Flush()
	if _, err := e.stream.Write(text.Bytes()); err != nil {
		return err
	}
	return e.stream.flush()
}

// formula is where a spreadsheet may begin to read a formula: at the beginning of a cell, which may be quoted or have space,
// or what is not seen, before it. Where a comma is for decimals, spreadsheets divide cells at semicolons, whatever quotes stand
// around those; where people write full-width signs, they take these for the usual ones.
var formula = regexp.MustCompile(`(^|;)([\s\p{Z}\p{Cf}"]*[=+\-@＝＋－＠\t\r])`)

// cell is a text that no spreadsheet runs as a formula: users choose their ids, and operators open the file.
func cell(text string) string { return formula.ReplaceAllString(text, "$1'$2") }

// moment is ms since the epoch as a time, "" for none.
func moment(ms int64) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(exportTime)
}
