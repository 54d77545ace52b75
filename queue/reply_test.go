package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// FuzzReply reads what no script would return: whatever it is, it is an error and never a panic.
func FuzzReply(f *testing.F) {
	f.Add("a|b|1|2|3|r", "1-0", int64(4), uint8(0))
	f.Add("", "x", int64(-1), uint8(3))
	f.Add("a|b|no|2|3|r|s", "-", int64(1<<62), uint8(7))
	f.Fuzz(func(t *testing.T, text, id string, n int64, shape uint8) {
		values := []any{text, n, nil, id, []any{text, n}, []any{}, []any{[]any{id, []any{"t", text, "m", text}}, n}, float64(n)}
		v := values[int(shape)%len(values)]
		r := &reply{script: "fuzz"}
		for _, part := range r.list(v, 3) {
			_, _ = r.int(part), r.text(part)
			_ = r.list(part, 2)
		}
		_ = r.mark("sale", "user", text)
		_ = r.seatHead(v)
		var seat Seat
		r.place(&seat, "sale", r.list(v, 0))
		_, _ = r.event("sale", []any{id, []any{"t", text, "u", text, "n", text, "m", text, "f", id, "l", id, "d", id, "s", text}})
		if r.err == nil {
			t.Errorf("%#v was read without an error", v)
		}
	})
}

// answering is a Redis that answers every script with one value, and knows the settings of every sale.
type answering struct{ value any }

func (*answering) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answering) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		switch cmd := cmd.(type) {
		case *redis.Cmd:
			cmd.SetVal(a.value)
		case *redis.SliceCmd:
			cmd.SetVal([]any{`{"id":"a","items":[{"id":"main","stock":1}]}`, "1", "2", "0"})
		}
		return nil
	}
}

func (a *answering) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(_ context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			_ = a.ProcessHook(nil)(context.Background(), cmd)
		}
		return nil
	}
}

// replyOf makes what go-redis would return of JSON: integers, strings, lists and nothing. What is no JSON is a string.
func replyOf(text string) any {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return text
	}
	return plain(value)
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		return v.String()
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	case string:
		return v
	}
	return nil
}

// FuzzScripts has every script return anything at all. Whoever called it gets an error, or an answer that is whole.
func FuzzScripts(f *testing.F) {
	f.Add(`[[1700000000000,"open","available",0,0],[1,5,3,0,"","0"]]`)                                                                       // join and look
	f.Add(`[[1700000000000,"open","available"],[0,"id|main|1|1700000000000|0|r",0]]`)                                                        // grab
	f.Add(`[[1700000000000,"open","gone"],[-2,0,"gone"]]`)                                                                                   // grab, sold out
	f.Add(`[[1700000000000,"open","available"],[-5,"user",1,250000]]`)                                                                       // a limit
	f.Add(`[[1700000000000,"open","available"],[-5,1,"250000"],[0,0,0]]`)                                                                    // a limit, with figures
	f.Add(`[[1700000000000,"open","available"],[-3],[2,4,1000000]]`)                                                                         // what is left
	f.Add(`[0,1,4,1000000]`)                                                                                                                 // of no sale
	f.Add(`[[1700000000000,5],["main",5,3,2]]`)                                                                                              // balance
	f.Add(`[3,2,0]`)                                                                                                                         // freeze
	f.Add(`[-1,"limit"]`)                                                                                                                    // apply, refused
	f.Add(`[0,"closed"]`)                                                                                                                    // control, too late
	f.Add(`[[1,"open","available",0,1,1,0,9,0,0,3,0,0,0,-1,0,0,1,0,1],["main",5],[0,"\u0001"],[["3-0",["t","turn","n","1,2","d","9"]]],[]]`) // tick
	f.Add(`[[1,"open","available",0,1,1,9,3,0,0,0,0,0,0,1,1,1,1,1,1],["main"],[9223372036854775807,"x"],[["x",[]]],[-9223372036854775808,"\u00ff"]]`)
	f.Add("[]")
	f.Add("null")
	f.Add("-1")
	f.Add("OK")
	rdb, answer := redis.NewClient(&redis.Options{}), &answering{}
	f.Cleanup(func() { rdb.Close() })
	rdb.AddHook(answer)
	q := New(rdb, Options{})
	limited := New(rdb, Options{UserLimit: Rate{N: 5, Per: time.Second}, AddressLimit: Rate{N: 9, Per: time.Second}})
	f.Fuzz(func(t *testing.T, text string) {
		ctx := t.Context()
		answer.value = replyOf(text)
		order := Order{ID: "id", Sale: "a", Item: "main", User: "ann", Qty: 1}

		whole := func(left *Allowance) bool { return left == nil || left.Limit == 5 || left.Limit == 9 }
		if left, err := limited.Allow(ctx, "ann", "192.0.2.1"); err == nil && !whole(left) {
			t.Errorf("%s reads as %+v", text, left)
		}
		if seats, errs := limited.joinBatch(ctx, "a", []JoinRequest{{User: "ann"}}); errs[0] == nil && !whole(seats[0].Allowance) {
			t.Errorf("%s reads as %+v", text, seats[0].Allowance)
		}
		grabbed, errs := q.grabBatch(ctx, "a", []grabCall{{GrabRequest: GrabRequest{User: "ann", Item: "main", Qty: 1, RequestID: "r"}, order: "id"}})
		if g := grabbed[0]; errs[0] == nil && (g.Result == Success || g.Result == Already) && (g.Order == nil || g.Order.User != "ann") {
			t.Errorf("%s reads as %+v", text, g)
		}
		seats, errs := q.joinBatch(ctx, "a", []JoinRequest{{User: "ann"}})
		if errs[0] == nil && seats[0].User != "ann" {
			t.Errorf("%s reads as %+v", text, seats[0])
		}
		if seats, err := q.LookMany(ctx, "a", []string{"ann", "bob"}); err == nil && len(seats) != 2 {
			t.Errorf("%s reads as %+v", text, seats)
		}
		if codes, err := q.Adopt(ctx, "a", []Order{order}); err == nil && len(codes) < 1 {
			t.Errorf("%s reads as %v", text, codes)
		}
		_, _ = q.Balance(ctx, "a")
		_, _, _ = q.Freeze(ctx, Draw{Sale: "a"})
		_ = q.Draw(ctx, Draw{Sale: "a"}, nil)
		_ = q.Leave(ctx, "a", "ann", 1)
		_ = q.Tell(ctx, "a", []Presence{{Ticket: 1}})
		_ = q.Apply(ctx, Sale{ID: "a", Items: []Item{{ID: "main", Stock: 1}}, ClosesAt: time.UnixMilli(2)})
		_, _ = q.Open(ctx, "a")
		_ = q.Ready(ctx, "a")

		watcher := NewWatcher(q, "a", nil)
		if _, err := watcher.tick(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if s := watcher.Snapshot(); s != nil {
			for _, number := range []int64{0, 1, s.Served, s.Issued, s.Issued + 1} {
				_, _, _ = s.Ahead(number), s.Chance(number), s.RecalledBefore(number)
				_, _, _ = s.ETA(number)
			}
		}
	})
}
