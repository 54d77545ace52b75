package queue

import "math/bits"

// departures counts the numbers that were given up, from the cursor on, so that the seats ahead of any number are
// counted with two look-ups. It is made once for each change of the bitmap and never changes.
type departures struct {
	first  int64    // the number of the first bit
	words  []uint64 // 64 numbers each, the lowest number in the highest bit
	before []int32  // for each word: departures in all words before it
	total  int64
}

// newDepartures reads a part of the bitmap that starts at byte `first`, as GETRANGE returns it: bit n of the map is
// number n, the highest bit of a byte first.
func newDepartures(first int64, bitmap string) *departures {
	d := &departures{first: first * 8}
	d.words = make([]uint64, (len(bitmap)+7)/8)
	d.before = make([]int32, len(d.words))
	for i := range len(bitmap) {
		d.words[i/8] |= uint64(bitmap[i]) << (56 - 8*(i%8))
	}
	for i, word := range d.words {
		d.before[i] = int32(d.total)
		d.total += int64(bits.OnesCount64(word))
	}
	return d
}

// upTo counts the departures from the first number to n, n included.
func (d *departures) upTo(n int64) int64 {
	i := n - d.first
	if i < 0 {
		return 0
	}
	w := i / 64
	if w >= int64(len(d.words)) {
		return d.total
	}
	return int64(d.before[w]) + int64(bits.OnesCount64(d.words[w]>>(63-i%64)))
}

// between counts the departures above `after` and below `number`.
func (d *departures) between(after, number int64) int64 {
	if d == nil || number-1 <= after {
		return 0
	}
	return d.upTo(number-1) - d.upTo(after)
}

// has says whether the number was given up.
func (d *departures) has(number int64) bool {
	return d != nil && d.upTo(number) > d.upTo(number-1)
}
