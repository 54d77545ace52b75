package queue

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Bounds of the access rules. All codes of a sale are brought to Redis in one step, which must not hold up everybody else,
// and all that wait in line at an address are looked at when one more comes from there.
const (
	mostCodes        = 10_000
	mostListed       = 10_000
	mostUses         = 100_000_000
	mostPriority     = 255
	mostSeats        = 100
	shortestCode     = 4
	longestCode      = 64
	longestChallenge = 2048
)

// open says that the rules let everybody in.
func (a *Access) open() bool {
	return len(a.Codes)+len(a.Allow)+len(a.Deny) == 0 && a.SeatsPerAddress == 0 && a.ChallengeURL == ""
}

// access reads who may take a seat.
func (d *decoder) access(n *node, access *Access) {
	if n.null {
		return
	}
	d.fields(n, map[string]func(*node){
		"codes":             func(n *node) { access.Codes = d.codes(n) },
		"allow":             func(n *node) { access.Allow = d.roll(n) },
		"deny":              func(n *node) { access.Deny = d.roll(n) },
		"seats_per_address": func(n *node) { access.SeatsPerAddress = d.int(n, 0, mostSeats) },
		"challenge_url":     func(n *node) { access.ChallengeURL = d.challenge(n) },
	}, nil)
}

// codes reads the access codes, or how many there are, of a sale that is to keep them.
func (d *decoder) codes(n *node) Codes {
	if n.null {
		return nil
	}
	if kept, ok := keptCodes(n.scalar); ok {
		return Codes{{Uses: kept}}
	}
	list := d.list(n)
	if len(list) > mostCodes {
		d.fail(n, fmt.Sprintf("must have at most %d codes, not %d: one code can be for many users", mostCodes, len(list)))
	}
	seen := map[string]int{}
	var codes Codes
	for _, entry := range list {
		code := AccessCode{Uses: 1}
		d.fields(entry, map[string]func(*node){
			"code":     func(n *node) { code.Code = d.code(n) },
			"uses":     func(n *node) { code.Uses = d.int(n, 0, mostUses) },
			"priority": func(n *node) { code.Priority = d.int(n, 0, mostPriority) },
		}, func(missing func(string)) { missing("code") })
		if d.err != nil {
			return nil
		}
		if line, twice := seen[code.Code]; twice {
			d.fail(entry, fmt.Sprintf("has the code that stands on line %d already", line))
		}
		seen[code.Code] = entry.line
		codes = append(codes, code)
	}
	return codes
}

// code reads one access code. What is wrong with it is said without repeating it: it is a secret.
func (d *decoder) code(n *node) string {
	text := d.text(n)
	if d.err == nil && (len(text) < shortestCode || !ValidCode(text)) {
		d.fail(n, fmt.Sprintf("must be %d to %d ASCII letters, digits and signs, without spaces", shortestCode, longestCode))
	}
	return text
}

// ValidCode says whether text can be what somebody names as a code: at most 64 printable ASCII characters, no spaces.
func ValidCode(text string) bool {
	return len(text) <= longestCode && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// roll reads a list of user ids, addresses and ranges.
func (d *decoder) roll(n *node) []string {
	if n.null {
		return nil
	}
	list := d.list(n)
	if len(list) > mostListed {
		d.fail(n, fmt.Sprintf("must have at most %d entries, not %d", mostListed, len(list)))
	}
	var entries []string
	for _, entry := range list {
		text := d.text(entry)
		if d.err != nil {
			return nil
		}
		prefix, err := parseRange(text)
		switch {
		case err == nil && prefix != prefix.Masked():
			d.fail(entry, fmt.Sprintf("is %s, which has bits beyond its length: write %s", text, prefix.Masked()))
		case err != nil && (text == "" || len(text) > 128):
			d.fail(entry, "must be a user id of 1 to 128 bytes, an address, or a range like 10.0.0.0/8")
		case err != nil && likeAddress(text):
			d.fail(entry, fmt.Sprintf("looks like an address or a range and is none: %q", text))
		}
		entries = append(entries, text)
	}
	return entries
}

// likeAddress says that nobody writes a user id like this, so that a mistyped range does not become a user whom nobody knows.
func likeAddress(text string) bool {
	return strings.Trim(text, "0123456789abcdefABCDEF.:/") == "" && strings.ContainsAny(text, ".:/")
}

// challenge reads the URL of a verifier. What it is sent must not be read on the way.
func (d *decoder) challenge(n *node) string {
	if n.null {
		return ""
	}
	text := d.text(n)
	if d.err != nil || text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || len(text) > longestChallenge ||
		u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		d.fail(n, fmt.Sprintf("must be an https URL without a name and password, not %q (http only on this machine)", text))
	}
	return text
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
