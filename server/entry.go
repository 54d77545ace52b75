package server

import (
	"crypto/hmac"
	"crypto/sha256"

	"sluice/queue"
)

// nonce is what hides a user in the entry of a lottery. It is made of a secret instead of being kept somewhere, so that it
// outlives whatever Redis loses.
func (i *Identities) nonce(key []byte, sale, user string) [16]byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(sale + "\x00" + user)) // no sale id holds a zero byte
	var n [16]byte
	copy(n[:], mac.Sum(nil))
	return n
}

// leaf is the entry that a user adds to the lottery of a sale; nil for a sale that has none.
func (s *Server) leaf(sale *queue.Sale, user string) []byte {
	if sale.Line.Order != queue.Lottery {
		return nil
	}
	identities := s.current().identities
	leaf := queue.Leaf(user, identities.nonce(identities.entries[0], sale.ID, user))
	return leaf[:]
}

// nonceOf finds the nonce behind an entry, which may have been made with a secret that does not sign any more.
func (i *Identities) nonceOf(hash [32]byte, priority uint8, sale, user string) ([16]byte, bool) {
	for _, key := range i.entries {
		if nonce := i.nonce(key, sale, user); (queue.DrawEntry{Leaf: queue.Leaf(user, nonce), Priority: priority}).Hash() == hash {
			return nonce, true
		}
	}
	return [16]byte{}, false
}
