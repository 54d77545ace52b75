package server

import (
	"context"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds one answer of /readyz: whoever asks gives up after a few seconds.
const readyTimeout = 2 * time.Second

// SetReady says whether new shoppers should be sent here. A node which drains is not ready, but goes on serving.
func (s *Server) SetReady(ready bool) { s.notReady.Store(!ready) }

// Ops answers the operations listener: /healthz, /readyz, /metrics and /debug/pprof/. It asks for no token, so it
// belongs on an address that shoppers cannot reach.
func (s *Server) Ops() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerPlain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	if s.opts.Gatherer != nil {
		mux.Handle("GET /metrics", promhttp.HandlerFor(s.opts.Gatherer, promhttp.HandlerOpts{}))
	}
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.notReady.Load() {
		answerPlain(w, http.StatusServiceUnavailable, "draining")
		return
	}
	if s.opts.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := s.opts.Ready(ctx); err != nil {
			answerPlain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
	}
	answerPlain(w, http.StatusOK, "ready")
}

func answerPlain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a caller who has gone needs no answer
}
