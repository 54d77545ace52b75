package server

import "log/slog"

const (
	// ShortSecret is how many bytes a secret must have not to be found by trying, by somebody who has something that was made
	// with it. A node starts with a shorter one, and warns of it.
	ShortSecret = 16
	// GoodSecret is how many bytes a secret should have: what RFC 7518 wants of an HS256 key.
	GoodSecret = 32
)

// warnOfShort warns of secrets that are too short, of which it repeats nothing. An empty one is none.
func warnOfShort(log *slog.Logger, setting string, secrets ...[]byte) {
	for _, secret := range secrets {
		if len(secret) > 0 && len(secret) < ShortSecret {
			log.Warn("a secret is so short that it can be guessed", "setting", "--"+setting, "bytes", len(secret), "want", GoodSecret)
		}
	}
}
