package hub

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"
)

// count flattens what was registered to name{code} → value.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestSessionsAreCountedAndPeersCannotInventSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := newSite(t, Options{Registerer: reg})
	for _, code := range []int{1001, 4400, 4711, 4999} {
		v := s.dial()
		if err := v.peer.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(patient)); err != nil {
			t.Fatal(err)
		}
		v.ends(code)
	}
	v := s.dial()
	v.session.Close(4401, "")
	v.ends(4401)
	eventually(t, "the sessions to be counted out", func() bool { return s.hub.Len() == 0 })
	s.dial()
	s.hub.Broadcast("sale", NewFrame(nil))
	want := map[string]float64{
		"sluice_connections": 1, "sluice_sessions_total": 6, "sluice_broadcast_seconds": 1,
		"sluice_closes_total 1001": 1, "sluice_closes_total 4401": 1, "sluice_closes_total other": 3,
	}
	if diff := cmp.Diff(want, gather(t, reg)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
