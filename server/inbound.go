package server

import "time"

// What a shopper may send over a socket without being slowed down, in bytes: far more than the messages that the hub takes, and
// little enough that whatever the hub skips unseen, such as empty fragments of a message that never ends, costs next to nothing.
const (
	inboundPerSecond = 64 << 10
	inboundBurst     = 256 << 10
)

// inbound slows down what is read from a connection that has become a socket. It belongs to whoever reads.
type inbound struct {
	paid time.Time // until when what was read would take at the rate
}

// read notes n bytes, and waits while they came faster than the rate for longer than the burst allows.
func (i *inbound) read(n int) {
	now := time.Now()
	if i.paid.Before(now) {
		i.paid = now
	}
	i.paid = i.paid.Add(time.Duration(n) * time.Second / inboundPerSecond)
	if ahead := i.paid.Sub(now) - inboundBurst*time.Second/inboundPerSecond; ahead > 0 {
		time.Sleep(ahead) // a quarter of a second at most: nobody reads more than 16 KiB at once
	}
}
