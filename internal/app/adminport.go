package app

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
)

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

// adminSocketMode admits the user of this process and root, because access to the socket permits pausing audits.
const adminSocketMode = 0o600

// newAdminPort opens the admin listeners of the configuration. The caller closes the port, also after an error.
func newAdminPort(r *Relay) (*adminPort, error) {
	p := &adminPort{log: r.log.Named("admin"), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dpwatch_admin_refused_requests_total", Help: "Requests that the admin port refused, by reason.",
	}, []string{"reason"})}
	handler := r.handler(p.refused)
	for _, cfg := range r.cfg.Admin.AllListeners() {
		server, err := web.New(web.Options{
			Handler: handler, Exposed: !cfg.Exposed().IsZero(), Hosts: adminHosts(cfg), TokenFile: cfg.TokenFile,
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
				return p, fmt.Errorf("admin.listen %s: %w: choose another address or stop what uses it", a, err)
			}
			set.listeners = append(set.listeners, l)
			p.log.Info("admin listener", zap.Stringer("address", l.Addr()), zap.Bool("tls", cfg.TLS != config.AdminTLS{}),
				zap.Bool("token", cfg.TokenFile != ""), zap.Bool("metrics_only", cfg.MetricsOnly))
			if cfg.TokenFile == "" && !cfg.MetricsOnly && a.Network != "unix" {
				p.log.Info("every user of this machine can read the status; POST /api/pause and /api/resume are refused: "+
					"set admin.token_file, or listen on unix:/path", zap.Stringer("address", l.Addr()))
			}
		}
	}
	return p, nil
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

// addresses returns the listening addresses, with the actual port in place of port 0.
func (p *adminPort) addresses() []string {
	var out []string
	for _, set := range p.sets {
		for _, l := range set.listeners {
			out = append(out, l.Addr().String())
		}
	}
	return out
}

// serve serves every listener in goroutines of the group. If a listener fails, traffic goes on.
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
