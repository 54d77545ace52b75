package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

const (
	// hostileInputs is how many are sent in all, and hostileSeed what all of them follow from.
	hostileInputs = 10_000
	hostileSeed   = 20261201

	// hostileMark is in every name that an attacker makes up, so that it can be looked for where it must not come to.
	hostileMark = "hostile"

	hostileWebhook = "the secret of the payment provider"
	hostileStock   = 100_000 // more than the shoppers of a fast machine can buy
	hostileUsers   = 40
)

// settled is how far above the level before a level may be when all is over. Whatever stays behind of an input would be
// there thousands of times.
var settled = level{goroutines: 20, descriptors: 10, heap: 6 << 20}

func TestTenThousandHostileInputsHarmNobody(t *testing.T) {
	t.Parallel()
	for i, database := range []string{"mysql", "postgres"} {
		t.Run("on "+database, func(t *testing.T) {
			t.Parallel()
			newSiege(t, database, hostileSeed+uint64(i)).run(hostileInputs / 2)
		})
	}
}

// siege is a server with all that it needs, attackers, and shoppers who notice nothing of them.
type siege struct {
	t    *testing.T
	g    *ground
	s    *site
	seed uint64

	sale, lottery, spare string   // open, in its lobby, and for those who come with the admin token
	users, tokens        []string // of the attackers
	seat                 string   // the seat token of the first of them
	prey                 string   // the order of a shopper, which is none of their business
	shoppers             []string // who bought

	answers sync.Map // kind of input and answer → *atomic.Int64, for the report
}

func newSiege(t *testing.T, database string, seed uint64) *siege {
	t.Helper()
	g := newGround(t, database)
	a := &siege{t: t, g: g, seed: seed, sale: freshID(), lottery: freshID(), spare: freshID()}
	// No limit stands between the attackers and the code, and the log says all that it can.
	a.s = open(t, append(g.flags, "--limit-user", "0", "--auth", "jwt,hmac,guest", "--log-level", "debug",
		"--webhook-secret", hostileWebhook, "--origins", "https://shop.example", "--trusted-proxies", "127.0.0.1")...)
	const long = "opens_at: 2026-01-01T00:00:00Z\ncloses_at: 2099-01-01T00:00:00Z\nhold: 1h\n"
	a.s.apply(saleFile(t, a.sale, hostileStock, long+"line: { order: fifo, turn: 1h }"))
	a.s.apply(saleFile(t, a.lottery, 5, strings.Replace(long, "2026", "2098", 1)+"line: { order: lottery }"))
	a.s.apply(saleFile(t, a.spare, 5, long+"line: { order: off }"))
	for n := range hostileUsers {
		user := fmt.Sprintf("%s-user-%d", hostileMark, n)
		a.users, a.tokens = append(a.users, user), append(a.tokens, tokenOf(t, user))
	}
	return a
}

// run sends that many inputs while shoppers shop, and looks at what is left of it all.
func (a *siege) run(inputs int) {
	a.shop("before")
	seat := a.s.ask(http.MethodPost, "/sales/"+a.sale+"/seat", a.tokens[0], "")
	a.seat, _ = seat.fields["seat"].(string)
	if a.seat == "" {
		a.t.Fatalf("take a seat: %d %s", seat.status, seat.body)
	}
	// What is made once and kept, pools and caches, is made by the first of them.
	const first = 500
	a.attack(0, first)
	before := a.level()
	a.attack(first, inputs)
	a.shop("after")

	var after level
	eventually(a.t, fmt.Sprintf("goroutines, descriptors and memory are back at %v", before), func() bool {
		after = a.level()
		return !after.above(before)
	})
	a.t.Logf("before: %v; after: %v; %v", before, after, a.report())

	for _, order := range a.s.ask(http.MethodGet, "/orders?sale="+a.sale, tokenOf(a.t, a.shoppers[0]), "").fields["orders"].([]any) {
		want(a.t, "the status of the shopper's order", order.(map[string]any)["status"], any("paid"))
	}
	a.inspectLog()
	if metrics := a.s.metrics(); strings.Contains(metrics, hostileMark) {
		a.t.Error("what an attacker made up is a label of a metric")
	}
	a.inspectBooks()
}

// attack sends the inputs from one number up to another while shoppers shop.
func (a *siege) attack(from, to int) {
	a.t.Helper()
	var next atomic.Int64
	next.Store(int64(from))
	done := make(chan struct{})
	var attackers sync.WaitGroup
	for range 8 {
		attackers.Go(func() {
			line := &keptLine{address: a.s.address()}
			defer line.close()
			for {
				n := int(next.Add(1) - 1)
				if n >= to || a.s.ended() {
					return
				}
				f := &forger{Rand: rand.New(rand.NewPCG(a.seed, uint64(n))), siege: a}
				switch kind := n % 10; {
				case kind < 6:
					a.judge(n, f.request().send(line))
				case kind < 7:
					a.judge(n, f.wire().send(a.s.address()))
				default:
					a.judge(n, f.conversation().send(a.s.address()))
				}
			}
		})
	}
	go func() { attackers.Wait(); close(done) }()
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		default:
			a.shop(fmt.Sprintf("during-%d-%d", from, n))
		}
	}
}

// effect is what came of an input.
type effect struct {
	kind, answer string // of what kind it was, and the answer in a word
	sent         []byte
	wrong        string // "" = nothing
}

func (a *siege) judge(n int, v effect) {
	count, _ := a.answers.LoadOrStore(v.kind+" "+v.answer, new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	if v.wrong != "" {
		a.t.Errorf("input %d of seed %d, %s: %s\nsent: %.1500q", n, a.seed, v.kind, v.wrong, v.sent)
	}
}

// report is how often each kind of input had each answer.
func (a *siege) report() string {
	var lines []string
	a.answers.Range(func(key, count any) bool {
		lines = append(lines, fmt.Sprintf("%v×%d", key, count.(*atomic.Int64).Load()))
		return true
	})
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// shop is one shopper who waits, is called, grabs, and pays.
func (a *siege) shop(name string) {
	a.t.Helper()
	user := "shopper-" + name
	ws := a.s.connect(a.sale, user)
	defer ws.Close()
	await := func(kind string) object {
		for {
			if frame := next(a.t, ws); frame["type"] == kind {
				return frame
			}
		}
	}
	await("welcome")
	await("turn")
	if err := ws.WriteJSON(object{"type": "grab", "id": "the only one"}); err != nil {
		a.t.Fatal(err)
	}
	order, _ := await("success")["order"].(object)
	id, _ := order["id"].(string)
	eventually(a.t, "the order of "+user+" can be paid", func() bool {
		answer := a.s.pay(user, id)
		return answer.status == http.StatusOK && answer.fields["status"] == "paid"
	})
	if a.prey == "" {
		a.prey = id
	}
	a.shoppers = append(a.shoppers, user)
}

// pay is what the payment provider sends when the order was paid.
func (s *site) pay(user, order string) reply {
	s.t.Helper()
	body := fmt.Sprintf(`{"order":%q,"status":"paid","event_id":%q}`, order, "of "+user)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/api/v1/webhooks/payment", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-Signature", signatureOf([]byte(body)))
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return replyOf(resp.StatusCode, data)
}

func signatureOf(body []byte) string {
	mac := hmac.New(sha256.New, []byte(hostileWebhook))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// level is what a process holds.
type level struct{ goroutines, descriptors, heap int64 }

func (l level) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors, %d KiB", l.goroutines, l.descriptors, l.heap>>10)
}

// above says whether l is above another level by more than what does not matter.
func (l level) above(other level) bool {
	return l.goroutines > other.goroutines+settled.goroutines || l.descriptors > other.descriptors+settled.descriptors ||
		l.heap > other.heap+settled.heap
}

// level reads what the process holds, after a collection.
func (a *siege) level() level {
	a.t.Helper()
	resp, err := http.Get(a.s.ops + "/debug/pprof/heap?gc=1") //nolint:noctx // the process ends with the test
	if err != nil {
		a.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	text := a.s.metrics()
	read := func(name string) int64 {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
		if found == nil {
			a.t.Fatalf("there is no metric %s", name)
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			a.t.Fatal(err)
		}
		return int64(value)
	}
	return level{read("go_goroutines"), read("process_open_fds"), read("go_memstats_heap_alloc_bytes")}
}

// inspectLog looks for what must never be in a log.
func (a *siege) inspectLog() {
	a.t.Helper()
	log := a.s.err.String()
	for _, word := range []string{"panic", "superfluous", "level=ERROR"} {
		if at := strings.Index(log, word); at >= 0 {
			a.t.Errorf("the log has a %s: %.3000s", word, log[max(0, at-300):])
		}
	}
	for name, secret := range map[string]string{
		"the secret": e2eSecret, "the admin token": e2eAdmin, "the secret of the provider": hostileWebhook,
		"a user's token": a.tokens[1], "a seat token": a.seat,
	} {
		if strings.Contains(log, secret) {
			a.t.Errorf("the log has %s", name)
		}
	}
	for line := range strings.Lines(log) {
		if !strings.HasPrefix(line, "time=") {
			a.t.Errorf("a line of the log is none of ours: %.500q", line)
			break
		}
	}
}

// inspectBooks looks at who bought: each shopper once, attackers at most once each, nobody else, and all of it in order.
func (a *siege) inspectBooks() {
	a.t.Helper()
	sold := buyers(a.t, a.g.rows, a.sale)
	for _, user := range sold {
		if !slices.Contains(a.shoppers, user) && !slices.Contains(a.users, user) {
			a.t.Errorf("%q has an order", user)
		}
	}
	for _, user := range a.shoppers {
		if !slices.Contains(sold, user) {
			a.t.Errorf("%q has no order", user)
		}
	}
	audit := a.s.audit(a.sale)
	want(a.t, "number of units that the audit counts", audit.sold(), int64(len(sold)))
	_, left := a.s.view(a.sale)
	want(a.t, "number of units left", left, int64(hostileStock-len(sold)))
	slices.Sort(sold)
	want(a.t, "number of buyers", len(slices.Compact(sold)), len(sold))
}

// forger makes up inputs, the same ones for the same numbers.
type forger struct {
	*rand.Rand
	siege *siege
}

// one is any of them.
func one[T any](f *forger, of ...T) T { return of[f.IntN(len(of))] }

// odds says yes once in n times.
func (f *forger) odds(n int) bool { return f.IntN(n) == 0 }

// noise is n random bytes.
func (f *forger) noise(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(f.Uint32())
	}
	return data
}

// uuid is a random one.
func (f *forger) uuid() string {
	id, _ := uuid.FromBytes(f.noise(16))
	return id.String()
}

// dialed is a new connection to the address, on which nothing takes longer than everything may.
func dialed(address string) (*net.TCPConn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(longest))
	return conn.(*net.TCPConn), nil
}

// drained sends everything, ends the sending, and returns all that came back. What is sent in parts waits for an answer
// to each part before the next. A server that cuts the connection off has answered; one that neither answers nor ends it
// hangs.
func drained(address string, parts ...[]byte) (came []byte, hangs bool, err error) {
	conn, err := dialed(address)
	if err != nil {
		return nil, false, err
	}
	defer conn.Close()
	first := make([]byte, 4<<10)
	for _, part := range parts[:len(parts)-1] {
		if _, err := conn.Write(part); err != nil {
			return came, false, nil
		}
		n, err := conn.Read(first)
		came = append(came, first[:n]...)
		if err != nil {
			return came, timedOut(err), nil
		}
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := conn.Write(parts[len(parts)-1]); err == nil {
			_ = conn.CloseWrite()
		}
	}()
	rest, err := io.ReadAll(conn)
	conn.Close()
	<-sent
	return append(came, rest...), timedOut(err), nil
}

func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}
