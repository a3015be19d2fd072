package app

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy"
)

// handler serves the admin port, behind the checks of package web. It uses only state of the relay, so a slow or stopped
// auditor delays nothing. adminRefused counts the requests that those checks refuse.
func (r *Relay) handler(adminRefused prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // fixed names; the first test would find a clash
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&relayCollector{r}, adminRefused,
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", &readiness{draining: r.draining.Load, check: r.reachEngines})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { r.metrics(w, registry) })
	mux.HandleFunc("GET /api/status", r.status)
	for path, paused := range map[string]bool{"POST /api/pause": true, "POST /api/resume": false} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			r.Pause(paused)
			w.WriteHeader(http.StatusNoContent)
		})
	}
	return mux
}

// Pause pauses or resumes the auditor's replays; traffic and capture go on.
func (r *Relay) Pause(paused bool) {
	r.log.Info("replays", zap.Bool("paused", paused))
	r.supervisor.Pause(paused)
}

// metrics writes the relay's metrics and then the auditor's latest ones.
func (r *Relay) metrics(w http.ResponseWriter, registry *prometheus.Registry) {
	families, err := registry.Gather()
	if err != nil {
		r.log.Warn("gather metrics", zap.Error(err))
	}
	var buf bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&buf, f); err != nil {
			r.log.Warn("write metrics", zap.Error(err))
		}
	}
	buf.Write(r.supervisor.Metrics())
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	_, _ = w.Write(buf.Bytes())
}

// routeStatus is the status of one route.
type routeStatus struct {
	Name        string      `json:"name"`
	Listen      []string    `json:"listen"`
	Upstream    string      `json:"upstream"`
	TLS         string      `json:"tls"`
	UpstreamTLS string      `json:"upstream_tls"`
	Captured    string      `json:"captured"` // yes, no, or what is not captured
	Proxy       proxy.Stats `json:"proxy"`
}

func (r *Relay) routeStatus() []routeStatus {
	out := make([]routeStatus, len(r.routes))
	for i, one := range r.routes {
		out[i] = routeStatus{
			Name: one.cfg.Name, Upstream: one.cfg.Upstream.String(), TLS: one.cfg.TLS.Mode, UpstreamTLS: one.cfg.UpstreamTLS.Mode,
			Captured: "yes", Proxy: one.server.Stats(),
		}
		switch {
		case !r.cfg.Proxy.Capture:
			out[i].Captured = "no"
		case one.cfg.TLS.Mode == "passthrough":
			out[i].Captured = "only sessions without TLS: TLS is passed through, and what is in it is not audited"
		}
		for _, l := range one.listeners {
			out[i].Listen = append(out[i].Listen, l.Addr().String())
		}
	}
	return out
}

// status writes the proxy's counters and the auditor's latest status as one JSON object.
func (r *Relay) status(w http.ResponseWriter, _ *http.Request) {
	audit := json.RawMessage(r.supervisor.Status())
	if audit == nil {
		audit = json.RawMessage("null")
	}
	text, err := json.Marshal(struct {
		Version string          `json:"version"`
		Proxy   proxy.Stats     `json:"proxy"`
		Routes  []routeStatus   `json:"routes"`
		Queue   any             `json:"queue"`
		Auditor any             `json:"auditor"`
		Audit   json.RawMessage `json:"audit"`
		Paused  bool            `json:"paused"` // the requested state; the auditor's pace reports the actual one
	}{Version, r.stats(), r.routeStatus(), r.queue.Stats(), r.supervisor.Stats(), audit, r.supervisor.Paused()})
	if err != nil { // the auditor's part is not valid JSON
		r.log.Error("write status", zap.Error(err))
		http.Error(w, "the auditor's status cannot be read; see dpwatch's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(text, '\n'))
}
