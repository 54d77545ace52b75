package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// mintJWT signs an HS256 token that names user and holds until expires.
func mintJWT(secret []byte, user string, expires time.Time) (string, error) {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject:   user,
		IssuedAt:  jwt.NewNumericDate(time.Now()),
		ExpiresAt: jwt.NewNumericDate(expires),
	})
	signed, err := token.SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("sign a token for %s: %w", user, err)
	}
	return signed, nil
}

// mintHMAC makes the X-Token that goes with the X-User-Id user: "<expiry>.<hex HMAC-SHA256 of user.expiry>".
func mintHMAC(secret []byte, user string, expires time.Time) string {
	expiry := strconv.FormatInt(expires.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(user + "." + expiry))
	return expiry + "." + hex.EncodeToString(mac.Sum(nil))
}
