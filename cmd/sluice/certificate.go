package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificate is a pair of files that may be replaced while they are served, as those who renew certificates do.
type certificate struct {
	cert, key string
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	stamp  [2]fileStamp
	looked time.Time
}

// fileStamp tells whether a file was replaced.
type fileStamp struct {
	at   time.Time
	size int64
}

// certificateLook is how often the files are looked at, at most.
const certificateLook = time.Second

// openCertificate reads the files, which must fit together.
func openCertificate(cert, key string, log *slog.Logger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log, now: time.Now}
	stamp, err := c.stat()
	if err != nil {
		return nil, err
	}
	return c, c.read(stamp)
}

func (c *certificate) stat() (stamp [2]fileStamp, err error) {
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return stamp, fmt.Errorf("look at the certificate: %w", err)
		}
		stamp[i] = fileStamp{info.ModTime(), info.Size()}
	}
	return stamp, nil
}

func (c *certificate) read(stamp [2]fileStamp) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read --tls-cert and --tls-key: %w", err)
	}
	c.pair, c.stamp = &pair, stamp
	return nil
}

// get is what tls.Config asks. While the new files cannot be used, as between the writing of one and of the other, the old pair
// is served on.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.looked) < certificateLook {
		return c.pair, nil
	}
	c.looked = now
	stamp, err := c.stat()
	if err == nil && stamp != c.stamp {
		if err = c.read(stamp); err == nil {
			c.log.Info("another certificate is served", "file", c.cert)
		}
	}
	if err != nil {
		c.log.Warn("the new certificate cannot be used; the old one is served on", "error", err)
	}
	return c.pair, nil
}

// config is for a listener. TLS 1.2 is the oldest version that is safe.
func (c *certificate) config() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
}
