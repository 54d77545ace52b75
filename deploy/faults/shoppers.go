package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"sluice/server"
)

const secret = "the secret of the fault suite"

// shoppers are the users of one schedule and all that they were told.
type shoppers struct {
	nodes []string // base URLs
	sale  string
	line  bool
	http  *http.Client

	tokens    sync.Map // user → token
	mu        sync.Mutex
	grabs     int               // answers to grabs
	told      map[string]string // order → its user: what anybody was told of as a success
	paid      map[string]bool   // orders that were answered paid
	cancelled map[string]bool
	problems  []string
}

func (s *shoppers) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.problems) < 10 {
		s.problems = append(s.problems, fmt.Sprintf(format, args...))
	}
}

// answer is what a node said.
type answer struct {
	status int
	Result string `json:"result"`
	Status any    `json:"status"` // of the order; of a problem, the HTTP status once more
	Order  *struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"order"`
}

// once asks a node; whatever is no clear answer is nil.
func (s *shoppers) once(ctx context.Context, node int, user, method, path string, body any) *answer {
	token, err := s.token(user)
	if err != nil {
		s.problem("mint a token: %v", err)
		return nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		s.problem("write a request: %v", err)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.nodes[node]+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		s.problem("make a request: %v", err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	a := &answer{status: resp.StatusCode}
	if err != nil || json.Unmarshal(text, a) != nil || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return nil
	}
	return a
}

// token is the user's, made once.
func (s *shoppers) token(user string) (string, error) {
	if token, made := s.tokens.Load(user); made {
		return token.(string), nil
	}
	token, err := server.MintJWT([]byte(secret), user, time.Now().Add(time.Hour))
	s.tokens.Store(user, token)
	return token, err
}

// insist asks, now this node and now that, until there is an answer.
func (s *shoppers) insist(ctx context.Context, rng *rand.Rand, user, method, path string, body any) *answer {
	for pause := 20 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, 300*time.Millisecond) {
		if a := s.once(ctx, rng.IntN(len(s.nodes)), user, method, path, body); a != nil {
			return a
		}
		wait(ctx, pause/2+rand.N(pause))
	}
	s.problem("%s had no answer to %s", user, path)
	return nil
}

// grab insists on an answer other than "not yet", and writes down what it was.
func (s *shoppers) grab(ctx context.Context, rng *rand.Rand, user, request string) *answer {
	path := "/sales/" + s.sale + "/grab"
	for ctx.Err() == nil {
		if s.line {
			s.insist(ctx, rng, user, http.MethodPost, "/sales/"+s.sale+"/seat", struct{}{})
		}
		a := s.insist(ctx, rng, user, http.MethodPost, path, map[string]string{"request_id": request})
		if a == nil {
			break
		}
		if a.Result == "no_turn" {
			wait(ctx, 50*time.Millisecond)
			continue
		}
		s.mu.Lock()
		s.grabs++
		if a.Result == "success" && a.Order.Status != "rejected" {
			if owner, known := s.told[a.Order.ID]; known && owner != user {
				s.problems = append(s.problems, fmt.Sprintf("order %s was given to %s and to %s", a.Order.ID, owner, user))
			}
			s.told[a.Order.ID] = user
		}
		s.mu.Unlock()
		return a
	}
	return nil
}

// visit is the whole life of a user in the sale.
func (s *shoppers) visit(ctx context.Context, rng *rand.Rand, user string, forgetful bool) {
	first := s.grab(ctx, rng, user, "first")
	if first != nil && rng.IntN(5) == 0 { // an impatient second click
		again := s.grab(ctx, rng, user, "first")
		if again != nil && !forgetful && first.Result == "success" && (again.Result != "success" || again.Order.ID != first.Order.ID) {
			s.problem("%s repeated a request: first %s, then %s %s", user, first.Order.ID, again.Result, orderID(again))
		}
	}
	if first == nil || first.Result != "success" {
		return
	}
	order := first.Order.ID
	switch dice := rng.IntN(100); {
	case dice < 35:
		if a := s.insist(ctx, rng, user, http.MethodPost, "/orders/"+order+"/pay?sale="+s.sale, nil); a != nil && a.Status == any("paid") {
			s.mu.Lock()
			s.paid[order] = true
			s.mu.Unlock()
		}
	case dice < 60:
		a := s.insist(ctx, rng, user, http.MethodPost, "/orders/"+order+"/cancel?sale="+s.sale, nil)
		if a == nil || a.Status != any("cancelled") {
			return
		}
		s.mu.Lock()
		s.cancelled[order] = true
		s.mu.Unlock()
		if rng.IntN(2) == 0 {
			late := s.grab(ctx, rng, user, "first")
			// Where Redis forgets, the request may have made two orders, of which the database refused one.
			if late != nil && late.Result == "success" && (late.Order.ID != order && !forgetful || !ended(late.Order.Status)) {
				s.problem("%s cancelled %s, repeated the old request and got %s %s", user, order, late.Order.ID, late.Order.Status)
			}
		}
		if rng.IntN(2) == 0 {
			s.grab(ctx, rng, user, "second")
		}
	}
}

func orderID(a *answer) string {
	if a.Order == nil {
		return ""
	}
	return a.Order.ID
}

func ended(status string) bool {
	return status == "cancelled" || status == "expired" || status == "rejected"
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
