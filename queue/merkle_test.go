package queue_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"sluice/queue"
)

// numbered is so many entries: number i is that of the user "user-i", with a nonce that begins with i.
func numbered(n int) [][32]byte {
	leaves := make([][32]byte, n)
	for i := range leaves {
		leaves[i] = queue.Leaf(fmt.Sprint("user-", i), [16]byte{byte(i)})
	}
	return leaves
}

func TestMerkleRootsAreThoseOfAnotherImplementation(t *testing.T) {
	t.Parallel()
	// Computed in Python, by the recursion of RFC 6962, section 2.1.
	for n, want := range map[int]string{
		0:  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		1:  "ec5380eef388d54ebd70d6f092a17e363e419da3531b580efd968c4d498682dc",
		2:  "ea1fe705decf525dea4751588a0bca3f0887cff97dadf0ebc0ae4f0c9d821012",
		3:  "6fb00b037d95e9b1c52bb8236cb641fc228a8a7c392a03b2046a4234a865da50",
		5:  "f28b9212a3e5f8a196697b05e9a705850be04ee504a7e8deea0b00a6f679918f",
		7:  "d5fc8589d36040ad957e9954c96cdffa05b4409b712dd2ea376a59b58b1ffe60",
		8:  "76b4294b7d69bfbc94c139457ee2219ec174ee457db8ada68ee7bd35a1d8a2db",
		70: "d98b7f583a5c68365a3f8252695bb1daba2c8972a54e9b7b38f5f51691f65dbb",
	} {
		tree, err := hex.DecodeString(want)
		if err != nil {
			t.Fatal(err)
		}
		if queue.NewMerkleTree(numbered(n)).Root() != sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte{2}, uint64(n)), tree...)) {
			t.Errorf("%d entries have not the root over the tree %s", n, want)
		}
	}
}

// The hash of an RFC 6962 tree alone does not say of how many leaves it is: a path shows its leaf in other trees as well,
// which are left by the same turns. The root does.
func TestAMerklePathHoldsForOneIndexAndOneCount(t *testing.T) {
	t.Parallel()
	const most = 17
	leaves := numbered(most)
	for n := 1; n <= most; n++ {
		tree := queue.NewMerkleTree(leaves[:n])
		root := tree.Root()
		for i := range n {
			path := tree.Path(i)
			if len(path) > bits.Len(uint(n-1)) {
				t.Fatalf("the path of leaf %d of %d has %d hashes", i, n, len(path))
			}
			for count := 1; count <= 2*most; count++ {
				for index := range count {
					if passes := queue.VerifyPath(root, leaves[i], index, count, path); passes != (index == i && count == n) {
						t.Fatalf("leaf %d of %d as leaf %d of %d: passes is %t", i, n, index, count, passes)
					}
				}
			}
		}
	}
}

func TestWhatIsNoMerklePathIsRefused(t *testing.T) {
	t.Parallel()
	leaves := numbered(5)
	tree := queue.NewMerkleTree(leaves)
	root, path := tree.Root(), tree.Path(2)
	// Indexes and counts of any size, with paths of any length: none passes, and none panics.
	numbers := []int{math.MinInt, -1, 0, 1, 2, 5, 1 << 31, 1 << 32, math.MaxInt - 1, math.MaxInt}
	for _, index := range numbers {
		for _, count := range numbers {
			if index == 2 && count == 5 {
				continue
			}
			for _, p := range [][][32]byte{nil, {}, path, path[:1], make([][32]byte, 64), make([][32]byte, 1000)} {
				if queue.VerifyPath(root, leaves[2], index, count, p) {
					t.Errorf("%d hashes pass as the path of leaf %d of %d", len(p), index, count)
				}
			}
		}
	}
	// Each bit of what is checked counts.
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		forged := [][32]byte{root, leaves[2], path[0], path[1], path[2]}
		forged[random.IntN(len(forged))][random.IntN(32)] ^= 1 << random.IntN(8)
		if queue.VerifyPath(forged[0], forged[1], 2, 5, forged[2:]) {
			t.Fatal("a path passes with a bit flipped")
		}
	}
	// A node is no leaf: without the prefixes, the hash of two leaves could be shown as an entry.
	if queue.VerifyPath(root, path[1], 0, 3, path[2:]) || queue.VerifyPath(root, root, 0, 1, nil) {
		t.Error("an inner node passes as a leaf")
	}
}

// The aim is well below 2 s for the tree of a million.
func BenchmarkAMerkleTreeOfAMillion(b *testing.B) {
	leaves := make([][32]byte, 1_000_000)
	for i := range leaves {
		binary.BigEndian.PutUint64(leaves[i][:], uint64(i))
	}
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			queue.NewMerkleTree(leaves)
		}
	})
	tree := queue.NewMerkleTree(leaves)
	b.Run("path", func(b *testing.B) {
		for b.Loop() {
			tree.Path(765_432)
		}
	})
}
