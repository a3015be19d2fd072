package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy"
)

// route is one engine with its proxy and listeners.
type route struct {
	cfg       config.Route
	server    *proxy.Server
	listeners []net.Listener
}

// sessionIDBits is the number of low bits of a session ID that count the sessions of a route; the higher bits are the route's
// index.
const sessionIDBits = 48

// newRoute creates the route with this index. Captured queries whose text contains one of protectedNames go to sink.
func newRoute(c *config.Config, index int, sink proxy.Sink, log *zap.Logger) (*route, error) {
	p := &c.Proxy
	cfg := p.AllRoutes()[index]
	log = log.With(zap.String("route", cfg.Name))
	server, err := proxy.New(proxy.Options{
		Upstream:    proxy.Address{Network: cfg.Upstream.Network, Address: cfg.Upstream.Address},
		ClientTLS:   clientTLS(cfg.TLS),
		UpstreamTLS: upstreamTLS(cfg.UpstreamTLS), ProxyProtocol: prefixes(cfg.ProxyProtocol),
		SessionIDBase: uint64(index) << sessionIDBits,
		Capture:       p.Capture, Sink: sink, MaybeProtected: capture.Mentions(protectedNames(c)),
		MaxSessions: p.MaxSessions, StartupTimeout: time.Duration(p.StartupTimeout),
		DrainTimeout: time.Duration(p.DrainTimeout), DialTimeout: time.Duration(p.DialTimeout),
		KeepAlive: time.Duration(p.KeepAlive), IdleTimeout: time.Duration(p.IdleTimeout),
		CaptureBudgetBytes: int(p.CaptureBudget), MaxStatementBytes: int(p.MaxStatement),
		Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("route %s: %w", cfg.Name, err)
	}
	return &route{cfg: cfg, server: server}, nil
}

// routes returns a function that returns the name of a session's route; nil if there is only one route.
func routes(c *config.Config) func(capture.Query) string {
	all := c.Proxy.AllRoutes()
	if len(all) < 2 {
		return nil
	}
	return func(q capture.Query) string {
		if index := q.SessionID >> sessionIDBits; index < uint64(len(all)) {
			return all[index].Name
		}
		return ""
	}
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

// check returns an error if clients could not authenticate, because both legs use TLS and show different certificates. If the
// engine's certificate cannot be fetched, it logs a warning and returns nil: then each session compares the certificates.
func (r *route) check(log *zap.Logger) error {
	err := r.server.CheckUpstream(context.Background())
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

func (r *route) listen() error {
	for _, a := range r.cfg.Listen {
		l, err := listen(a, socketMode)
		if err != nil {
			return listenError("proxy.listen", a, err)
		}
		r.listeners = append(r.listeners, l)
	}
	return nil
}

// listenError returns the error of a configured listen address, with advice if the address is in use.
func listenError(key string, a config.Address, err error) error {
	err = fmt.Errorf("%s %s: %w", key, a, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another address, or stop the program that uses it", err)
	}
	return err
}

func (r *route) close() {
	for _, l := range r.listeners {
		_ = l.Close()
	}
}

// addresses returns the addresses of listeners, with the actual port in place of port 0.
func addresses(listeners []net.Listener) []string {
	var out []string
	for _, l := range listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

// socketMode lets every local user connect, like PostgreSQL's own sockets; authentication is left to the engine.
const socketMode = 0o777

// listen opens a listener; mode applies to a Unix socket. The socket that a killed process has left is replaced.
func listen(a config.Address, mode os.FileMode) (net.Listener, error) {
	if a.Network != "unix" {
		return net.Listen(family(a), a.Address)
	}
	if err := removeStale(a.Address); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", a.Address)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(a.Address, mode); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// family returns the network of an address: tcp4 for IPv4, because with tcp, 0.0.0.0 would also listen on IPv6.
func family(a config.Address) string {
	host, _, err := net.SplitHostPort(a.Address)
	if ip, parseErr := netip.ParseAddr(host); err == nil && parseErr == nil && ip.Is4() {
		return "tcp4"
	}
	return a.Network
}

// removeStale removes a Unix socket on which no process listens. It leaves other files.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return err
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return nil // net.Listen reports the error
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}
