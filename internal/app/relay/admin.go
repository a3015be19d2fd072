package relay

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/web"
)

// api is the handler of the admin port.
type api struct {
	engines       *Engines
	ledgers       *Ledgers
	configuration *Configuration
	routes        routes
	dialTimeout   time.Duration // of a check of readiness
	log           *zap.Logger
	pages         http.Handler // nil = there are none

	draining atomic.Bool
	reading  sync.Mutex // of the ledger, for a request
}

// handler returns the handler of the admin port, without the checks of package web. It uses only state of the relay,
// and for the coverage the ledger, so that it never waits for the auditor. adminRefused counts the requests that those
// checks refuse.
func (a *api) handler(adminRefused prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // panics on a duplicate name, in the first test
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&relayCollector{a}, adminRefused,
	)
	return a.mux(func(w http.ResponseWriter, _ *http.Request) { a.metrics(w, registry) })
}

// Patterns returns the patterns of the routes of the admin port other than the pages.
func Patterns() []string { return (&api{}).mux(http.NotFound).Patterns() }

func (a *api) mux(metrics http.HandlerFunc) *web.Mux {
	mux := &web.Mux{}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", &readiness{draining: a.draining.Load, check: func(ctx context.Context) error {
		return a.routes.reach(ctx, a.dialTimeout, a.log)
	}})
	mux.HandleFunc("GET /metrics", metrics)
	mux.HandleFunc("GET /api/status", a.status)
	mux.HandleFunc("GET /api/coverage", a.coverage)
	mux.HandleFunc("GET /api/budgets", a.budgets)
	mux.HandleFunc("GET /api/audits", a.listAudits)
	mux.HandleFunc("GET /api/ledger/audits/{id}", a.storedAudit)
	mux.HandleFunc("POST /api/engine", a.deploy)
	mux.HandleFunc("POST /api/reload", func(w http.ResponseWriter, _ *http.Request) {
		if a.configuration.read == nil {
			http.Error(w, "dpwatch: this process has no configuration file", http.StatusBadRequest)
		} else if _, err := a.configuration.Reload(a.configuration.read); err != nil {
			http.Error(w, "dpwatch: the previous configuration stays in force: "+err.Error(), http.StatusBadRequest)
		} else {
			w.WriteHeader(http.StatusNoContent)
		}
	})
	for path, paused := range map[string]bool{"POST /api/pause": true, "POST /api/resume": false} {
		mux.HandleFunc(path, func(w http.ResponseWriter, q *http.Request) {
			if err := a.engines.Pause(q.FormValue("engine"), paused); err != nil {
				http.Error(w, "dpwatch: "+err.Error(), http.StatusBadRequest)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	mux.Handle("GET /api/", http.NotFoundHandler())
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		if a.pages == nil {
			http.NotFound(w, q)
			return
		}
		a.pages.ServeHTTP(w, q)
	})
	return mux
}
