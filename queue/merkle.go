package queue

import (
	"crypto/sha256"
	"encoding/binary"
)

// MerkleTree is a hash tree over the entries of a lottery, of the shape and with the prefixes of RFC 6962, section 2.1: the
// hash of a leaf is SHA-256(0x00 ‖ leaf), that of a node SHA-256(0x01 ‖ left ‖ right), and the left half of a tree is the
// largest power of two below its size. The root is SHA-256(0x02 ‖ number of leaves as 8 bytes, big-endian ‖ hash of the tree):
// without the number, a path would show its leaf in trees of other sizes too. It commits to every entry, and a path shows that
// one of them is among them.
type MerkleTree struct {
	leaves [][32]byte
	levels [][][32]byte // the hashes of the leaves first, the root last
}

// NewMerkleTree makes the tree of the leaves, in their order.
func NewMerkleTree(leaves [][32]byte) *MerkleTree {
	level := make([][32]byte, len(leaves))
	for i, leaf := range leaves {
		level[i] = hashLeaf(leaf)
	}
	t := &MerkleTree{leaves: leaves, levels: [][][32]byte{level}}
	// A last node without a sibling goes up as it is. That gives the same tree as halving from the top.
	for len(level) > 1 {
		above := make([][32]byte, 0, (len(level)+1)/2)
		for i := 0; i+1 < len(level); i += 2 {
			above = append(above, hashNode(level[i], level[i+1]))
		}
		if len(level)%2 == 1 {
			above = append(above, level[len(level)-1])
		}
		t.levels = append(t.levels, above)
		level = above
	}
	return t
}

// Root commits to the leaves and to how many they are. The hash of an empty tree is the SHA-256 of nothing.
func (t *MerkleTree) Root() [32]byte {
	hash := sha256.Sum256(nil)
	if top := t.levels[len(t.levels)-1]; len(top) > 0 {
		hash = top[0]
	}
	return hashRoot(len(t.leaves), hash)
}

// Leaf is the leaf with index i, which must be in the tree.
func (t *MerkleTree) Leaf(i int) [32]byte { return t.leaves[i] }

// Path is what VerifyPath needs besides a leaf: the hashes of the siblings from the leaf with index i to the root. It is
// nil for an index that is not in the tree.
func (t *MerkleTree) Path(i int) [][32]byte {
	if i < 0 || i >= len(t.levels[0]) {
		return nil
	}
	path := [][32]byte{}
	for _, level := range t.levels[:len(t.levels)-1] {
		if sibling := i ^ 1; sibling < len(level) {
			path = append(path, level[sibling])
		}
		i /= 2
	}
	return path
}

// VerifyPath says whether a leaf stands at index i of a tree of count leaves with that root.
func VerifyPath(root, leaf [32]byte, i, count int, path [][32]byte) bool {
	if i < 0 || i >= count {
		return false
	}
	hash := hashLeaf(leaf)
	for last := count - 1; last > 0; i, last = i/2, last/2 {
		if i^1 > last {
			continue // no sibling at this level
		}
		if len(path) == 0 {
			return false
		}
		if i%2 == 0 {
			hash = hashNode(hash, path[0])
		} else {
			hash = hashNode(path[0], hash)
		}
		path = path[1:]
	}
	return len(path) == 0 && hashRoot(count, hash) == root
}

func hashLeaf(leaf [32]byte) [32]byte {
	var data [33]byte
	copy(data[1:], leaf[:])
	return sha256.Sum256(data[:])
}

func hashRoot(count int, tree [32]byte) [32]byte {
	var data [41]byte
	data[0] = 2
	binary.BigEndian.PutUint64(data[1:], uint64(count))
	copy(data[9:], tree[:])
	return sha256.Sum256(data[:])
}

func hashNode(left, right [32]byte) [32]byte {
	var data [65]byte
	data[0] = 1
	copy(data[1:], left[:])
	copy(data[33:], right[:])
	return sha256.Sum256(data[:])
}
