package server

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"sluice/queue"
)

func TestAKeyThatIsOfNoUseIsLeftOutAndSpoilsNoOther(t *testing.T) {
	t.Parallel()
	good, ec, strong := newEd(t, "good"), newEC(t, "k"), newRSA(t, "k")
	for name, bad := range map[string]signingKey{
		"RSA of 1024 bits":              strong.with(map[string]any{"n": encode64(strings.Repeat("\xff", 128))}),
		"RSA with the exponent 1":       strong.with(map[string]any{"e": "AQ"}),
		"RSA of a million bits":         strong.with(map[string]any{"n": encode64(strings.Repeat("\xff", 1<<17))}),
		"RSA with an exponent too long": strong.with(map[string]any{"e": encode64("\x01" + strings.Repeat("\x00", 5) + "\x01\x00\x01")}),
		"RSA with an even exponent":     strong.with(map[string]any{"e": "Ag"}),
		"RSA without a modulus":         strong.with(map[string]any{"n": nil}),
		"RSA for another algorithm":     strong.with(map[string]any{"alg": "RS512"}),
		"RSA for HMAC":                  strong.with(map[string]any{"alg": "HS256"}),
		"RSA for encryption":            strong.with(map[string]any{"alg": nil, "use": "enc"}),
		"RSA that only signs":           strong.with(map[string]any{"key_ops": []string{"sign"}}),
		"a private RSA key":             strong.with(map[string]any{"d": "AQ"}),
		"a point that is not on P-256":  ec.with(map[string]any{"x": encode64(strings.Repeat("\x01", 32))}),
		"P-384":                         ec.with(map[string]any{"crv": "P-384"}),
		"secp256k1":                     ec.with(map[string]any{"crv": "secp256k1"}),
		"EC called EdDSA":               ec.with(map[string]any{"alg": "EdDSA"}),
		"X25519":                        newEd(t, "k").with(map[string]any{"crv": "X25519"}),
		"Ed25519 of 31 bytes":           newEd(t, "k").with(map[string]any{"x": encode64(strings.Repeat("a", 31))}),
		"Ed25519 of zeros":              newEd(t, "k").with(map[string]any{"x": encode64(strings.Repeat("\x00", 32))}),
		"Ed25519 of the neutral point":  newEd(t, "k").with(map[string]any{"x": encode64("\x01" + strings.Repeat("\x00", 31))}),
		"Ed25519 that is no point":      newEd(t, "k").with(map[string]any{"x": encode64("\x02" + strings.Repeat("\x00", 31))}),
		"a symmetric key":               newEd(t, "k").with(map[string]any{"kty": "oct", "k": "c2VjcmV0"}),
		"a kind that nobody knows":      newEd(t, "k").with(map[string]any{"kty": "AKP"}),
		"fields of another type":        newEd(t, "k").with(map[string]any{"kid": 7}),
		"the kid of an earlier one":     newEd(t, "good"),
		"what is no base64 for its key": newEd(t, "k").with(map[string]any{"x": "!!!"}),
	} {
		set, err := parseKeys([]byte(documentOf(t, good, bad)))
		if err != nil || len(set.keys) != 1 || set.keys[0].id != "good" || len(set.ignored) != 1 {
			t.Errorf("%s: got %+v, %v", name, set, err)
			continue
		}
		if key, err := set.find("EdDSA", "good"); err != nil || !key.(ed25519.PublicKey).Equal(good.private.Public()) {
			t.Errorf("%s: the good key is not found: %v", name, err)
		}
	}
	for _, bad := range []string{"", "null", "[]", "{}", `{"keys":null}`, `{"keys":{}}`, "<html>", `{"keys":[]} {`, "\x00"} {
		if set, err := parseKeys([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, set)
		}
	}
}

// A provider that answers with something else, or was taken over, must not fill the disk with what is wrong about it.
func TestHoweverManyKeysAreOfNoUseTheLogStaysShort(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{"beside a good one": documentKey(t, newEd(t, "good")), "and nothing else": "{}"} {
		var log bytes.Buffer
		keys := newKeyring(keySource{name: "provider", every: time.Minute, read: func(context.Context) ([]byte, error) {
			return []byte(`{"keys":[` + strings.Repeat("{},", 100_000) + last + `]}`), nil
		}}, slog.New(slog.NewTextHandler(&log, nil)), nil)
		_ = keys.read(t.Context())
		if log.Len() == 0 || log.Len() > 4<<10 {
			t.Errorf("%s: %d bytes were logged", name, log.Len())
		}
	}
}

func documentKey(t *testing.T, key signingKey) string {
	t.Helper()
	return string(must[[]byte](t)(json.Marshal(key.jwk(t))))
}

func TestANewKeyIsTakenAtOnceAndAnOldOneAsLongAsItIsPublished(t *testing.T) {
	t.Parallel()
	older, newer := newEd(t, "older"), newEd(t, "newer")
	p := newProvider(t, older)
	n := newFair(t, saleOf(5), p.trust(nil)).main
	n.must(200, older.token(t, nil), "the only key")
	n.must(401, newer.token(t, nil), "a key before it is published")
	p.publish(older, newer)
	n.must(200, newer.token(t, nil), "a new key")
	n.must(200, older.token(t, nil), "the old key while it is published")
	p.publish(newer)
	n.must(401, newEd(t, "stranger").token(t, nil), "a stranger's key") // which has the keys read again
	n.must(200, newer.token(t, nil), "the new key by itself")
	n.must(401, older.token(t, nil), "the old key once it is gone")
}

func TestAKeyThatIsGoneIsRefusedThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	gone, kept := newEd(t, "gone"), newEC(t, "kept")
	p := newProvider(t, gone, kept)
	n := newFair(t, saleOf(5), p.trust(func(k *Keyring) { k.every = 10 * time.Millisecond })).main
	n.must(200, gone.token(t, nil), "the key")
	p.publish(kept)
	eventually(t, "the key is refused", func() bool { return n.orders(gone.token(t, nil)).status == 401 })
	n.must(401, gone.token(t, nil), "the key that is gone")
	n.must(200, kept.token(t, nil), "the other key")
}

// Trouble with the provider is never told to a shopper as a bad token: a page would give up for good.
func TestWithoutItsProviderANodeStartsAndSaysThatItCannotTell(t *testing.T) {
	t.Parallel()
	d := newEd(t, "d")
	for name, trouble := range map[string]http.HandlerFunc{
		"away": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
		"slow": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow in the middle": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"keys":[`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, err := w.Write([]byte(`{"keys":[`))
			for err == nil {
				_, err = w.Write([]byte(strings.Repeat(" ", 1<<16)))
			}
		},
		"in circles":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"broken":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"a page":      func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>sign in</html>")) },
		"nothing":     func(http.ResponseWriter, *http.Request) {},
		"half":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(documentOf(t, d)[:40])) },
		"without key": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys":[]}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.answers(trouble)
			n := newFair(t, saleOf(5), p.trust(func(k *Keyring) {
				k.patience, k.retry, k.every = 500*time.Millisecond, 10*time.Millisecond, 50*time.Millisecond
			})).main
			n.must(503, d.token(t, nil), "at the start")
			n.must(401, forged(d.token(t, nil), `{"alg":"none"}`), "a token that no key could make good")
			if a := n.ask(http.MethodGet, "/sales/"+n.sale, ""); a.status != http.StatusOK {
				t.Errorf("the sale itself: got %d", a.status)
			}
			if strings.HasPrefix(name, "slow") {
				return // the provider is given up after seconds
			}
			p.publish(d)
			eventually(t, "the token is taken", func() bool { return n.orders(d.token(t, nil)).status == 200 })

			p.answers(trouble)
			before := p.asks.Load()
			eventually(t, "the keys were asked for again", func() bool { return p.asks.Load() > before+2 })
			if name == "without key" {
				n.must(503, d.token(t, nil), "a key that was withdrawn")
				return
			}
			n.must(200, d.token(t, nil), "a key from before")
			n.must(503, newEd(t, "new").token(t, nil), "a key that may be new")
		})
	}
}

func TestAProviderThatIsSlowHoldsUpNobodyWhoseKeyIsKnown(t *testing.T) {
	t.Parallel()
	d := newEd(t, "d")
	p := newProvider(t, d)
	n := newFair(t, saleOf(5), p.trust(func(k *Keyring) { k.patience = time.Hour })).main
	n.must(200, d.token(t, nil), "the key")
	reached, release := make(chan struct{}), make(chan struct{})
	p.answers(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-release
		_, _ = w.Write([]byte(documentOf(t, d)))
	})
	stranger := make(chan error, 1)
	go func() {
		_, err := n.server.current().identities.Token(t.Context(), newEd(t, "stranger").token(t, nil))
		stranger <- err
	}()
	<-reached
	n.must(200, d.token(t, nil), "the key, while the provider is asked for another")
	select {
	case err := <-stranger:
		t.Errorf("it was told before it could be known: %v", err)
	default:
	}
	close(release)
	if err := <-stranger; queue.CodeOf(err) != queue.Unauthenticated {
		t.Errorf("the stranger is told %v", err)
	}
}

func TestAFloodOfUnknownKeysAsksTheProviderOnceInAGap(t *testing.T) {
	t.Parallel()
	d := newEd(t, "d")
	p := newProvider(t, d)
	n := newFair(t, saleOf(5), p.trust(func(k *Keyring) { k.gap, k.patience = time.Hour, time.Millisecond })).main
	eventually(t, "the keys are read", func() bool { return n.server.current().identities.keys.known() == 1 })
	var flood sync.WaitGroup
	for range 20 {
		flood.Go(func() {
			for range 25 {
				a := n.orders(d.token(t, nil, "kid", uuid.NewString()))
				if a.status != http.StatusServiceUnavailable {
					t.Errorf("got %d %s", a.status, a.body)
				}
			}
		})
	}
	n.must(200, d.token(t, nil), "a good token in the flood")
	flood.Wait()
	if asks := p.asks.Load(); asks != 1 {
		t.Errorf("the provider was asked %d times", asks)
	}
}

// clocked makes a Keyring whose provider is a function, in a bubble with a clock of its own.
func clocked(read func() ([]byte, error)) *Keyring {
	return newKeyring(keySource{name: "test", every: 5 * time.Minute, read: func(context.Context) ([]byte, error) { return read() }}, nil, nil)
}

func TestHoweverManyUnknownKeysComeReadingsKeepTheirDistanceAndNobodyIsLeftWaiting(t *testing.T) {
	t.Parallel()
	document := []byte(documentOf(t, newEd(t, "d")))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var reads []time.Time // only the keyring's goroutine reads
		k := clocked(func() ([]byte, error) {
			reads = append(reads, time.Now())
			time.Sleep(time.Second)
			return document, nil
		})
		var running, flood sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		var refused atomic.Int64
		until := time.Now().Add(time.Minute)
		for n := range 100 {
			flood.Go(func() {
				for time.Now().Before(until) {
					began := time.Now()
					_, err := k.find(ctx, "EdDSA", fmt.Sprint("unknown-", n))
					if !errors.Is(err, errUnknownKey) || time.Since(began) > k.patience {
						t.Errorf("after %s: %v", time.Since(began), err)
					}
					refused.Add(1)
				}
			})
		}
		flood.Wait()
		stop()
		running.Wait()
		for i := 1; i < len(reads); i++ {
			if gap := reads[i].Sub(reads[i-1]); gap < k.gap {
				t.Errorf("readings %s apart", gap)
			}
		}
		if most := int(time.Minute/k.gap) + 3; len(reads) > most || len(reads) < 10 || refused.Load() < 1000 {
			t.Errorf("%d readings for %d tokens", len(reads), refused.Load())
		}
	})
}

func TestAProviderThatFailsIsAskedLessAndLess(t *testing.T) {
	t.Parallel()
	document := []byte(documentOf(t, newEd(t, "d")))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var asks atomic.Int64
		var back atomic.Bool
		k := clocked(func() ([]byte, error) {
			asks.Add(1)
			if back.Load() {
				return document, nil
			}
			return nil, errors.New("away")
		})
		var running sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		time.Sleep(10 * time.Second)
		if n := asks.Load(); n < 3 || n > 5 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		time.Sleep(time.Hour)
		before := asks.Load()
		if before < 30 || before > 80 {
			t.Errorf("asked %d times in an hour", before)
		}
		back.Store(true)
		time.Sleep(2 * time.Minute)
		if _, err := k.find(ctx, "EdDSA", "d"); err != nil {
			t.Errorf("the provider is back, and %v", err)
		}
		back.Store(false)
		time.Sleep(24 * time.Hour)
		if _, err := k.find(ctx, "EdDSA", "d"); err != nil {
			t.Errorf("after a day without the provider: %v", err)
		}
		stop()
		running.Wait()
	})
}

func TestOnlySoManyTokensWaitForANewKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		k := clocked(func() ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
		k.most = 10
		var running sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		began := time.Now()
		var atOnce, later atomic.Int64
		for n := range 50 {
			running.Go(func() {
				_, err := k.find(ctx, "EdDSA", fmt.Sprint(n))
				if queue.CodeOf(err) != queue.Unavailable {
					t.Errorf("got %v", err)
				}
				if time.Since(began) == 0 {
					atOnce.Add(1)
				} else {
					later.Add(1)
				}
			})
		}
		time.Sleep(time.Minute)
		if atOnce.Load() != 40 || later.Load() != 10 {
			t.Errorf("%d were told at once and %d had waited", atOnce.Load(), later.Load())
		}
		stop()
		running.Wait()
	})
}

func TestKeysInAFileAreReadAgainAndMissingOnesAreSaidAtTheStart(t *testing.T) {
	t.Parallel()
	older, newer := newEd(t, "older"), newEd(t, "newer")
	file := filepath.Join(t.TempDir(), "jwks.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	for text, says := range map[string]string{"": "no JSON", "{}": "no \"keys\"", `{"keys":[]}`: "no key that signs", `{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}`: "symmetric"} {
		write(text)
		if _, err := NewKeyring(file, nil, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if _, err := NewKeyring(file+"x", nil, nil); err == nil {
		t.Error("a file that is not there was taken")
	}
	write(documentOf(t, older))
	for _, from := range []string{file, "file://" + file} {
		p := &provider{T: t, url: from}
		n := newFair(t, saleOf(5), p.trust(nil)).main
		n.must(200, older.token(t, nil), "a key in the file")
		write(documentOf(t, newer))
		n.must(200, newer.token(t, nil), "a key that was put there")
		n.must(401, older.token(t, nil), "the one that it replaced")
		write(documentOf(t, older))
	}
}

func TestTheLogSaysWhetherKeysOfBeforeStand(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	document, fault := []byte(documentOf(t, newEd(t, "a"))), errors.New("it is away")
	keys := newKeyring(keySource{name: "provider", every: time.Minute, read: func(context.Context) ([]byte, error) {
		return document, fault
	}}, slog.New(slog.NewTextHandler(&log, nil)), nil)
	for _, step := range []struct {
		fault      error
		says, nots string
	}{
		{fault, "nobody can be let in", "stand"},
		{nil, "were read", "cannot"},
		{fault, "those read before stand", "nobody"},
	} {
		log.Reset()
		fault = step.fault
		_ = keys.read(t.Context())
		if !strings.Contains(log.String(), step.says) || strings.Contains(log.String(), step.nots) {
			t.Errorf("with %v the log says %s", step.fault, &log)
		}
	}
}

func TestTheAddressOfAProviderIsCheckedAndNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, from := range []string{
		"https://user:hush-hush@id.example/", "https://hush-hush@id.example/", "ftp://id.example/hush-hush", "file://hush-hush/x", "https:///hush-hush",
		"https://id.example/%zz?hush-hush", "redis://:hush-hush@x", "https://user:hush-hush@:x/",
	} {
		if _, err := NewKeyring(from, nil, nil); err == nil || strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("%s: got %v", from, err)
		}
	}
	for _, from := range []string{"file://jwks.json", "file:jwks.json", "file:/etc/jwks.json", "file://localhost/jwks.json", "FILE://jwks.json"} {
		if _, err := NewKeyring(from, nil, nil); err == nil || !strings.Contains(err.Error(), "three slashes") || !strings.Contains(err.Error(), "file:///") {
			t.Errorf("%s: got %v, want the right form", from, err)
		}
	}
	for from, plain := range map[string]bool{
		"https://id.example/": false, "http://id.example/": true, "http://127.0.0.1:1/": false, "http://[::1]/": false, "http://localhost:1": false, "http://127.0.0.1.example/": true,
	} {
		if source, err := newKeySource(from); err != nil || source.plain != plain {
			t.Errorf("%s: plain %v, %v", from, source.plain, err)
		}
	}
	// What the client says of a failure has the whole address in it; the log is to have its host only.
	for _, from := range []string{"http://127.0.0.1:1/hush-hush?key=hush-hush", "http://127.0.0.1:1/?hush-hush"} {
		source := must[keySource](t)(newKeySource(from))
		if _, err := source.read(t.Context()); err == nil || strings.Contains(err.Error()+source.name, "hush-hush") {
			t.Errorf("%s: got %v of %s", from, err, source.name)
		}
	}
}

func FuzzNoDocumentMakesTheReaderOfKeysFail(f *testing.F) {
	f.Add(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB","kid":"a"},{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"},{"kty":"OKP","crv":"Ed25519","x":"AQ"}]}`)
	f.Add(`{"keys":[{"kty":"oct","k":"AQ"},{},null,7,"x",{"kty":"EC","crv":"P-256","x":"","y":""}]}`)
	f.Fuzz(func(t *testing.T, document string) {
		set, err := parseKeys([]byte(document))
		if err != nil {
			return
		}
		for _, k := range set.keys {
			if found, err := set.find(k.algorithm, k.id); err == nil && found == nil {
				t.Errorf("%s %q is found as nothing", k.algorithm, k.id)
			}
		}
	})
}
