package queue

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Away says that a part of an installation cannot be used, for whoever runs it. It is never shown to shoppers.
type Away struct {
	What  string // Redis, RabbitMQ, or which kind of database
	Where string // the address that was tried, without a user and a password
	Why   string // what came of it
	Do    string // what to do about it
	Err   error  // the cause, as the driver has it
}

// Error is one sentence with all of it but the cause.
func (a *Away) Error() string { return a.Found() + ": " + a.Do }

// Found is what is so, without what to do.
func (a *Away) Found() string {
	return fmt.Sprintf("%s at %s cannot be used (%s)", a.What, a.Where, a.Why)
}

// Unwrap returns the cause.
func (a *Away) Unwrap() error { return a.Err }

// NetworkCause is why a network did not bring an answer, in the words of the system and without addresses; "" for any other
// error.
func NetworkCause(err error) string {
	var number syscall.Errno
	var name *net.DNSError
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &name):
		return "there is no host " + name.Name
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, driver.ErrBadConn), errors.Is(err, net.ErrClosed):
		return "the connection ended"
	}
	return ""
}

// AwayRedis makes an Away of what went wrong with the Redis of a URL.
func AwayRedis(rawURL string, err error) *Away {
	away := &Away{What: "Redis", Where: addressOf(rawURL), Why: NetworkCause(err), Do: "start it, or correct --redis-url", Err: err}
	var refused redis.Error
	switch {
	case away.Why != "":
	case errors.As(err, &refused):
		away.Why, away.Do = refused.Error(), "correct its settings, or the user and password in --redis-url"
	default:
		away.Why = err.Error()
	}
	return away
}

// addressOf are host and port of all servers that a Redis URL names.
func addressOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return "the address of --redis-url"
	case u.Scheme == "unix":
		return u.Path
	}
	var all []string
	for _, host := range append([]string{u.Host}, u.Query()["addr"]...) {
		if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
			host += ":6379"
		}
		all = append(all, host)
	}
	return strings.Join(all, ", ")
}
