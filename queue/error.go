package queue

import (
	"errors"
	"time"
)

// Code names a kind of failure. It is the `code` of the problem document that the person at the other end reads, so
// the values never change.
type Code string

// The kinds of failure.
const (
	BadRequest      Code = "bad_request"
	Unauthenticated Code = "unauthenticated"
	Forbidden       Code = "forbidden"
	NoSuchSale      Code = "no_such_sale"
	NoSuchOrder     Code = "no_such_order"
	NoSuchItem      Code = "no_such_item"
	Conflict        Code = "conflict"
	Invalid         Code = "invalid"
	Limited         Code = "limited"
	Unavailable     Code = "unavailable"
)

// Error is a failure that a person can be told about. An error of any other type is trouble with the infrastructure
// and is shown as Unavailable: nothing is known about the outcome, and never is it shown as sold out.
type Error struct {
	Code    Code
	Message string // one sentence: what was wrong and what to do

	// Of a Limited or Unavailable failure: when it is worth trying again, from now.
	RetryAfter time.Duration
	// Of a Limited failure: the limit that was met, what is left of it, and when one more may pass.
	By               string // user or address
	Limit, Remaining int64
	Reset            time.Time

	// Of a Forbidden failure: which rule of a sale keeps somebody out; "" for any other reason.
	Reason Reason

	// Of a sale file that is Invalid: where it is wrong.
	Line  int
	Field string

	Err error // the cause, for the log; never shown
}

// Error is the sentence, with the cause when there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Message + ": " + e.Err.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf is the code of the first Error in err's chain, Unavailable for any other error, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Unavailable
}
