package queue

import (
	"fmt"
	"strconv"
	"strings"
)

// reply reads what a script returned. Scripts return integers, strings and lists of them; the first thing that is not
// as the script's header says it is kept as the error, and what is read after it is zero.
type reply struct {
	script string
	err    error
}

func (r *reply) fail(what string, got any) {
	if r.err == nil {
		r.err = fmt.Errorf("script %s: %s, got %T %v", r.script, what, got, got)
	}
}

// list is a reply that must be a list of at least n entries.
func (r *reply) list(v any, n int) []any {
	l, ok := v.([]any)
	if !ok || len(l) < n {
		r.fail(fmt.Sprintf("a list of %d or more was expected", n), v)
		return make([]any, n)
	}
	return l
}

// int is a reply that must be an integer, or one written as a string.
func (r *reply) int(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n
		}
	}
	r.fail("an integer was expected", v)
	return 0
}

// text is a reply that must be a string.
func (r *reply) text(v any) string {
	s, ok := v.(string)
	if !ok {
		r.fail("a string was expected", v)
	}
	return s
}

// mark reads what the winners hash keeps for an order.
func (r *reply) mark(sale, user, text string) *Order {
	parts := strings.SplitN(text, "|", 6)
	if len(parts) != 6 {
		r.fail("a mark was expected", text)
		return nil
	}
	return &Order{
		ID: parts[0], Sale: sale, User: user, Item: parts[1], Status: Reserved,
		Qty: r.int(parts[2]), CreatedAt: r.int(parts[3]), PayBy: r.int(parts[4]), RequestID: parts[5],
	}
}
