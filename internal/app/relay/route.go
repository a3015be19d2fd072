package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy"
)

const (
	startupTimeout = 10 * time.Second // from accept to the startup message, TLS handshake included
	keepAlive      = time.Minute      // interval of TCP keepalives to clients and engine
	captureBudget  = 1 << 20          // bytes per session of copied client messages that are not yet processed
	queueBytes     = 32 << 20         // size of the captured queries that wait for the auditor
	parseTimeout   = 3 * time.Second  // CPU time of the auditor for parsing one statement
)

// route is one engine with its proxy and listeners.
type route struct {
	cfg       config.Route
	Server    *proxy.Server
	listeners []net.Listener
}

// NewRoute creates the route with this index. Captured queries for whose text maybeProtected returns true go to sink,
// and a few of those that are not captured to samples, which may be nil.
func NewRoute(c *config.Config, index int, sink proxy.Sink, maybeProtected func(sql string) bool, definitions *capture.Definitions, samples *capture.Samples, log *zap.Logger) (*route, error) {
	p := &c.Proxy
	cfg := p.AllRoutes()[index]
	log = log.With(zap.String("route", cfg.Name))
	server, err := proxy.New(proxy.Options{
		Upstream:    proxy.Address{Network: cfg.Upstream.Network, Address: cfg.Upstream.Address},
		ClientTLS:   clientTLS(cfg.TLS),
		UpstreamTLS: upstreamTLS(cfg.UpstreamTLS), ProxyProtocol: prefixes(cfg.ProxyProtocol),
		SessionIDBase: uint64(index) << setup.SessionIDBits,
		Capture:       p.Capture, Sink: sink, MaybeProtected: maybeProtected, Definitions: definitions, Samples: samples, ClaimPrefix: c.Claims.Answer,
		MaxSessions: p.MaxSessions, StartupTimeout: startupTimeout,
		DrainTimeout: time.Duration(p.DrainTimeout), DialTimeout: time.Duration(c.Tuning.DialTimeout),
		KeepAlive: keepAlive, IdleTimeout: time.Duration(p.IdleTimeout),
		CaptureBudgetBytes: captureBudget, MaxStatementBytes: int(p.MaxStatement),
		Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("route %s: %w", cfg.Name, err)
	}
	return &route{cfg: cfg, Server: server}, nil
}

func clientTLS(t config.TLS) proxy.ClientTLS {
	return proxy.ClientTLS{
		Mode: proxy.TLSMode(t.Mode), CertFile: t.Certificate, KeyFile: t.Key, ClientCAFile: t.ClientCA,
		AssumeSameCertificate: t.SameCertificate == "assume",
	}
}

func upstreamTLS(t config.UpstreamTLS) proxy.UpstreamTLS {
	return proxy.UpstreamTLS{
		Mode: proxy.UpstreamTLSMode(t.Mode), CAFile: t.CA, CertFile: t.Certificate, KeyFile: t.Key, ServerName: t.ServerName,
	}
}

func prefixes(networks []config.Network) []netip.Prefix {
	out := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		out[i] = n.Prefix()
	}
	return out
}

// check returns an error if clients could not authenticate, because both legs use TLS and show different certificates.
// If the engine's certificate cannot be fetched, it logs a warning and returns nil: then each session compares the
// certificates.
func (r *route) check(log *zap.Logger) error {
	if note := r.HBANote(); note != "" {
		log.Warn(note, zap.String("route", r.cfg.Name))
	}
	err := r.Server.CheckUpstream(context.Background())
	var unchecked *proxy.UpstreamError
	if errors.As(err, &unchecked) {
		log.Warn("the proxy's certificate could not be compared with the engine's: each session compares them",
			zap.String("route", r.cfg.Name), zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("route %s: %w with tls.same_certificate: assume", r.cfg.Name, err)
	}
	return nil
}

// HBANote returns which lines of the engine's pg_hba.conf match other clients than without the proxy, because only one
// leg uses TLS; "" = none.
func (r *route) HBANote() string {
	upstream, mode := r.cfg.UpstreamTLS.Mode != "disable", r.cfg.TLS.Mode
	switch {
	case upstream && mode != "require":
		return "the engine sees clients without TLS as clients with TLS: hostssl lines of pg_hba.conf match them, and hostnossl lines (hostnossl ... reject) do not; use tls.mode require to refuse clients without TLS"
	case !upstream && (mode == "allow" || mode == "require"):
		return "the engine sees clients with TLS as clients without TLS: hostnossl lines of pg_hba.conf match them, and hostssl lines do not; use upstream_tls or tls.mode passthrough if the engine must see TLS"
	}
	return ""
}

func (r *route) listen() error {
	for _, a := range r.cfg.Listen {
		l, err := admin.Listen(a, socketMode)
		if err != nil {
			return admin.ListenError("proxy.listen", a, err)
		}
		r.listeners = append(r.listeners, l)
	}
	return nil
}

func (r *route) close() {
	for _, l := range r.listeners {
		_ = l.Close()
	}
}

// socketMode lets every local user connect, like PostgreSQL's own sockets; authentication is left to the engine.
const socketMode = 0o777
