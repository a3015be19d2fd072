package relay

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/dpwatch/dpwatch/internal/web"
)

// handler returns the handler of the admin port, without the checks of package web. It uses only state of the relay,
// and for the coverage the ledger, so that it never waits for the auditor. adminRefused counts the requests that those
// checks refuse.
func (r *Relay) handler(adminRefused prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // panics on a duplicate name, in the first test
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&relayCollector{r}, adminRefused,
	)
	return r.mux(func(w http.ResponseWriter, _ *http.Request) { r.metrics(w, registry) })
}

// Patterns returns the patterns of the routes of the admin port other than the pages.
func Patterns() []string { return (&Relay{}).mux(http.NotFound).Patterns() }

func (r *Relay) mux(metrics http.HandlerFunc) *web.Mux {
	mux := &web.Mux{}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", &readiness{draining: r.draining.Load, check: r.reachEngines})
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /api/status", r.status)
	mux.HandleFunc("GET /api/coverage", r.coverage)
	mux.HandleFunc("GET /api/budgets", r.budgets)
	mux.HandleFunc("GET /api/audits", r.listAudits)
	mux.HandleFunc("GET /api/ledger/audits/{id}", r.storedAudit)
	mux.HandleFunc("POST /api/engine", r.deploy)
	mux.HandleFunc("POST /api/reload", func(w http.ResponseWriter, _ *http.Request) {
		if r.read == nil {
			http.Error(w, "dpwatch: this process has no configuration file", http.StatusBadRequest)
		} else if _, err := r.Reload(r.read); err != nil {
			http.Error(w, "dpwatch: the previous configuration stays in force: "+err.Error(), http.StatusBadRequest)
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for path, paused := range map[string]bool{"POST /api/pause": true, "POST /api/resume": false} {
		mux.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
			if err := r.pause(q.FormValue("engine"), paused); err != nil {
				http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	mux.Handle("GET /api/", http.NotFoundHandler())
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		if r.pages == nil {
			http.NotFound(w, q)
			return
		}
		r.pages.ServeHTTP(w, q)
	})
	return mux
}
