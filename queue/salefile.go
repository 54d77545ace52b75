package queue

import (
	"fmt"
	"math"
	"strings"
	"time"

	"sluice/words"
)

// Defaults of a sale file, and the bounds of its figures.
const (
	defaultLimit  = 1
	defaultRate   = 0
	defaultActive = 0
	defaultRatio  = 5
	defaultTurn   = 60 * time.Second
	defaultGrace  = 10 * time.Minute
	defaultHold   = 15 * time.Minute

	mostItems = 50
	mostUnits = 100_000_000
	mostLimit = 1000
	mostTitle = 200
	mostRate  = 100_000
)

// SaleFile is a sale as a file says it, where times may still be relative to the moment of the first apply.
type SaleFile struct {
	sale          Sale
	opens, closes moment
}

// moment is a point in time as a file gives it.
type moment struct {
	at       time.Time
	after    time.Duration
	relative bool
	node     *node
}

// ParseSale reads a sale file, YAML or JSON. An error is Invalid and names the line and the field, and says what to
// write instead. Nothing is filled in silently but what the contract names as the default.
func ParseSale(data []byte) (*SaleFile, error) {
	root, err := parseNode(data)
	if err != nil {
		return nil, err
	}
	d := &decoder{}
	f := &SaleFile{}
	s := &f.sale
	d.fields(root, map[string]func(*node){
		"id":        func(n *node) { s.ID = d.id(n) },
		"title":     func(n *node) { s.Title = d.title(n) },
		"items":     func(n *node) { s.Items = d.items(n) },
		"currency":  func(n *node) { s.Currency = d.currency(n) },
		"opens_at":  func(n *node) { f.opens = d.moment(n) },
		"closes_at": func(n *node) { f.closes = d.moment(n) },
		"lobby":     func(n *node) { s.Lobby = d.duration(n, 0, 30*24*time.Hour) },
		"limit":     func(n *node) { s.Limit = d.int(n, 1, mostLimit) },
		"line":      func(n *node) { d.line(n, &s.Line) },
		"hold":      func(n *node) { s.Hold = d.duration(n, 0, 30*24*time.Hour) },
		"access":    func(n *node) { d.access(n, &s.Access) },
	}, func(missing func(string)) {
		for _, name := range []string{"id", "items", "opens_at", "closes_at"} {
			missing(name)
		}
		defaults(root, s)
	})
	if d.err == nil && s.Line.Order == Off && !s.Access.open() {
		d.fail(root.child("access"), "needs a line: with line.order off there are no seats that it could decide about, and everybody may grab")
	}
	if d.err == nil && !f.opens.relative && !f.closes.relative && !f.closes.at.After(f.opens.at) {
		d.fail(f.closes.node, "must be later than opens_at")
	}
	if d.err == nil && f.opens.relative && f.closes.relative && f.closes.after <= f.opens.after {
		d.fail(f.closes.node, "must be later than opens_at")
	}
	if d.err != nil {
		return nil, d.err
	}
	return f, nil
}

// ID is the id of the sale that the file is about.
func (f *SaleFile) ID() string { return f.sale.ID }

// defaults fills in what the file leaves out.
func defaults(root *node, s *Sale) {
	if root.child("limit") == nil {
		s.Limit = defaultLimit
	}
	if root.child("hold") == nil {
		s.Hold = Duration(defaultHold)
	}
	line := root.child("line")
	if line.child("order") == nil {
		s.Line.Order = FIFO
	}
	if line.child("rate") == nil {
		s.Line.Rate = defaultRate
	}
	if line.child("active") == nil {
		s.Line.Active = defaultActive
	}
	if line.child("ratio") == nil {
		s.Line.Ratio = defaultRatio
	}
	if line.child("turn") == nil {
		s.Line.Turn = Duration(defaultTurn)
	}
	if line.child("grace") == nil {
		s.Line.Grace = Duration(defaultGrace)
	}
}

// Resolve turns the file into settings. A time like "+15s" counts from now; where the sale exists already, it keeps the
// moment that it resolved to then, so that applying a file again does not move the sale. Errors: Invalid.
func (f *SaleFile) Resolve(now time.Time, before *Sale) (Sale, error) {
	s := f.sale
	resolve := func(m moment, kept func(*Sale) time.Time) time.Time {
		if !m.relative {
			return m.at
		}
		if before != nil {
			return kept(before)
		}
		return now.Add(m.after)
	}
	s.OpensAt = resolve(f.opens, func(b *Sale) time.Time { return b.OpensAt }).UTC().Truncate(time.Millisecond)
	s.ClosesAt = resolve(f.closes, func(b *Sale) time.Time { return b.ClosesAt }).UTC().Truncate(time.Millisecond)
	if !s.ClosesAt.After(s.OpensAt) {
		d := &decoder{}
		d.fail(f.closes.node, fmt.Sprintf("is %s, which must be later than opens_at, %s",
			s.ClosesAt.Format(time.RFC3339), s.OpensAt.Format(time.RFC3339)))
		return Sale{}, d.err
	}
	if n, kept := s.Access.Codes.kept(); kept {
		if before == nil || int64(len(before.Access.Codes)) != n {
			have := 0
			if before != nil {
				have = len(before.Access.Codes)
			}
			return Sale{}, &Error{Code: Conflict, Message: fmt.Sprintf(
				"access.codes says that %s kept, and the sale has %d: read the sale again, or list the codes", words.Plural(n, "code is", "codes are"), have)}
		}
		s.Access.Codes = before.Access.Codes
	}
	return s, nil
}

// items reads the list of items.
func (d *decoder) items(n *node) []Item {
	list := d.list(n)
	if d.err == nil && (len(list) == 0 || len(list) > mostItems) {
		d.fail(n, fmt.Sprintf("must have from 1 to %d items, not %d", mostItems, len(list)))
	}
	seen := map[string]int{}
	items := make([]Item, 0, len(list))
	for _, entry := range list {
		var item Item
		d.fields(entry, map[string]func(*node){
			"id":    func(n *node) { item.ID = d.id(n) },
			"title": func(n *node) { item.Title = d.title(n) },
			"stock": func(n *node) { item.Stock = d.int(n, 0, mostUnits) },
			"price": func(n *node) { item.Price = d.int(n, 0, math.MaxInt64) },
		}, func(missing func(string)) {
			missing("stock")
			if entry.child("id") == nil {
				if len(list) > 1 {
					missing("id")
				}
				item.ID = MainItem
			}
		})
		if line, twice := seen[item.ID]; twice && d.err == nil {
			d.fail(entry, fmt.Sprintf("has the id %q, which the item on line %d has already", item.ID, line))
		}
		seen[item.ID] = entry.line
		items = append(items, item)
	}
	return items
}

// line reads the admission policy.
func (d *decoder) line(n *node, line *Line) {
	d.fields(n, map[string]func(*node){
		"order": func(n *node) {
			switch text := d.text(n); LineOrder(text) {
			case FIFO, Lottery, Off:
				line.Order = LineOrder(text)
			default:
				d.fail(n, fmt.Sprintf("must be fifo, lottery or off, not %q", text))
			}
		},
		"rate":   func(n *node) { line.Rate = d.int(n, 0, mostRate) },
		"active": func(n *node) { line.Active = d.int(n, 0, mostUnits) },
		"ratio":  func(n *node) { line.Ratio = d.float(n, 0, 1e6) },
		"turn":   func(n *node) { line.Turn = d.duration(n, time.Second, 24*time.Hour) },
		"grace":  func(n *node) { line.Grace = d.duration(n, 0, 24*time.Hour) },
	}, nil)
}

// currency reads an ISO 4217 code.
func (d *decoder) currency(n *node) string {
	text := d.text(n)
	if d.err == nil && (len(text) != 3 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		d.fail(n, fmt.Sprintf("must be a currency code of three capital letters, like CNY, not %q", text))
	}
	return text
}

// id reads an id of a sale or an item.
func (d *decoder) id(n *node) string {
	text := d.text(n)
	if d.err == nil && !ValidID(text) {
		d.fail(n, fmt.Sprintf("must be 1 to 63 of a-z, 0-9 and -, not beginning with -, not %q", text))
	}
	return text
}

// ValidID says whether text can be the id of a sale or an item: ^[a-z0-9][a-z0-9-]{0,62}$.
func ValidID(text string) bool {
	if len(text) == 0 || len(text) > 63 || text[0] == '-' {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// title reads a text in one or several languages.
func (d *decoder) title(n *node) Text {
	if n.children == nil {
		return Text{"": d.line1(n)}
	}
	title := Text{}
	for _, entry := range n.children {
		title[entry.name] = d.line1(entry.value)
	}
	return title
}

// line1 reads a text that is shown on one line.
func (d *decoder) line1(n *node) string {
	text := d.text(n)
	if d.err == nil && len([]rune(text)) > mostTitle {
		d.fail(n, fmt.Sprintf("must be at most %d characters long", mostTitle))
	}
	return text
}

// moment reads a time: RFC 3339, or "+15s" from the first apply.
func (d *decoder) moment(n *node) moment {
	text := d.text(n)
	m := moment{node: n}
	var err error
	if rest, relative := strings.CutPrefix(text, "+"); relative {
		m.relative = true
		m.after, err = time.ParseDuration(rest)
	} else {
		m.at, err = time.Parse(time.RFC3339, text)
	}
	if d.err == nil && err != nil {
		d.fail(n, fmt.Sprintf("must be a time like 2026-12-01T12:00:00+08:00, or like +15s from now, not %q", text))
	}
	return m
}
