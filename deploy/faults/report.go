package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// result is what became of one schedule.
type result struct {
	seed    int64
	commit  string
	verdict string
	grabs   int
	orders  int
	paid    int
	settled string // how long it took after the last fault until everything added up
	deaths  map[string]int
	events  []string
}

// line is a result for people to read while the suite runs.
func (r result) line() string {
	died := 0
	for _, n := range r.deaths {
		died += n
	}
	return fmt.Sprintf("%s; %d grabs, %d orders, %d paid, %d processes died, settled after %s; %s",
		r.verdict, r.grabs, r.orders, r.paid, died, r.settled, strings.Join(r.events, ", "))
}

// The table of schedules and the one of points, which is made anew from it, stand between these lines of the report.
const (
	tableBegins = "<!-- schedules -->"
	tableEnds   = "<!-- end of schedules -->"
	tableHead   = "| seed | commit | verdict | grabs | orders | paid | settled after | died at | what else happened |\n|---|---|---|---|---|---|---|---|---|\n"
)

// report is the file that results are appended to; without a path they are only printed.
type report struct {
	path    string
	commit  string
	before  string
	after   string
	results []result
}

func (r *report) read() error {
	if r.path == "" {
		return nil
	}
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not there: it needs the lines %s and %s", r.path, tableBegins, tableEnds)
	}
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableBegins)
	table, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		return fmt.Errorf("%s has no place for the results: it needs the lines %s and %s", r.path, tableBegins, tableEnds)
	}
	r.before, r.after = before, after
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		seed, err := strconv.ParseInt(cells[0], 10, 64)
		if err != nil || len(cells) != 9 {
			continue // the head
		}
		one := result{seed: seed, commit: cells[1], verdict: cells[2], settled: cells[6], deaths: map[string]int{}, events: strings.Split(cells[8], ", ")}
		one.grabs, _ = strconv.Atoi(cells[3])
		one.orders, _ = strconv.Atoi(cells[4])
		one.paid, _ = strconv.Atoi(cells[5])
		for death := range strings.SplitSeq(cells[7], ", ") {
			if name, n, found := strings.Cut(death, " ×"); found {
				one.deaths[name], _ = strconv.Atoi(n)
			}
		}
		r.results = append(r.results, one)
	}
	return nil
}

func (r *report) has(seed int64) bool {
	return slices.ContainsFunc(r.results, func(one result) bool { return one.seed == seed && one.commit == r.commit && one.verdict == good })
}

// add writes a result into the file, in the place of an earlier one of the same seed.
func (r *report) add(one result) error {
	if r.path == "" {
		return nil
	}
	one.commit = r.commit
	r.results = slices.DeleteFunc(r.results, func(old result) bool { return old.seed == one.seed })
	r.results = append(r.results, one)
	slices.SortFunc(r.results, func(a, b result) int { return cmp.Compare(a.seed, b.seed) })
	var text strings.Builder
	text.WriteString(r.before + tableBegins + "\n\n")
	text.WriteString(r.summary())
	text.WriteString("\n" + tableHead)
	for _, one := range r.results {
		var deaths []string
		for _, name := range slices.Sorted(maps.Keys(one.deaths)) {
			deaths = append(deaths, fmt.Sprintf("%s ×%d", name, one.deaths[name]))
		}
		fmt.Fprintf(&text, "| %d | %s | %s | %d | %d | %d | %s | %s | %s |\n", one.seed, one.commit, one.verdict, one.grabs, one.orders,
			one.paid, one.settled, strings.Join(deaths, ", "), strings.Join(one.events, ", "))
	}
	text.WriteString("\n" + tableEnds + r.after)
	return os.WriteFile(r.path, []byte(text.String()), 0o644)
}

// summary adds the results up, and says how often a process died at each point.
func (r *report) summary() string {
	sound, grabs, orders := 0, 0, 0
	deaths := map[string]int{}
	for _, one := range r.results {
		if one.verdict == good {
			sound++
		}
		grabs += one.grabs
		orders += one.orders
		for name, n := range one.deaths {
			deaths[name] += n
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d schedules are sound, with %d grabs and %d orders.\n\n| point | processes that died there |\n|---|---|\n", sound, len(r.results), grabs, orders)
	for _, name := range slices.Sorted(maps.Keys(deaths)) {
		fmt.Fprintf(&text, "| `%s` | %d |\n", name, deaths[name])
	}
	return text.String()
}
