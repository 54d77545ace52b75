package server

import (
	"net/http"
	"testing"

	"sluice/queue"
)

func TestGuestsAreMadeOnlyWhereTheyAreAllowed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	a := b.send(http.MethodPost, "/api/v1/guests", "")
	token, _ := a.field(t, "token").(string)
	user, err := b.server.Identities().Token(t.Context(), token)
	if a.status != http.StatusOK || err != nil || user != a.field(t, "user") || user[:len(guestPrefix)] != guestPrefix {
		t.Errorf("got %d %s; the token is of %q, %v", a.status, a.body, user, err)
	}
	if got := a.field(t, "expires_at"); got != float64(testNow().Add(guestLife).UnixMilli()) {
		t.Errorf("expires at %v", got)
	}
	b = newBench(t, func(o *Options) { o.Auth = []string{"jwt"} })
	b.mustFail(b.send(http.MethodPost, "/api/v1/guests", ""), http.StatusForbidden, queue.Forbidden)
}
