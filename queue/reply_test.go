package queue

import "testing"

// FuzzReply reads what no script would return: whatever it is, it is an error and never a panic.
func FuzzReply(f *testing.F) {
	f.Add("a|b|1|2|3|r", "1-0", int64(4), uint8(0))
	f.Add("", "x", int64(-1), uint8(3))
	f.Add("a|b|no|2|3|r|s", "-", int64(1<<62), uint8(7))
	f.Fuzz(func(t *testing.T, text, id string, n int64, shape uint8) {
		values := []any{text, n, nil, id, []any{text, n}, []any{}, []any{[]any{id, []any{"t", text, "m", text}}, n}, float64(n)}
		v := values[int(shape)%len(values)]
		r := &reply{script: "fuzz"}
		for _, part := range r.list(v, 3) {
			_, _ = r.int(part), r.text(part)
			_ = r.list(part, 2)
		}
		_ = r.mark("sale", "user", text)
		_ = r.seatHead(v)
		var seat Seat
		r.place(&seat, "sale", r.list(v, 0))
		_, _ = r.event("sale", []any{id, []any{"t", text, "u", text, "n", text, "m", text, "f", id, "l", id, "d", id, "s", text}})
		if r.err == nil {
			t.Errorf("%#v was read without an error", v)
		}
	})
}
