package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestPrioritiesOfCodesPutALobbyInOrder is a whole one, on two servers and a database: who came last with the best code is
// called first, and who comes after the opening last. Of a lottery anybody can check that.
func TestPrioritiesOfCodesPutALobbyInOrder(t *testing.T) {
	t.Parallel()
	g := newGround(t, "postgres")
	sites := []*site{open(t, g.flags...), open(t, append(g.flags, "--no-worker")...)}
	one := sites[0]
	for _, order := range []string{"fifo", "lottery"} {
		sale := freshID()
		one.apply(saleFile(t, sale, 60, `opens_at: +1h
closes_at: +2h
line: { order: `+order+`, active: 1, turn: 20m }
access:
  codes: [ { code: ANYBODY, uses: 0 }, { code: MEMBERS, uses: 4, priority: 1 }, { code: FRIENDS, uses: 4, priority: 9 } ]`))
		codes := []string{"ANYBODY", "MEMBERS", "FRIENDS"}
		join := func(user, code string, want int) map[string]any {
			t.Helper()
			answer := sites[len(user)%2].ask(http.MethodPost, "/sales/"+sale+"/seat", tokenOf(t, user), fmt.Sprintf(`{"code":%q}`, code))
			if answer.status != want {
				t.Errorf("%s with %s got %d %v", user, code, answer.status, answer.fields)
			}
			return answer.fields
		}
		for i := range 12 {
			if state := join(fmt.Sprint("u", i), codes[i%3], http.StatusOK); state["type"] != "lobby" {
				t.Errorf("in the lobby u%d has %v", i, state)
			}
		}
		join("u-many", "MEMBERS", http.StatusForbidden)
		succeed(t, "sale", "open", sale, "--url", one.url, "--admin-token", e2eAdmin)
		state := func(user string) map[string]any {
			return sites[1].ask(http.MethodGet, "/sales/"+sale+"/seat", tokenOf(t, user), "").fields
		}
		eventually(t, "somebody has a turn", func() bool {
			for _, friend := range []string{"u2", "u5", "u8", "u11"} {
				if state(friend)["type"] == "turn" {
					return true
				}
			}
			return false
		})
		join("late", "FRIENDS", http.StatusForbidden)
		late := join("late", "ANYBODY", http.StatusOK)
		want(t, "the number of who came late", fmt.Sprint(late["number"]), "13")
		for i := range 12 {
			user := fmt.Sprint("u", i)
			from := map[int]int{2: 1, 1: 5, 0: 9}[i%3]
			number, waits := state(user)["number"].(float64)
			if !waits {
				number = 1 // has the turn
			}
			if order == "fifo" && int(number) != from+i/3 || int(number) < from || int(number) > from+3 {
				t.Errorf("%s: %s with %s has the number %v", order, user, codes[i%3], number)
			}
			if order == "fifo" {
				continue
			}
			out := succeed(t, "verify", sale, "--url", one.url, "--user-token", tokenOf(t, user))
			if !strings.Contains(out, "those of a higher priority come first") || !strings.Contains(out, fmt.Sprintf("number %v is what was drawn", number)) {
				t.Errorf("of %s it is said:\n%s", user, out)
			}
		}
	}
}
