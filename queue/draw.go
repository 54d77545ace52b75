package queue

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// How a lottery is drawn
//
// When a sale is made, a secret is drawn, and its hash published. Whoever joins before the sale opens adds an entry. At
// opening the entries that still stand are frozen under a Merkle root, which is published with their count. The seed is
// made of the secret and the root; there is room for the value of a public beacon that nobody could know before.
// The seed alone decides the order, or, where codes have a priority, the order among those of one priority: the higher ones
// come first, and the root commits to which is whose. Then the secret is revealed, and everybody can repeat the draw.
//
// The operator cannot choose the secret after the entries are known, nor the entries without changing the root. Without a
// beacon an operator who also joins could try entries until the draw, which they can compute beforehand, suits them: then
// they are trusted not to.

// NoBeacon is the rule of a draw whose seed is made of the secret and the root alone.
const NoBeacon = "none"

// Draw is a lottery. What is public depends on how far it got: see Frozen and Drawn.
type Draw struct {
	Sale   string
	Secret [32]byte // nobody but the operator's processes knows it before the draw
	Beacon string   // the rule: NoBeacon

	// Frozen: since the sale has opened, these are set.
	Tickets  int64  // tickets given by then
	Ranks    []byte // the priority of each ticket, from the first on; those beyond the end have none
	Dropouts []byte // bitmap of the tickets that were given up by then, as Redis has it: bit n is ticket n
	Live     int64  // entries: tickets without those
	Root     [32]byte

	// Drawn: these are set as well.
	Value string // of the beacon; "" without one
	Seed  [32]byte
}

// Frozen says whether the entries are known.
func (d *Draw) Frozen() bool { return d.Root != [32]byte{} }

// Drawn says whether the order is known.
func (d *Draw) Drawn() bool { return d.Seed != [32]byte{} }

// Priority is the priority with which a ticket joined.
func (d *Draw) Priority(ticket int64) uint8 {
	if ticket < 1 || ticket > int64(len(d.Ranks)) {
		return 0
	}
	return d.Ranks[ticket-1]
}

// Priorities are those of the entries, in their order; nil when none has any.
func (d *Draw) Priorities() []byte {
	var priorities []byte
	for i, ticket := range d.LiveTickets() {
		if priority := d.Priority(int64(ticket)); priority > 0 {
			if priorities == nil {
				priorities = make([]byte, d.Live)
			}
			priorities[i] = priority
		}
	}
	return priorities
}

// RankOrder moves the entries of a higher priority before those of a lower one and leaves each kind in the order that it
// has. priorities are those of the entries by index; nil = none has any.
func RankOrder(order []uint32, priorities []byte) {
	if priorities != nil {
		slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(priorities[b], priorities[a]) })
	}
}

// DrawEntry is what a ticket adds to a lottery.
type DrawEntry struct {
	Leaf     [32]byte
	Priority uint8 // of the code that the user had
}

// Hash is the entry as the root commits to it: the leaf or, with a priority, SHA-256(0x03 ‖ leaf ‖ priority). No user id begins
// with a control character, so it is never another leaf.
func (e DrawEntry) Hash() [32]byte {
	if e.Priority == 0 {
		return e.Leaf
	}
	var data [34]byte
	data[0], data[33] = 3, e.Priority
	copy(data[1:], e.Leaf[:])
	return sha256.Sum256(data[:])
}

// Commitment is what is published of a secret before it is revealed: its SHA-256.
func Commitment(secret [32]byte) [32]byte { return sha256.Sum256(secret[:]) }

// Leaf is an entry: the SHA-256 of a user id and the nonce of the seat. Without the nonce it tells nothing of the user.
func Leaf(user string, nonce [16]byte) [32]byte {
	return sha256.Sum256(append([]byte(user), nonce[:]...))
}

// DrawSeed is the SHA-256 of the secret, the root and the bytes of the beacon's value.
func DrawSeed(secret, root [32]byte, beacon string) [32]byte {
	data := append(append(secret[:], root[:]...), beacon...)
	return sha256.Sum256(data)
}

// DrawOrder is the order that a seed gives n entries: the entry with index order[i] has the place i, both from 0. It is a
// shuffle after Fisher and Yates: for i from n−1 down to 1, the entries at i and at a random j from 0 to i change places.
//
// The random numbers are the big-endian 32-bit words of SHA-256(seed ‖ 0), SHA-256(seed ‖ 1) and so on, the counter as 8
// bytes, big-endian. For j, words are taken until one is below the largest multiple of i+1 that is at most 2³², and j is
// that word modulo i+1; so every j is as likely as any other.
func DrawOrder(seed [32]byte, n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	var input [40]byte
	copy(input[:], seed[:])
	var block [32]byte
	counter, used := uint64(0), len(block)
	word := func() uint64 {
		if used == len(block) {
			binary.BigEndian.PutUint64(input[32:], counter)
			block, used = sha256.Sum256(input[:]), 0
			counter++
		}
		used += 4
		return uint64(binary.BigEndian.Uint32(block[used-4:]))
	}
	for i := n - 1; i > 0; i-- {
		choices := uint64(i) + 1
		limit := (1 << 32) / choices * choices
		w := word()
		for w >= limit {
			w = word()
		}
		j := w % choices
		order[i], order[j] = order[j], order[i]
	}
	return order
}
