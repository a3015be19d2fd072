package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// Channel binding ties SCRAM to the certificate that the client sees (RFC 5929, tls-server-end-point). With
// TLS on both legs that is the proxy's, while the engine vouches for its own: libpq takes that for an attack,
// which it would be if the two were not the same. The other combinations work: see the table in docs/tls.md.

// CertificateError says that TLS ends at the proxy with another certificate than the engine's, while the
// connection to the engine is TLS too: clients that bind SCRAM to the channel, as libpq does, would fail.
type CertificateError struct {
	Proxy, Engine *x509.Certificate
}

// Error says what to do.
func (e *CertificateError) Error() string {
	return fmt.Sprintf("the proxy shows clients the certificate %q (serial %v) and the engine shows %q (serial %v): "+
		"SCRAM with channel binding, libpq's default, fails between them; give the proxy the engine's own certificate "+
		"and key, or pass TLS through, or use no TLS between proxy and engine, or, if no client uses channel binding, "+
		"assume the same certificate", e.Proxy.Subject, e.Proxy.SerialNumber, e.Engine.Subject, e.Engine.SerialNumber)
}

// UpstreamError says that the engine could not be asked.
type UpstreamError struct{ Err error }

func (e *UpstreamError) Error() string {
	return "the engine cannot be asked for its certificate: " + e.Err.Error()
}

func (e *UpstreamError) Unwrap() error { return e.Err }

// CheckUpstream tells before Serve whether clients will be able to authenticate. Where TLS is on both legs it
// asks the engine for its certificate and compares. A *CertificateError means that they will not; an
// *UpstreamError that the engine is away or its TLS is not as configured, and that each session will be
// compared instead. Other combinations need no question and give nil.
func (s *Server) CheckUpstream(ctx context.Context) error {
	if !s.mustMatch() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.DialTimeout)
	defer cancel()
	server, err := s.dial(ctx)
	if err != nil {
		return &UpstreamError{err}
	}
	_ = server.SetDeadline(time.Now().Add(refusalWrite))
	closeWrite(server.Conn) // before a StartupMessage: the engine logs nothing
	_ = server.Close()
	if server.leaf == nil { // prefer, and there is none
		return nil
	}
	if pair, _ := s.clientTLS.pair.Get(); fingerprint(pair.Leaf) != fingerprint(server.leaf) {
		return &CertificateError{pair.Leaf, server.leaf}
	}
	return nil
}

// mustMatch reports whether the two certificates have to be the same.
func (s *Server) mustMatch() bool {
	return s.clientTLS != nil && s.upstreamTLS != nil && !s.opts.ClientTLS.AssumeSameCertificate
}

// bind makes a session's two legs fit for SCRAM, or says why they do not.
func (s *Server) bind(start *startup, server engine) (engine, error) {
	switch {
	case server.leaf == nil: // without TLS the engine offers no binding
		return server, nil
	case start.leaf == nil:
		s.counters.plusFiltered.Add(1)
		server.Conn = &plusFilter{Conn: server.Conn}
		return server, nil
	case !s.mustMatch():
		return server, nil
	}
	s.clientTLS.engineShows(server.leaf)
	if fingerprint(start.leaf) != fingerprint(server.leaf) {
		return server, &CertificateError{start.leaf, server.leaf}
	}
	return server, nil
}

// refuseUpstream tells a client why its session did not come about.
func (s *Server) refuseUpstream(start *startup, err error) {
	s.counters.refusedUpstream.Add(1)
	var certificate *CertificateError
	var noTLS *upstreamTLSError
	reason := upstreamUnreachable
	switch {
	case errors.As(err, &certificate):
		reason = otherCertificate
	case errors.As(err, &noTLS):
		reason = upstreamWithoutTLS
	}
	s.log.Warn("no session with the engine", zap.Error(err))
	s.refuse(start.conn, reason)
}
