package main

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// journey is a script of web/e2e that sends a browser, or several, through a sale on a real server, and looks at everything
// that their shoppers see. What a browser cannot do it asks for on its standard output ("please kill"), and goes on when
// that was done.
type journey struct {
	*process
	answers io.Writer
}

// travel starts the script of that name at a site; env is what it wants to know beside the usual.
func travel(t *testing.T, s *site, script, sale string, env ...string) *journey {
	t.Helper()
	web := filepath.Join("..", "..", "web")
	if _, err := os.Stat(filepath.Join(web, "node_modules", "playwright-core")); err != nil {
		t.Fatalf("the browser is driven by playwright-core, which is not installed; install it with: cd web && npm ci (%v)", err)
	}
	cmd := exec.Command("node", "e2e/"+script+".mjs")
	cmd.Dir = web
	cmd.Env = append(withoutSettings(os.Environ()), "BASE_URL="+s.url, "SALE="+sale, "ADMIN="+e2eAdmin, "SHOTS="+t.ArtifactDir(),
		"SLUICE_TEST_CHROMIUM="+setting(t, "SLUICE_TEST_CHROMIUM"))
	cmd.Env = append(cmd.Env, env...)
	answers, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return &journey{process: launch(t, script, cmd), answers: answers}
}

// arrives does what the journey asks for until it ends, which must be well.
func (j *journey) arrives(deeds map[string]func()) {
	j.t.Helper()
	deadline := time.After(2 * longest)
	for read := 0; ; {
		text, more := j.out.read()
		if line, _, whole := strings.Cut(text[read:], "\n"); whole {
			read += len(line) + 1
			if what, asks := strings.CutPrefix(line, "please "); asks {
				deed := deeds[what]
				if deed == nil {
					j.t.Fatalf("%s asks to %s, and nobody can", j.name, what)
				}
				deed()
				fmt.Fprintln(j.answers, "done")
			}
			continue
		}
		select {
		case <-more:
		case <-j.done:
			if rest, _ := j.out.read(); len(rest) > len(text) {
				continue
			}
			if code := j.cmd.ProcessState.ExitCode(); code != 0 {
				j.t.Fatalf("%s ends with %d: %s", j.name, code, j.err.String())
			}
			return
		case <-deadline:
			j.t.Fatalf("%s does not end; so far it wrote:\n%s", j.name, text)
		}
	}
}

// forShoppers is a ground with a site where guests are let in, as a browser comes as one.
func forShoppers(t *testing.T, flags ...string) (*ground, *site) {
	t.Helper()
	g := newGround(t, "mysql")
	g.flags = append(g.flags, "--auth", "jwt,hmac,guest")
	return g, open(t, append(g.flags, flags...)...)
}

// statuses are the statuses of a sale's orders in the database, in the order in which they were made.
func statuses(t *testing.T, db *sql.DB, sale string) string {
	t.Helper()
	// The sale's id is one of ours, with no quote in it; databases differ in how they write parameters.
	rows, err := db.QueryContext(t.Context(), "SELECT status FROM orders WHERE sale_id = '"+sale+"' ORDER BY id")
	if err != nil {
		t.Fatalf("read the orders: %v", err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var status string
		if err := rows.Scan(&status); err != nil {
			t.Fatalf("read an order: %v", err)
		}
		all = append(all, status)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("read the orders: %v", err)
	}
	return strings.Join(all, " ")
}
