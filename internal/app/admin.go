package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
)

// handler returns the handler of the admin port, without the checks of package web. It uses only state of the relay, and for
// the coverage the ledger, so that it never waits for the auditor. adminRefused counts the requests that those checks refuse.
func (r *Relay) handler(adminRefused prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister( // panics on a duplicate name, in the first test
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&relayCollector{r}, adminRefused,
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.Handle("GET /readyz", &readiness{draining: r.draining.Load, check: r.reachEngines})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { r.metrics(w, registry) })
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

// metricsText returns metrics in Prometheus's text format. With an error, it returns those that could be gathered.
func metricsText(registry *prometheus.Registry) ([]byte, error) {
	families, err := registry.Gather()
	var text bytes.Buffer
	for _, f := range families {
		_, writeErr := expfmt.MetricFamilyToText(&text, f)
		err = errors.Join(err, writeErr)
	}
	return text.Bytes(), err
}

// adminPort serves metrics, health and status on all admin listeners.
type adminPort struct {
	log     *zap.Logger
	sets    []adminSet
	refused *prometheus.CounterVec
}

// adminSet is one admin listener of the configuration, with its addresses.
type adminSet struct {
	cfg       config.AdminListener
	server    *web.Server
	listeners []net.Listener
}

// adminSocketMode admits only the user of this process and root: who can connect to the socket can pause audits.
const adminSocketMode = 0o600

// newAdminPort opens the admin listeners of the configuration. The caller closes the port, also after an error.
func newAdminPort(admin config.Admin, log *zap.Logger, newHandler func(adminRefused prometheus.Collector) http.Handler) (*adminPort, error) {
	p := &adminPort{log: log.Named("admin"), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dpwatch_admin_refused_requests_total", Help: "Requests that the admin port refused, by reason.",
	}, []string{"reason"})}
	handler := newHandler(p.refused)
	for _, cfg := range admin.AllListeners() {
		server, err := web.New(web.Options{
			Handler: handler, Exposed: !cfg.Exposed().IsZero(), Hosts: adminHosts(cfg), TokenFile: cfg.TokenFile, ProxyLogin: proxyLogin(cfg.ProxyLogin),
			CertFile: cfg.TLS.Certificate, KeyFile: cfg.TLS.Key, OpenMetrics: cfg.OpenMetrics, MetricsOnly: cfg.MetricsOnly,
			Logger: p.log, Refused: func(reason string) { p.refused.WithLabelValues(reason).Inc() },
		})
		if err != nil {
			return p, fmt.Errorf("admin: %w", err)
		}
		p.sets = append(p.sets, adminSet{cfg: cfg, server: server})
		set := &p.sets[len(p.sets)-1]
		for _, a := range cfg.Listen {
			l, err := listen(a, adminSocketMode)
			if err != nil {
				return p, listenError("admin.listen", a, err)
			}
			set.listeners = append(set.listeners, l)
			p.log.Info("admin listener", zap.Stringer("address", l.Addr()), zap.Bool("tls", cfg.TLS != config.AdminTLS{}),
				zap.Bool("token", cfg.TokenFile != ""), zap.Bool("metrics_only", cfg.MetricsOnly))
			if cfg.TokenFile == "" && cfg.ProxyLogin.IsZero() && !cfg.MetricsOnly && a.Network != "unix" {
				p.log.Info("every user of this machine can read the status; POST /api/pause and /api/resume are refused: "+
					"set admin.token_file, or listen on unix:/path", zap.Stringer("address", l.Addr()))
			}
		}
	}
	return p, nil
}

// proxyLogin returns the proxy of a configuration; nil without one.
func proxyLogin(c config.ProxyLogin) *web.ProxyLogin {
	if c.IsZero() {
		return nil
	}
	p := &web.ProxyLogin{Header: c.Header, Viewers: c.Viewers, Auditors: c.Auditors, Operators: c.Operators}
	for _, a := range c.Addresses {
		p.Addresses = append(p.Addresses, a.Prefix())
	}
	return p
}

// adminHosts returns the accepted values of Host: the configured names and the hosts of the addresses.
func adminHosts(cfg config.AdminListener) []string {
	var hosts []string
	for _, h := range cfg.Hosts {
		hosts = append(hosts, string(h))
	}
	for _, a := range cfg.Listen {
		if host, _, err := net.SplitHostPort(a.Address); err == nil && a.Network != "unix" && host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// addresses returns the addresses of all listeners.
func (p *adminPort) addresses() []string {
	var out []string
	for _, set := range p.sets {
		out = append(out, addresses(set.listeners)...)
	}
	return out
}

// serve serves every listener in goroutines of the group. If a listener fails, traffic continues.
func (p *adminPort) serve(group *errgroup.Group) {
	for _, set := range p.sets {
		for _, l := range set.listeners {
			group.Go(func() error {
				if err := set.server.Serve(l); err != nil {
					p.log.Error("admin listener", zap.Stringer("address", l.Addr()), zap.Error(err))
				}
				return nil
			})
		}
	}
}

// shutdown waits at most grace for active requests and then closes their connections.
func (p *adminPort) shutdown(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, set := range p.sets {
		if set.server.Shutdown(ctx) != nil {
			_ = set.server.Close()
		}
	}
}

func (p *adminPort) close() {
	for _, set := range p.sets {
		for _, l := range set.listeners {
			_ = l.Close()
		}
	}
}
