package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/dpwatch/dpwatch/internal/reload"
)

// upstreamTLS is the TLS configuration of the engine leg.
type upstreamTLS struct {
	mode UpstreamTLSMode
	name string
	ca   *reload.Files[*x509.CertPool]   // nil: the system's, or no verification
	pair *reload.Files[*tls.Certificate] // nil: no client certificate
}

// newUpstreamTLS reads the files. It returns nil without TLS to the engine.
func newUpstreamTLS(o *Options) (*upstreamTLS, error) {
	u := &o.UpstreamTLS
	if u.Mode == UpstreamDisable {
		return nil, nil
	}
	t := &upstreamTLS{mode: u.Mode, name: o.serverName()}
	log := o.Logger.Named("proxy.tls")
	var err error
	if u.CAFile != "" {
		if t.ca, err = reload.Load("the CA of the engine's certificate", []string{u.CAFile}, log, parsePool); err != nil {
			return nil, err
		}
	}
	if u.CertFile != "" {
		t.pair, err = reload.Load("the certificate and key for the engine", []string{u.CertFile, u.KeyFile}, log, parsePair)
	}
	return t, err
}

// config returns the TLS configuration of one connection.
func (t *upstreamTLS) config() *tls.Config {
	cfg := &tls.Config{ServerName: t.name, MinVersion: tls.VersionTLS12, NextProtos: []string{alpn}}
	if t.ca != nil {
		cfg.RootCAs, _ = t.ca.Get()
	}
	if t.pair != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, _ := t.pair.Get()
			return pair, nil
		}
	}
	if t.mode != UpstreamVerifyFull {
		cfg.InsecureSkipVerify = true //nolint:gosec // the mode says so; verify-ca verifies below
	}
	if t.mode == UpstreamVerifyCA {
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verifyIssuer(state, cfg.RootCAs) }
	}
	return cfg
}

// verifyIssuer verifies a certificate chain, but not the host name.
func verifyIssuer(state tls.ConnectionState, roots *x509.CertPool) error {
	intermediates := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates})
	return err
}

// upstreamTLSError means that the engine was reached, but not with TLS as configured.
type upstreamTLSError struct{ err error }

func (e *upstreamTLSError) Error() string { return "TLS with server: " + e.err.Error() }

func (e *upstreamTLSError) Unwrap() error { return e.err }

type engine struct {
	net.Conn                   // *tlsLeg with TLS, otherwise the plain connection
	leaf     *x509.Certificate // the engine's; nil without TLS
}

// dial connects to the engine, with TLS where configured.
func (s *Server) dial(ctx context.Context) (engine, error) {
	conn, err := s.dialPlain(ctx)
	if err != nil || s.upstreamTLS == nil {
		return engine{Conn: conn}, err
	}
	_ = conn.SetDeadline(time.Now().Add(s.opts.DialTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	e, err := s.upstreamTLS.secure(conn)
	stop()
	if err != nil {
		_ = conn.Close()
		return engine{}, &upstreamTLSError{err}
	}
	_ = conn.SetDeadline(time.Time{})
	return e, nil
}

func (s *Server) dialPlain(ctx context.Context) (net.Conn, error) {
	conn, err := s.dialer.DialContext(ctx, s.opts.Upstream.Network, s.opts.Upstream.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to server: %w", err)
	}
	return conn, nil
}

// secure requests TLS and performs the handshake.
func (t *upstreamTLS) secure(conn net.Conn) (engine, error) {
	answer, err := askTLS(conn)
	switch {
	case err != nil:
		return engine{}, err
	case answer == 'N' && t.mode == UpstreamPrefer:
		return engine{Conn: conn}, nil
	case answer == 'N':
		return engine{}, fmt.Errorf("the engine has no TLS, and upstream TLS is %s", t.mode)
	case answer != 'S':
		return engine{}, fmt.Errorf("the engine answered SSLRequest with %q", answer)
	}
	secured := tls.Client(conn, t.config())
	if err := secured.Handshake(); err != nil {
		return engine{}, err
	}
	return engine{&tlsLeg{secured, conn}, secured.ConnectionState().PeerCertificates[0]}, nil
}

// askTLS sends an SSLRequest and returns the answer, one byte. It rejects bytes that directly follow the answer: they did
// not come through TLS and may have been injected (CVE-2021-23222).
func askTLS(conn net.Conn) (byte, error) {
	request := binary.BigEndian.AppendUint32([]byte{0, 0, 0, requestSize}, sslCode)
	if _, err := conn.Write(request); err != nil {
		return 0, fmt.Errorf("write SSLRequest: %w", err)
	}
	var answer [2]byte
	n, err := conn.Read(answer[:])
	switch {
	case n == 0 && err == nil:
		return 0, errors.New("no answer to SSLRequest")
	case n == 0:
		return 0, fmt.Errorf("read the answer to SSLRequest: %w", err)
	case n > 1 && answer[0] != 'E': // a server without SSLRequest sends a whole error message
		return 0, errors.New("data behind the answer to SSLRequest, before TLS")
	}
	return answer[0], nil
}
