package queue

import "math/bits"

// numberSet counts numbers that are marked in a bitmap, those that were given up or those that are recalled, so that the
// ones before any number are counted with two look-ups. It is made once for each change of the bitmap and never changes.
type numberSet struct {
	first  int64    // the number of the first bit
	words  []uint64 // 64 numbers each, the lowest number in the highest bit
	before []int32  // for each word: numbers in all words before it
	total  int64
}

// newNumberSet reads a part of the bitmap that starts at byte `first`, as GETRANGE returns it: bit n of the map is
// number n, the highest bit of a byte first.
func newNumberSet(first int64, bitmap string) *numberSet {
	d := &numberSet{first: first * 8}
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

// upTo counts the numbers of the set from the first number to n, n included.
func (d *numberSet) upTo(n int64) int64 {
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

// between counts the numbers of the set above `after` and below `number`.
func (d *numberSet) between(after, number int64) int64 {
	if d == nil || number-1 <= after {
		return 0
	}
	return d.upTo(number-1) - d.upTo(after)
}

// has says whether the number is in the set.
func (d *numberSet) has(number int64) bool {
	return d != nil && d.upTo(number) > d.upTo(number-1)
}
