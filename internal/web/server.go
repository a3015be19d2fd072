package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/internal/reload"
)

// Options configures a Server.
type Options struct {
	// Handler serves the requests that pass the checks.
	Handler http.Handler
	// Exposed means that other machines can reach a listener. Then Host can be any IP address, otherwise only a
	// loopback address.
	Exposed bool
	// Hosts are the names and addresses, besides localhost, that Host can be. Ports are ignored.
	Hosts []string
	// TokenFile holds the tokens, one per line, possibly after roles and a name; "" = no token is required. It is
	// reloaded when it is replaced.
	TokenFile string
	// ProxyLogin accepts the users that a reverse proxy names; nil = none.
	ProxyLogin *ProxyLogin
	// CertFile and KeyFile (PEM) enable TLS; "" = plain HTTP. They are reloaded when they are replaced.
	CertFile, KeyFile string
	// MetricsOnly restricts the server to /livez, /readyz and /metrics.
	MetricsOnly bool
	// Logger logs errors of files and connections.
	Logger *zap.Logger
	// Refused is called with the reason of each refused request: host, cross_origin, metrics_only, token, no_token,
	// role, busy. It must be safe for concurrent use.
	Refused func(reason string)
}

// Limits on the resources that admin clients can take from the process that relays the traffic.
const (
	headerTimeout  = 5 * time.Second // from accept, TLS handshake included, to the end of the header
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 4 << 10 // no request needs a body
	maxConnections = 128     // per listener; one more closes the oldest
	maxRequests    = 16      // concurrent, without probes; more get 503
	maxStreams     = 32      // concurrent requests for Events, beside the others
)

// Server serves one or more listeners with the same checks.
type Server struct {
	http http.Server
	tls  *tls.Config // nil: no TLS
}

// New returns a server. It reads the token file, the certificate and its key.
func New(o Options) (*Server, error) {
	s := &Server{}
	if o.CertFile != "" {
		pair, err := reload.Load("the admin port's certificate and key", []string{o.CertFile, o.KeyFile}, o.Logger, parsePair)
		if err != nil {
			return nil, err
		}
		s.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			current, _ := pair.Get()
			return current, nil
		}}
	}
	o.Handler = http.MaxBytesHandler(limitRequests(requireText(o.Handler), o.Refused), maxBodyBytes)
	g, err := newGuard(&o)
	if err != nil {
		return nil, err
	}
	faults, err := zap.NewStdLogAt(o.Logger, zapcore.DebugLevel) // failed TLS handshakes and the like
	if err != nil {
		return nil, fmt.Errorf("admin port: %w", err)
	}
	closing, shut := context.WithCancel(context.Background())
	s.http = http.Server{
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, closingKey{}, closing.Done())
		},
		Handler: g, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: faults, DisableGeneralOptionsHandler: true,
	}
	s.http.RegisterOnShutdown(shut)
	return s, nil
}

func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}

// Serve serves a listener, which it closes, until Shutdown or Close; it then returns nil.
func (s *Server) Serve(l net.Listener) error {
	l = boundConnections(l, maxConnections)
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops accepting and waits for active requests until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close closes every connection immediately.
func (s *Server) Close() error { return s.http.Close() }
