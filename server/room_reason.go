package server

import "sluice/queue"

// Reasons why a place or a time to wait may have jumped.
const (
	reasonRate   = "rate"
	reasonPaused = "paused"
	reasonStock  = "stock"
	reasonLeft   = "left"
)

// jolted is what last made everybody's time to wait jump, and when, in ms since the epoch.
type jolted struct {
	at  int64
	why string
}

// jolt notes what this tick changed for everybody who waits.
func (r *room) jolt(snap *queue.Snapshot) {
	before := r.newest
	if before == nil {
		return
	}
	still := func(s queue.State) bool { return s == queue.Paused || s == queue.Recovering }
	switch {
	case still(before.State) && snap.State == queue.Open:
		r.jolted = jolted{snap.At, reasonPaused}
	case !before.Sale.Line.SamePace(snap.Sale.Line):
		r.jolted = jolted{snap.At, reasonRate}
	case snap.Units() > before.Units():
		r.jolted = jolted{snap.At, reasonStock}
	}
}

// reason is why a place or a time to wait has jumped since a seat was told of it last; "" when it only went on. Many have
// left when the place came closer by more than turns were given, by a twentieth or more.
func (r *room) reason(before, now told) string {
	switch {
	case !before.waiting:
		return ""
	case r.jolted.at > before.at:
		return r.jolted.why
	case before.ahead-now.ahead-(now.granted-before.granted) >= max(3, before.ahead/20):
		return reasonLeft
	}
	return ""
}
