package startup

import (
	"context"
	"crypto/x509"
	"fmt"

	"go.uber.org/zap"
)

// Channel binding ties SCRAM to the certificate that the client sees (RFC 5929, tls-server-end-point). With TLS on both
// legs that is the proxy's certificate, while the engine uses its own. libpq then reports an attack, unless the two
// certificates are the same. The other combinations work: see the table in docs/tls.md.

// CertificateError means that the proxy's certificate differs from the engine's while both legs use TLS: clients that
// bind SCRAM to the channel, as libpq does, would fail.
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
	return "fetch the engine's certificate: " + e.Err.Error()
}

func (e *UpstreamError) Unwrap() error { return e.Err }

// Check is proxy.Server.CheckUpstream.
func (l *Legs) Check(ctx context.Context) error {
	if l.clientTLS == nil || l.upstreamTLS == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.DialTimeout)
	defer cancel()
	server, err := l.Dial(ctx) // also shows whether the engine requests certificates
	if err == nil {
		l.hangUp(server)
	}
	switch {
	case !l.mustMatch():
		return nil
	case err != nil:
		return &UpstreamError{err}
	case server.Leaf == nil: // mode prefer, and the engine has no TLS
		return nil
	}
	if pair, _ := l.clientTLS.pair.Get(); fingerprint(pair.Leaf) != fingerprint(server.Leaf) {
		return &CertificateError{pair.Leaf, server.Leaf}
	}
	return nil
}

// mustMatch reports whether the two certificates must be the same.
func (l *Legs) mustMatch() bool {
	return l.clientTLS != nil && l.upstreamTLS != nil && !l.opts.ClientTLS.AssumeSameCertificate
}

// Bind prepares a session's two legs for SCRAM. It returns a *CertificateError if they cannot work together.
func (l *Legs) Bind(client *Client, server Engine) (Engine, error) {
	switch {
	case server.Leaf == nil: // the engine offers channel binding only with TLS
		return server, nil
	case client.Leaf == nil:
		l.Counts.PlusFiltered.Add(1)
		server.Conn = &scramPlusFilter{Conn: server.Conn, refused: func() {
			l.log.Warn("the engine refused a client without TLS that announces SCRAM channel binding: turn channel binding off in the client, or connect it to dpwatch with TLS",
				zap.Stringer("client", client.Peer))
		}}
		return server, nil
	case !l.mustMatch():
		return server, nil
	}
	l.clientTLS.engineShows(server.Leaf)
	if fingerprint(client.Leaf) != fingerprint(server.Leaf) {
		return server, &CertificateError{client.Leaf, server.Leaf}
	}
	return server, nil
}
