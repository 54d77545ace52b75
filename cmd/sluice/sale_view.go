package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"sluice/queue"
	"sluice/words"
)

// saleView is what the commands show of a sale. A figure that the server does not give is nil and not shown.
type saleView struct {
	ID       string     `json:"id"`
	Title    titleText  `json:"title"`
	State    string     `json:"state"`
	Stock    any        `json:"stock"`
	OpensAt  wireTime   `json:"opens_at"`
	ClosesAt wireTime   `json:"closes_at"`
	Limit    int64      `json:"limit"`
	Hold     string     `json:"hold"`
	Items    []itemView `json:"items"`
	Line     struct {
		Order  string  `json:"order"`
		Rate   int64   `json:"rate"`
		Active int64   `json:"active"`
		Ratio  float64 `json:"ratio"`
		Turn   string  `json:"turn"`
		Grace  string  `json:"grace"`
	} `json:"line"`
	Access  queue.Access `json:"access"`
	Waiting *int64       `json:"waiting"`
	Turns   *int64       `json:"turns"`

	Archived *struct {
		At     wireTime `json:"at"`
		Purge  bool     `json:"purge"`
		Purged wireTime `json:"purged"`
	} `json:"archived"`
}

// itemView is one item of a saleView.
type itemView struct {
	ID    string    `json:"id"`
	Title titleText `json:"title"`
	Stock any       `json:"stock"`
	Left  *int64    `json:"left"`
	Price int64     `json:"price"`
}

// saleList is the list of sales, as an array or in the field `sales`.
type saleList []saleView

// UnmarshalJSON reads both forms.
func (l *saleList) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return json.Unmarshal(data, (*[]saleView)(l))
	}
	var wrapped struct {
		Sales []saleView `json:"sales"`
	}
	if err := json.Unmarshal(data, &wrapped); err != nil {
		return err
	}
	*l = wrapped.Sales
	return nil
}

// titleText is a title: one string, or a string by language, of which the terminal shows English or else the first.
type titleText string

// UnmarshalJSON reads both forms.
func (t *titleText) UnmarshalJSON(data []byte) error {
	var plain string
	if json.Unmarshal(data, &plain) == nil {
		*t = titleText(plain)
		return nil
	}
	var byLanguage map[string]string
	if err := json.Unmarshal(data, &byLanguage); err != nil {
		return err
	}
	languages := slices.Sorted(maps.Keys(byLanguage))
	if len(languages) > 0 {
		*t = titleText(firstOf(byLanguage["en"], byLanguage[languages[0]]))
	}
	return nil
}

// wireTime is a time as milliseconds since the epoch or in RFC 3339; zero when the server gives none.
type wireTime struct{ time.Time }

// UnmarshalJSON reads both forms.
func (t *wireTime) UnmarshalJSON(data []byte) error {
	if ms, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		if ms != 0 {
			t.Time = time.UnixMilli(ms)
		}
		return nil
	}
	return json.Unmarshal(data, &t.Time)
}

// printSales prints the table of `sluice sale list`, or that there are none.
func printSales(out io.Writer, sales []saleView, now time.Time, none string) error {
	if len(sales) == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	// The title stands last: a wide character would move the columns after it.
	fmt.Fprintln(table, "SALE\tSTATE\tOPENS\tCLOSES\tWAITING\tTITLE")
	for _, sale := range sales {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", sale.ID, stateOf(sale),
			localAndRelative(sale.OpensAt.Time, now), localAndRelative(sale.ClosesAt.Time, now), figure(sale.Waiting), sale.Title)
	}
	return table.Flush()
}

// printSale prints one sale, a line for each fact.
func printSale(out io.Writer, sale saleView, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", args...) }
	line("sale", "%s", sale.ID)
	if sale.Title != "" {
		line("title", "%s", sale.Title)
	}
	line("state", "%s", stateOf(sale))
	line("opens", "%s", localAndRelative(sale.OpensAt.Time, now))
	line("closes", "%s", localAndRelative(sale.ClosesAt.Time, now))
	if l := sale.Line; l.Order != "" {
		policy := l.Order
		if policy != "off" {
			policy += fmt.Sprintf(", rate %s, active %s, ratio %s, turn %s, grace %s", bound(float64(l.Rate)), bound(float64(l.Active)),
				bound(l.Ratio), asWritten(l.Turn), asWritten(l.Grace))
		}
		line("line", "%s", policy)
	}
	if sale.Limit > 0 {
		line("limit", "%d an order", sale.Limit)
	}
	if sale.Hold != "" {
		line("hold", "%s", asWritten(sale.Hold))
	}
	if rules := accessWords(sale.Access); rules != "" {
		line("access", "%s", rules)
	}
	if a := sale.Archived; a != nil {
		users := ""
		if a.Purge {
			users = ", its users are being purged"
		}
		if !a.Purged.IsZero() {
			users = ", its users were purged"
		}
		line("archived", "%s%s", localAndRelative(a.At.Time, now), users)
	}
	if sale.Waiting != nil || sale.Turns != nil {
		line("now", "%s waiting, %s with a turn", figure(sale.Waiting), figure(sale.Turns))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(sale.Items) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	fmt.Fprintln(table, "ITEM\tSTOCK\tLEFT\tTITLE")
	for _, item := range sale.Items {
		stock := "-"
		if item.Stock != nil {
			stock = fmt.Sprint(item.Stock)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", item.ID, stock, figure(item.Left), item.Title)
	}
	return table.Flush()
}

// accessWords is who may join, "" for everybody.
func accessWords(a queue.Access) string {
	var rules []string
	add := func(asked bool, format string, args ...any) {
		if asked {
			rules = append(rules, fmt.Sprintf(format, args...))
		}
	}
	add(a.Codes.Count() > 0, "%s", words.Count(a.Codes.Count(), "code"))
	add(len(a.Allow) > 0, "%d on the allow list", len(a.Allow))
	add(len(a.Deny) > 0, "%d on the deny list", len(a.Deny))
	add(a.SeatsPerAddress > 0, "seats of one address: %d", a.SeatsPerAddress)
	add(a.ChallengeURL != "", "challenge by %s", a.ChallengeURL)
	return strings.Join(rules, ", ")
}

// stateOf is the state of a sale, with that of its stock where the server gives one.
func stateOf(sale saleView) string {
	if stock, ok := sale.Stock.(string); ok && stock != "" && stock != "available" {
		return sale.State + ", stock " + stock
	}
	return firstOf(sale.State, "-")
}

// figure is a number, or - when there is none.
func figure(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// bound is an upper bound, where 0 means that there is none.
func bound(n float64) string {
	if n == 0 {
		return "unbounded"
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// localTime is a time in the zone of the person at the terminal.
func localTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// localAndRelative is a time in the local zone, and how far it is from now.
func localAndRelative(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	distance := t.Sub(now)
	if distance < 0 {
		return fmt.Sprintf("%s (%s ago)", localTime(t), coarse(-distance))
	}
	return fmt.Sprintf("%s (in %s)", localTime(t), coarse(distance))
}

// coarse is a duration in its two largest units, which is all that a person wants to know, without the smaller one where
// there is none of it.
func coarse(d time.Duration) string {
	const day = 24 * time.Hour
	both := func(large time.Duration, name string, small time.Duration, rest string) string {
		text := fmt.Sprintf("%d%s", d/large, name)
		if n := d % large / small; n > 0 {
			text += fmt.Sprintf(" %d%s", n, rest)
		}
		return text
	}
	switch d = d.Round(time.Second); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return both(time.Minute, "m", time.Second, "s")
	case d < day:
		return both(time.Hour, "h", time.Minute, "m")
	}
	return both(day, "d", time.Hour, "h")
}

// asWritten is a duration of the server as people write it: 15m, not 15m0s. What is no duration stays as it is.
func asWritten(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return words.Duration(d)
	}
	return firstOf(text, "-")
}
