package proxy

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// Channel binding ties SCRAM to the certificate that the client sees (RFC 5929, tls-server-end-point). With TLS on both legs
// that is the proxy's certificate, while the engine uses its own. libpq then reports an attack, unless the two certificates
// are the same. The other combinations work: see the table in docs/tls.md.

// CertificateError means that the proxy's certificate differs from the engine's while both legs use TLS: clients that bind
// SCRAM to the channel, as libpq does, would fail.
type CertificateError struct {
	Proxy, Engine *x509.Certificate
}

func (e *CertificateError) Error() string {
	return fmt.Sprintf("the proxy shows clients the certificate %q (serial %v) and the engine shows %q (serial %v): "+
		"SCRAM with channel binding, libpq's default, fails between them; give the proxy the engine's own certificate "+
		"and key, or pass TLS through, or use no TLS between proxy and engine, or, if no client uses channel binding, "+
		"assume the same certificate", e.Proxy.Subject, e.Proxy.SerialNumber, e.Engine.Subject, e.Engine.SerialNumber)
}

// UpstreamError means that the engine's certificate could not be fetched.
type UpstreamError struct{ Err error }

func (e *UpstreamError) Error() string {
	return "the engine cannot be asked for its certificate: " + e.Err.Error()
}

func (e *UpstreamError) Unwrap() error { return e.Err }

// CheckUpstream reports, before Serve, whether clients can authenticate. With TLS on both legs it fetches the engine's
// certificate and compares it with the proxy's. It returns a *CertificateError if they differ, and an *UpstreamError if the
// engine is unreachable or its TLS is not as configured; the certificates are then compared for each session. Other
// combinations need no check and return nil.
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
	if server.leaf == nil { // mode prefer, and the engine has no TLS
		return nil
	}
	if pair, _ := s.clientTLS.pair.Get(); fingerprint(pair.Leaf) != fingerprint(server.leaf) {
		return &CertificateError{pair.Leaf, server.leaf}
	}
	return nil
}

// mustMatch reports whether the two certificates must be the same.
func (s *Server) mustMatch() bool {
	return s.clientTLS != nil && s.upstreamTLS != nil && !s.opts.ClientTLS.AssumeSameCertificate
}

// bind prepares a session's two legs for SCRAM. It returns a *CertificateError if they cannot work together.
func (s *Server) bind(start *startup, server engine) (engine, error) {
	switch {
	case server.leaf == nil: // the engine offers channel binding only with TLS
		return server, nil
	case start.leaf == nil:
		s.counters.plusFiltered.Add(1)
		server.Conn = &scramPlusFilter{Conn: server.Conn}
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

// refuseUpstream refuses a client whose session with the engine could not be established.
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
