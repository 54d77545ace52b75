package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

// signer makes HMAC-SHA256 sums under one key. A new hash would work the key in each time, which takes as long as a short
// message does; these are kept and only set back. It is safe for concurrent use.
type signer struct {
	hashes sync.Pool // of *signing
}

// signing is one sum under way.
type signing struct {
	hash.Hash
	text []byte // what is signed, kept for its memory
}

func newSigner(key []byte) *signer {
	return &signer{hashes: sync.Pool{New: func() any { return &signing{Hash: hmac.New(sha256.New, key)} }}}
}

func newSigners(keys [][]byte) []*signer {
	signers := make([]*signer, len(keys))
	for i, key := range keys {
		signers[i] = newSigner(key)
	}
	return signers
}

// sum signs the parts as they follow each other.
func (s *signer) sum(parts ...string) (sum [sha256.Size]byte) {
	one := s.hashes.Get().(*signing)
	defer s.hashes.Put(one)
	one.Reset()
	one.text = one.text[:0]
	for _, part := range parts {
		one.text = append(one.text, part...)
	}
	one.Write(one.text) // never fails
	one.Sum(sum[:0])
	return sum
}
