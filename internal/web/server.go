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

// Options is what a Server is made from.
type Options struct {
	// Handler serves what passes the checks.
	Handler http.Handler
	// Exposed says that other machines can reach a listener. Then Host may hold any IP address, else a loopback address only.
	Exposed bool
	// Hosts are the names and addresses, beyond localhost, that requests may have in Host. Ports are ignored.
	Hosts []string
	// TokenFile holds the bearer tokens, one a line; "" = none is asked for. It is read again when it is replaced.
	TokenFile string
	// CertFile and KeyFile (PEM) turn on TLS; "" = plain HTTP. They are read again when they are replaced.
	CertFile, KeyFile string
	// OpenMetrics lets requests for /metrics pass without a token.
	OpenMetrics bool
	// MetricsOnly serves /livez, /readyz and /metrics alone.
	MetricsOnly bool
	// Logger gets faults of files and of connections.
	Logger *zap.Logger
	// Refused is called with a reason for each request that is refused: host, cross_origin, metrics_only, token, no_token,
	// busy. It must be safe for use by several goroutines.
	Refused func(reason string)
}

// Limits on what clients of the admin port can take from the process that relays the traffic.
const (
	headerTimeout  = 5 * time.Second // from accept, TLS handshake included, to the end of the header
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 16 << 10
	maxBodyBytes   = 4 << 10 // no request has a body that matters
	maxConnections = 128     // of each listener; one more closes the oldest
	maxRequests    = 16      // at work at a time, beside the probes; further ones get 503
)

// Server serves one or several listeners with one set of checks.
type Server struct {
	http http.Server
	tls  *tls.Config // nil: plain
}

// New reads the token file, the certificate and its key.
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
	o.Handler = http.MaxBytesHandler(limitRequests(o.Handler, o.Refused), maxBodyBytes)
	g, err := newGuard(&o)
	if err != nil {
		return nil, err
	}
	faults, err := zap.NewStdLogAt(o.Logger, zapcore.DebugLevel) // TLS handshakes that fail, and the like
	if err != nil {
		return nil, fmt.Errorf("admin port: %w", err)
	}
	s.http = http.Server{
		Handler: g, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: faults, DisableGeneralOptionsHandler: true,
	}
	return s, nil
}

func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	return &pair, err
}

// Serve serves a listener, which it closes, until Shutdown or Close; nil then.
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

// Shutdown stops accepting and waits for requests at work until ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.Shutdown(ctx) }

// Close ends every connection at once.
func (s *Server) Close() error { return s.http.Close() }
