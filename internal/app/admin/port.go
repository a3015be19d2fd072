package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
)

// MetricsText returns metrics in Prometheus's text format. With an error, it returns those that could be gathered.
func MetricsText(registry *prometheus.Registry) ([]byte, error) {
	families, err := registry.Gather()
	var text bytes.Buffer
	for _, f := range families {
		_, writeErr := expfmt.MetricFamilyToText(&text, f)
		err = errors.Join(err, writeErr)
	}
	return text.Bytes(), err
}

// Port serves metrics, health and status on all admin listeners.
type Port struct {
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

// SocketMode admits only the user of this process and root: who can connect to the socket can pause audits.
const SocketMode = 0o600

// New opens the admin listeners of the configuration.
func New(listeners []config.AdminListener, log *zap.Logger, newHandler func(adminRefused prometheus.Collector) http.Handler) (*Port, error) {
	p := &Port{log: log.Named("admin"), refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dpwatch_admin_refused_requests_total", Help: "Requests that the admin port refused, by reason.",
	}, []string{"reason"})}
	if err := p.open(listeners, newHandler(p.refused)); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Port) open(listeners []config.AdminListener, handler http.Handler) error {
	for _, cfg := range listeners {
		server, err := web.New(web.Options{
			Handler: handler, Exposed: !cfg.Exposed().IsZero(), Hosts: adminHosts(cfg), TokenFile: cfg.TokenFile, ProxyLogin: proxyLogin(cfg.ProxyLogin),
			CertFile: cfg.TLS.Certificate, KeyFile: cfg.TLS.Key, MetricsOnly: cfg.MetricsOnly,
			Logger: p.log, Refused: func(reason string) { p.refused.WithLabelValues(reason).Inc() },
		})
		if err != nil {
			return fmt.Errorf("admin: %w", err)
		}
		p.sets = append(p.sets, adminSet{cfg: cfg, server: server})
		set := &p.sets[len(p.sets)-1]
		for _, a := range cfg.Listen {
			l, err := Listen(a, SocketMode)
			if err != nil {
				return ListenError("admin.listen", a, err)
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
	return nil
}

// proxyLogin returns the proxy of a configuration; nil without one.
func proxyLogin(c config.ProxyLogin) *web.ProxyLogin {
	if c.IsZero() {
		return nil
	}
	p := &web.ProxyLogin{Header: c.Header}
	for _, u := range c.Users {
		for _, role := range u.Roles {
			switch role {
			case "viewer":
				p.Viewers = append(p.Viewers, u.Name)
			case "auditor":
				p.Auditors = append(p.Auditors, u.Name)
			case "operator":
				p.Operators = append(p.Operators, u.Name)
			}
		}
	}
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

// Addresses returns the addresses of all listeners.
func (p *Port) Addresses() []string {
	var out []string
	for _, set := range p.sets {
		out = append(out, Addresses(set.listeners)...)
	}
	return out
}

// Serve serves every listener in goroutines of the group. If a listener fails, traffic continues.
func (p *Port) Serve(group *errgroup.Group) {
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

// Shutdown waits at most grace for active requests and then closes their connections.
func (p *Port) Shutdown(grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	for _, set := range p.sets {
		if set.server.Shutdown(ctx) != nil {
			_ = set.server.Close()
		}
	}
}

// Close closes the listeners.
func (p *Port) Close() {
	for _, set := range p.sets {
		for _, l := range set.listeners {
			_ = l.Close()
		}
	}
}
