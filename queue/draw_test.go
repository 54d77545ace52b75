package queue_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"sluice/queue"
)

// seedOf is the seed with that number: 32 bytes, big-endian.
func seedOf(n uint64) [32]byte {
	var seed [32]byte
	binary.BigEndian.PutUint64(seed[24:], n)
	return seed
}

// plainOrder is the shuffle again, written from its description with big numbers.
func plainOrder(seed [32]byte, n int) []uint32 {
	var stream []byte
	counter := uint64(0)
	next := func() *big.Int {
		if len(stream) == 0 {
			sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(seed[:]), counter))
			stream = sum[:]
			counter++
		}
		word := new(big.Int).SetBytes(stream[:4])
		stream = stream[4:]
		return word
	}
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	all := new(big.Int).Lsh(big.NewInt(1), 32)
	for i := n - 1; i >= 1; i-- {
		choices := big.NewInt(int64(i + 1))
		limit := new(big.Int).Mul(new(big.Int).Div(all, choices), choices)
		word := next()
		for word.Cmp(limit) >= 0 {
			word = next()
		}
		j := new(big.Int).Mod(word, choices).Int64()
		order[i], order[j] = order[j], order[i]
	}
	return order
}

func TestADrawIsTheShuffleThatItsDescriptionSays(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 10, 257, 5000} {
		for seed := range uint64(3) {
			order := queue.DrawOrder(seedOf(seed), n)
			if !slices.Equal(order, plainOrder(seedOf(seed), n)) {
				t.Fatalf("%d entries are shuffled in another way than described", n)
			}
			sorted := slices.Sorted(slices.Values(order))
			for i := range sorted {
				if sorted[i] != uint32(i) {
					t.Fatalf("the order of %d entries is no permutation", n)
				}
			}
		}
	}
	// What an implementation in another language can be compared with.
	if got := fmt.Sprint(queue.DrawOrder(seedOf(1), 10)); got != goldenOrder {
		t.Errorf("seed 1 orders ten entries as %s, want %s", got, goldenOrder)
	}
}

// TestADrawOfAMillionIsTheOneOfAnotherImplementation: among so many, words are rejected too, 60 times here.
func TestADrawOfAMillionIsTheOneOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	hash := sha256.New()
	for _, entry := range queue.DrawOrder(seedOf(1), 1_000_000) {
		_ = binary.Write(hash, binary.BigEndian, entry) // a hash takes everything
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != "456f7e08470f53a3e9f835552b40a8a2b853efedd7b727cf9b8bf7bf2cd99e41" { // computed in Python
		t.Errorf("seed 1 orders a million entries in an order with the hash %s", got)
	}
}

const goldenOrder = "[0 8 6 2 3 1 4 7 5 9]"

func TestADrawFavoursNobody(t *testing.T) {
	t.Parallel()
	const seeds, least = 10_000, 1e-4
	for _, n := range []int{2, 3, 5, 8, 20, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			places := make([][]float64, n)
			for entry := range places {
				places[entry] = make([]float64, n)
			}
			orders := map[string]float64{}
			for seed := range uint64(seeds) {
				order := queue.DrawOrder(seedOf(seed), n)
				for place, entry := range order {
					places[entry][place]++
				}
				if n <= 5 {
					orders[fmt.Sprint(order)]++
				}
			}
			var all float64 // of all entries together
			for entry, counts := range places {
				for _, count := range counts {
					all += (count - seeds/float64(n)) * (count - seeds/float64(n)) / (seeds / float64(n))
				}
				if p := chiSquared(counts, seeds/float64(n), n); p <= least {
					t.Errorf("the places of entry %d are even with p = %g", entry, p)
				}
			}
			// The places of the entries depend on one another: each place is taken once. So there are (n−1)² degrees of freedom.
			if p := upperGamma(float64((n-1)*(n-1))/2, float64(n-1)/float64(n)*all/2); p <= least {
				t.Errorf("the places of all entries are even with p = %g", p)
			}
			if n <= 5 {
				all := 1
				for i := 2; i <= n; i++ {
					all *= i
				}
				counts := make([]float64, 0, all)
				for _, count := range orders {
					counts = append(counts, count)
				}
				p := chiSquared(counts, seeds/float64(all), all)
				if len(orders) != all || p <= least {
					t.Errorf("%d of %d orders came, evenly with p = %g", len(orders), all, p)
				}
			}
		})
	}
}

// chiSquared is how likely counts at least as uneven as these are, of so many cells that are equally likely.
func chiSquared(counts []float64, want float64, cells int) float64 {
	sum := want * float64(cells-len(counts)) // cells that were never hit
	for _, count := range counts {
		sum += (count - want) * (count - want) / want
	}
	return upperGamma(float64(cells-1)/2, sum/2)
}

// upperGamma is the regularised incomplete gamma function Q(a, x), by its series below a+1 and its continued fraction above
// (Abramowitz and Stegun, 6.5.29 and 6.5.31).
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	log, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - log)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := a + 1; term > sum*1e-15; n++ {
			term *= x / n
			sum += term
		}
		return 1 - front*sum
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	h := d
	for i := 1.0; i < 1e5; i++ {
		an := -i * (i - a)
		b += 2
		d = 1 / max(tiny, an*d+b)
		c = max(tiny, b+an/c)
		h *= d * c
		if math.Abs(d*c-1) < 1e-14 {
			break
		}
	}
	return front * h
}

func TestTheChiSquaredTestItselfIsRight(t *testing.T) {
	t.Parallel()
	// From tables of the distribution: degrees of freedom, value, tail.
	for _, row := range []struct{ freedom, value, tail float64 }{
		{1, 3.841, 0.05}, {1, 15.137, 0.0001}, {4, 13.277, 0.01}, {19, 30.144, 0.05}, {119, 145.461, 0.05},
	} {
		if got := upperGamma(row.freedom/2, row.value/2); math.Abs(got-row.tail) > row.tail*0.03 {
			t.Errorf("%g degrees of freedom, %g: tail %g, want %g", row.freedom, row.value, got, row.tail)
		}
	}
	// And it sees a bias.
	if p := chiSquared([]float64{5200, 4800}, 5000, 2); p > 1e-4 {
		t.Errorf("a coin that falls on one side 5200 times of 10000 counts as fair with p = %g", p)
	}
}

// plainRoot is the root again, written from its description.
func plainRoot(leaves [][32]byte) [32]byte {
	tree := plainTree(leaves)
	return sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte{2}, uint64(len(leaves))), tree[:]...))
}

// plainTree is the hash of a tree as RFC 6962 defines it, from the top.
func plainTree(leaves [][32]byte) [32]byte {
	switch len(leaves) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return sha256.Sum256(append([]byte{0}, leaves[0][:]...))
	}
	k := 1
	for k*2 < len(leaves) {
		k *= 2
	}
	left, right := plainTree(leaves[:k]), plainTree(leaves[k:])
	return sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...))
}

func TestAMerklePathShowsItsLeafAndNothingElse(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	leaves := make([][32]byte, 70)
	for i := range leaves {
		leaves[i] = queue.Leaf(fmt.Sprint("user-", i), [16]byte{byte(i)})
	}
	for n := range len(leaves) + 1 {
		tree := queue.NewMerkleTree(leaves[:n])
		root := tree.Root()
		if root != plainRoot(leaves[:n]) {
			t.Fatalf("the tree of %d leaves is not the one of RFC 6962", n)
		}
		for i := range n {
			path := tree.Path(i)
			if !queue.VerifyPath(root, leaves[i], i, n, path) {
				t.Fatalf("leaf %d of %d is not shown by its path", i, n)
			}
			// Everything about it that can be forged.
			if queue.VerifyPath(root, leaves[(i+1)%len(leaves)], i, n, path) {
				t.Fatalf("another leaf passes as leaf %d of %d", i, n)
			}
			for _, index := range []int{-1, i - 1, i + 1, n, n + i, 1 << 62} {
				if queue.VerifyPath(root, leaves[i], index, n, path) {
					t.Fatalf("leaf %d of %d passes at index %d", i, n, index)
				}
			}
			if queue.VerifyPath(root, leaves[i], i, n, append(slices.Clone(path), [32]byte{})) {
				t.Fatalf("a path with another hash passes, leaf %d of %d", i, n)
			}
			if len(path) == 0 {
				continue
			}
			if queue.VerifyPath(root, leaves[i], i, n, path[:len(path)-1]) {
				t.Fatalf("a path that is cut off passes, leaf %d of %d", i, n)
			}
			forged := slices.Clone(path)
			forged[random.IntN(len(forged))][random.IntN(32)] ^= 1 << random.IntN(8)
			if queue.VerifyPath(root, leaves[i], i, n, forged) {
				t.Fatalf("a forged path passes, leaf %d of %d", i, n)
			}
		}
		if tree.Path(-1) != nil || tree.Path(n) != nil {
			t.Fatalf("a tree of %d leaves has a path for one that is not there", n)
		}
	}
}
