package server

import (
	"crypto/hmac"
	"fmt"

	"github.com/google/uuid"
)

// signedFrom is the first byte of an order id that says for whom it was made; those before are its time and chance.
const signedFrom = 10

// newOrderID makes the id of an order, a UUIDv7. Its last six bytes can only have been made here, for this user in this sale:
// so when somebody says that they were told of an order which nobody knows, it is known whether they can have been.
func (i *Identities) newOrderID(sale, user string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an order id: %w", err)
	}
	sign(i.orders[0], &id, sale, user)
	return id.String(), nil
}

func sign(by *signer, id *uuid.UUID, sale, user string) {
	sum := by.sum(string(id[:signedFrom]), sale, "\x00", user) // no sale id holds a zero byte
	copy(id[signedFrom:], sum[:])
}

// wasTold says whether an order id was made for a user in a sale, with any of the secrets.
func (i *Identities) wasTold(id uuid.UUID, sale, user string) bool {
	for _, by := range i.orders {
		made := id
		if sign(by, &made, sale, user); hmac.Equal(made[:], id[:]) {
			return true
		}
	}
	return false
}
