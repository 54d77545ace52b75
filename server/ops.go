package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds one answer of /readyz: whoever asks gives up after a few seconds.
const readyTimeout = 2 * time.Second

// SetReady says whether new shoppers should be sent here. A node which drains is not ready, but goes on serving; only
// operators who watch are sent elsewhere at once.
func (s *Server) SetReady(ready bool) {
	s.notReady.Store(!ready)
	s.streams.allow(ready)
}

// Ops answers the operations listener: /healthz, /readyz, /metrics and /debug/pprof/. It asks for no token, so it
// belongs on an address that shoppers cannot reach.
func (s *Server) Ops() http.Handler {
	return OpsHandler(func(ctx context.Context) error {
		if s.notReady.Load() {
			return errDraining
		}
		if s.opts.Ready == nil {
			return nil
		}
		return s.opts.Ready(ctx)
	}, s.opts.Gatherer)
}

// errDraining is why a node that sends its shoppers elsewhere is not ready.
var errDraining = errors.New("draining")

// OpsHandler is the operations listener of a node that serves nobody. ready says why the node is not ready, nil when it
// is; gatherer may be nil.
func OpsHandler(ready func(ctx context.Context) error, gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerPlain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := ready(ctx); err != nil {
			answerPlain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		answerPlain(w, http.StatusOK, "ready")
	})
	if gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func answerPlain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a caller who has gone needs no answer
}
