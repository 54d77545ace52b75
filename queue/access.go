package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Access says who may take a seat. It is decided in the step that gives the seat, by the settings of that moment, and never
// afterwards: whoever holds a seat keeps it. The zero value lets everybody in.
type Access struct {
	Codes           Codes    `json:"codes,omitempty"` // a new seat needs one of them
	Allow           []string `json:"allow,omitempty"` // user ids, addresses and ranges; with any, nobody else may join
	Deny            []string `json:"deny,omitempty"`  // likewise; stands above Allow
	SeatsPerAddress int64    `json:"seats_per_address,omitempty"`
	ChallengeURL    string   `json:"challenge_url,omitempty"` // of what says whether a challenge is solved
}

// Prioritised says that some codes have a priority.
func (a *Access) Prioritised() bool {
	return slices.ContainsFunc(a.Codes, func(code AccessCode) bool { return code.Priority > 0 })
}

// AccessCode is an access code: a secret between the shop and those whom it lets in.
type AccessCode struct {
	Code     string `json:"code"`
	Uses     int64  `json:"uses"`               // users whom it lets in; 0 = any number
	Priority int64  `json:"priority,omitempty"` // puts its users before those of a lower one when the lobby is put in order
}

// Codes are the access codes of a sale, or only how many there are: where a sale is shown, its codes are not.
type Codes []AccessCode

// Hidden is only how many codes there are. In a sale file it stands for those that the sale has.
func (c Codes) Hidden() Codes {
	if n, hidden := c.kept(); hidden || n == 0 {
		return c
	}
	return Codes{{Uses: int64(len(c))}}
}

// Count is how many codes there are.
func (c Codes) Count() int64 {
	n, _ := c.kept()
	return n
}

// kept is how many codes there are, and whether that is all that is known of them.
func (c Codes) kept() (int64, bool) {
	if len(c) == 1 && c[0].Code == "" {
		return c[0].Uses, true
	}
	return int64(len(c)), false
}

// keptSuffix ends the text that stands for codes which are not shown, like "3 kept".
const keptSuffix = " kept"

// MarshalJSON writes the codes, or a text like "3 kept" where only their number is known.
func (c Codes) MarshalJSON() ([]byte, error) {
	if n, hidden := c.kept(); hidden {
		return json.Marshal(strconv.FormatInt(n, 10) + keptSuffix)
	}
	return json.Marshal([]AccessCode(c))
}

// UnmarshalJSON reads both forms.
func (c *Codes) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]AccessCode)(c))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	n, ok := keptCodes(text)
	if !ok {
		return fmt.Errorf("codes are a list, or a number and the word kept, not %q", text)
	}
	*c = Codes{{Uses: n}}
	return nil
}

func keptCodes(text string) (int64, bool) {
	number, ok := strings.CutSuffix(text, keptSuffix)
	n, err := strconv.ParseInt(number, 10, 64)
	return n, ok && err == nil && n > 0
}

// Hidden is the sale as it may be shown to its operator and kept in logs: without its codes.
func (s Sale) Hidden() Sale {
	s.Access.Codes = s.Access.Codes.Hidden()
	return s
}

// Reason says which rule of a sale keeps somebody out. The values never change.
type Reason string

// The rules that can keep somebody out.
const (
	CodeNeeded      Reason = "code_needed"
	CodeUsed        Reason = "code_used" // or no code of the sale: whoever guesses learns nothing
	ChallengeNeeded Reason = "challenge_needed"
	Denied          Reason = "denied" // by a list, or because too many seats are held from the address
)

// barredAddress is what the script calls a refusal because of seats_per_address.
const barredAddress Reason = "address"

// Barred is the refusal of a seat by a rule.
func Barred(reason Reason) error {
	e := &Error{Code: Forbidden, Reason: reason}
	switch reason {
	case CodeNeeded:
		e.Message = "this sale needs an access code"
	case CodeUsed:
		e.Message = "this access code is not valid, or nothing is left of it"
	case ChallengeNeeded:
		e.Message = "this sale needs a solved challenge"
	case barredAddress:
		e.Reason, e.Message = Denied, "as many places as one address may have are taken from yours"
	default:
		e.Message = "this sale is not open to you"
	}
	return e
}

// errOldRules is the cause of a join that was judged by settings that do not hold any more. Nothing has changed.
var errOldRules = errors.New("the access rules have changed")

// rules are the lists of a sale at one version of its settings, ready to be asked.
type rules struct {
	version     int64
	allow, deny *roll
}

// settings is the version that the rules are of; 0 for none.
func (r *rules) settings() int64 {
	if r == nil {
		return 0
	}
	return r.version
}

// admit says whether the lists let a user in.
func (r *rules) admit(user string, peer netip.Addr) bool {
	if r == nil {
		return true
	}
	return !r.deny.has(user, peer) && (r.allow == nil || r.allow.has(user, peer))
}

// readRules reads the lists of a sale together with the version that they are of. Errors: Unavailable.
func (q *Queue) readRules(ctx context.Context, sale string) (*rules, error) {
	values, err := q.rdb.HMGet(ctx, keysOf(sale).meta, "v", "spec").Result()
	if err != nil {
		return nil, fmt.Errorf("read the lists of sale %s: %w", sale, err)
	}
	if values[0] == nil || values[1] == nil {
		return nil, q.absent(ctx, sale)
	}
	r := &reply{script: "lists of sale " + sale}
	var settings Sale
	if err := json.Unmarshal([]byte(r.text(values[1])), &settings); err != nil {
		return nil, fmt.Errorf("read the lists of sale %s: %w", sale, err)
	}
	return &rules{version: r.int(values[0]), allow: newRoll(settings.Access.Allow), deny: newRoll(settings.Access.Deny)}, r.err
}

// roll is a list of users and of ranges of addresses. It is asked in time that does not depend on its length.
type roll struct {
	users  map[string]bool
	ranges map[netip.Prefix]bool
	bits   map[int]bool // the lengths of the ranges; those of IPv6 plus 64, which no range of IPv4 reaches
}

// newRoll makes a roll of the entries of a list; nil of none.
func newRoll(entries []string) *roll {
	if len(entries) == 0 {
		return nil
	}
	r := &roll{users: map[string]bool{}, ranges: map[netip.Prefix]bool{}, bits: map[int]bool{}}
	for _, entry := range entries {
		if prefix, err := parseRange(entry); err == nil {
			r.ranges[prefix], r.bits[length(prefix)] = true, true
		} else {
			r.users[entry] = true
		}
	}
	return r
}

func length(p netip.Prefix) int {
	if p.Addr().Is4() {
		return p.Bits()
	}
	return p.Bits() + 64
}

// has says whether a user, or the address that they come from, is on the roll.
func (r *roll) has(user string, peer netip.Addr) bool {
	if r == nil {
		return false
	}
	if r.users[user] {
		return true
	}
	if !peer.IsValid() {
		return false
	}
	peer = peer.Unmap().WithZone("")
	for bits := range r.bits {
		six := bits >= 64
		if six == peer.Is4() {
			continue
		}
		if six {
			bits -= 64
		}
		if prefix, err := peer.Prefix(bits); err == nil && r.ranges[prefix] {
			return true
		}
	}
	return false
}

// parseRange reads an address or a range of addresses.
func parseRange(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		var addr netip.Addr
		if addr, err = netip.ParseAddr(text); err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no address", text)
		}
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%q is no range of one kind of address", text)
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix, nil
}
