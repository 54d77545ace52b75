package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// SeatToken is what a seat token proves: that this user was given this ticket in this epoch of this sale, and by which access
// code, so that a loss of Redis does not let somebody else use it.
type SeatToken struct {
	Sale   string `json:"s"`
	User   string `json:"u"`
	Ticket int64  `json:"n"`
	Epoch  int64  `json:"e"`
	Code   string `json:"c,omitempty"`
}

// errSeatToken is deliberately the same for every way in which a token can be wrong.
var errSeatToken = errors.New("the seat token is not valid")

// maxSeatToken bounds what is decoded: a user of 128 bytes, escaped, fits several times.
const maxSeatToken = 2 << 10

// MintSeat signs a seat token. It does not expire: a seat lives as long as its sale keeps it.
func (i *Identities) MintSeat(seat SeatToken) (string, error) {
	payload, err := json.Marshal(seat)
	if err != nil {
		return "", fmt.Errorf("write a seat token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(payload) + "." + encode(signSeat(i.seats[0], payload)), nil
}

// ParseSeat returns what the token proves. Whether that seat still is its bearer's, only the line can tell.
func (i *Identities) ParseSeat(token string) (SeatToken, error) {
	encoded, signature, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxSeatToken {
		return SeatToken{}, errSeatToken
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return SeatToken{}, errSeatToken
	}
	sum, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !slices.ContainsFunc(i.seats, func(key []byte) bool {
		return hmac.Equal(sum, signSeat(key, payload))
	}) {
		return SeatToken{}, errSeatToken
	}
	var seat SeatToken
	if err := json.Unmarshal(payload, &seat); err != nil {
		return SeatToken{}, errSeatToken
	}
	return seat, nil
}

func signSeat(key, payload []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(payload)
	return mac.Sum(nil)
}
