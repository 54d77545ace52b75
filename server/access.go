package server

import (
	"context"
	"errors"
	"strings"
	"time"

	"sluice/queue"
)

// Who may take a seat is decided by package queue, in the step that gives it; see queue.Access. What stands here is what
// only a server knows: what a shopper brings along, and how a verifier of challenges is asked.
//
// It is asked last, when a challenge is all that is missing: so whoever holds a seat is never asked for one, and nobody
// solves one to be turned away for another reason. Between the verifier's yes and the seat lies one more call, which may
// be refused, for a code that somebody else used meanwhile; then the solution was in vain, and no seat was given.

// accessView is what everybody may know of who may take a seat: what to bring along.
type accessView struct {
	Code      bool `json:"code,omitempty"`
	Challenge bool `json:"challenge,omitempty"`
	Priority  bool `json:"priority,omitempty"` // some codes put their users first when the lobby is put in order
}

// viewOfAccess is nil for a sale that asks for nothing.
func viewOfAccess(access *queue.Access) *accessView {
	view := accessView{Code: len(access.Codes) > 0, Challenge: access.ChallengeURL != "", Priority: access.Prioritised()}
	if view == (accessView{}) {
		return nil
	}
	return &view
}

// noCode is shorter than a code can be: it is what a text stands for that no code can be.
const noCode = "?"

// codeOf is the code that a shopper typed.
func codeOf(text string) string {
	text = strings.TrimSpace(text)
	if !queue.ValidCode(text) {
		return noCode
	}
	return text
}

// reasonOf is which rule keeps somebody out, "" when none does.
func reasonOf(err error) queue.Reason {
	var e *queue.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// join is queue.Join, with the verifier asked where the sale wants a challenge solved.
func (s *Server) join(ctx context.Context, req queue.JoinRequest, sale *queue.Sale, solution string) (queue.Seat, error) {
	seat, err := s.line.Join(ctx, req)
	if solution == "" || reasonOf(err) != queue.ChallengeNeeded {
		return seat, err
	}
	if err := s.solved(ctx, sale, solution, req); err != nil {
		return queue.Seat{}, err
	}
	req.Solved = true
	return s.line.Join(ctx, req)
}

// joinLater is join for a caller who does not wait; see queue.JoinLater.
func (s *Server) joinLater(req queue.JoinRequest, sale *queue.Sale, solution string, within time.Duration, then func(queue.Seat, error)) {
	s.line.JoinLater(req, within, func(seat queue.Seat, err error) {
		if solution == "" || reasonOf(err) != queue.ChallengeNeeded {
			then(seat, err)
			return
		}
		go func() { // another server is asked
			if err := s.solved(context.Background(), sale, solution, req); err != nil {
				then(queue.Seat{}, err)
				return
			}
			req.Solved = true
			s.line.JoinLater(req, within, then)
		}()
	})
}

// solved asks the verifier of a sale, as this node knows the sale.
func (s *Server) solved(ctx context.Context, sale *queue.Sale, solution string, req queue.JoinRequest) error {
	at := sale.Access.ChallengeURL
	if at == "" {
		return errNoVerdict(errors.New("this node does not know the verifier yet"))
	}
	return s.verifier.solved(ctx, s.current().ChallengeSecret, at, solution, req.Peer)
}
