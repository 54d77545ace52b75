package main

import (
	"errors"
	"net/http"

	"github.com/gorilla/websocket"
)

// A sale may keep somebody out, and a server may not know who is asking. Both are the truth as much as "sold out" is: they
// are outcomes by the names of the contract, as long as the shopper was not let in before.

// Close codes that say why somebody is not let in.
const (
	closeBadToken    = 4401
	closeNotAllowed  = 4403
	closeTooManyTabs = 4409
	closeTooMuch     = 4429
)

// answerError is an answer over HTTP that is no success.
type answerError struct {
	status int
	code   string // of its problem; of a proxy's answer, which has none, the status line
	reason string // which rule keeps the caller out, of forbidden
	detail string // for people; may be ""
}

// Error is the code.
func (e *answerError) Error() string { return e.code }

// refusalOf is the outcome of a shopper whom err keeps out, and what was said beyond that; outcomeFailed when err is something
// else. Over outcomeLimited the shopper tries again.
func refusalOf(err error) (outcome, string) {
	var closed *websocket.CloseError
	var answer *answerError
	switch {
	case errors.As(err, &closed):
		switch closed.Code {
		case closeBadToken:
			return outcomeUnauthenticated, closed.Text
		case closeNotAllowed:
			return barredBy(closed.Text, closed.Text)
		case closeTooManyTabs:
			return outcomeTooMany, closed.Text
		case closeTooMuch:
			return outcomeLimited, closed.Text
		}
	case errors.As(err, &answer):
		switch answer.status {
		case http.StatusUnauthorized:
			return outcomeUnauthenticated, firstOf(answer.detail, answer.code)
		case http.StatusForbidden:
			return barredBy(answer.reason, firstOf(answer.detail, answer.code))
		case http.StatusTooManyRequests:
			return outcomeLimited, firstOf(answer.detail, answer.code)
		}
	}
	return outcomeFailed, ""
}

// barredBy is the outcome of the rule that keeps somebody out. A rule that has an outcome of its own says enough by it.
func barredBy(rule, said string) (outcome, string) {
	for _, o := range []outcome{outcomeCodeNeeded, outcomeCodeUsed, outcomeChallengeNeeded, outcomeDenied} {
		if rule == o.String() {
			return o, ""
		}
	}
	return outcomeForbidden, said
}

// keptOut says whether the outcome is a refusal of access.
func (o outcome) keptOut() bool { return o >= outcomeCodeNeeded && o <= outcomeLimited }

// turnedAway records why a shopper is not let in, or failed, and returns the outcome.
func (c *crowd) turnedAway(err error) outcome {
	kind, said := refusalOf(err)
	if kind == outcomeFailed {
		c.ledger.failed(err.Error())
	} else {
		c.ledger.refused(kind, said)
	}
	return kind
}

// lastWord is what the server said last: err, or what it said before when err is no answer.
func lastWord(before, err error) error {
	var answer *answerError
	if errors.As(err, &answer) {
		return err
	}
	return before
}

// limited says whether the server's last word was to ask it later.
func limited(err error) bool {
	kind, _ := refusalOf(err)
	return kind == outcomeLimited
}

// hint says what may help those who were not let in that way, "" = nothing that a crowd could bring.
func (c *crowdOptions) hint(o outcome) string {
	switch o {
	case outcomeCodeNeeded:
		return "the sale asks for codes: bring some with --code or --code-file"
	case outcomeCodeUsed:
		return "the sale has no such code, or nothing is left of it: bring others with --code or --code-file"
	case outcomeChallengeNeeded:
		return "the sale asks for a solved challenge, which a crowd has not: try a sale without challenge_url"
	case outcomeDenied:
		return "the sale's access rules keep these users out, or their address has as many seats as it may: --prefix names the users, --source adds addresses"
	case outcomeUnauthenticated:
		if c.Guests {
			return ""
		}
		return "the server does not take these tokens: give its --secret or --secret-file, and --jwt-issuer and --jwt-audience as it has them (one with --jwks-url takes such tokens only with --auth jwt,hs256)"
	case outcomeForbidden:
		if c.Guests {
			return "where no guests are let in, shoppers need tokens: give --secret or --secret-file instead of --guests"
		}
	case outcomeTooMany:
		return "others are there by the same names: give this crowd another --prefix"
	case outcomeLimited:
		return "the server's limits were met until the end: spread the shoppers by a longer --ramp and --timeout, or over addresses with --source"
	}
	return ""
}
