package startup

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/reload"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// upstreamTLS is the TLS configuration of the engine leg.
type upstreamTLS struct {
	mode UpstreamTLSMode
	name string
	ca   *reload.Files[*x509.CertPool]   // nil: the system's, or no verification
	pair *reload.Files[*tls.Certificate] // nil: no client certificate
	// asked means that the engine requested a certificate in the last handshake. The proxy then requests one from its
	// clients, as libpq with sslcertmode=require needs.
	asked atomic.Bool
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

// config returns the TLS configuration of one connection. The handshake sets asked if the engine requests a
// certificate.
func (t *upstreamTLS) config(asked *bool) *tls.Config {
	cfg := &tls.Config{ServerName: t.name, MinVersion: tls.VersionTLS12, NextProtos: []string{alpn}}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		*asked = true
		if t.pair == nil {
			return &tls.Certificate{}, nil // none is sent
		}
		pair, _ := t.pair.Get()
		return pair, nil
	}
	if t.ca != nil {
		cfg.RootCAs, _ = t.ca.Get()
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

// Engine is a connection to the engine.
type Engine struct {
	net.Conn                   // *tlsLeg with TLS, otherwise the plain connection
	Leaf     *x509.Certificate // the engine's; nil without TLS
}

// Dial connects to the engine, with TLS where configured.
func (l *Legs) Dial(ctx context.Context) (Engine, error) {
	conn, err := l.DialPlain(ctx)
	if err != nil || l.upstreamTLS == nil {
		return Engine{Conn: conn}, err
	}
	var e Engine
	err = l.within(ctx, conn, func() error {
		e, err = l.upstreamTLS.secure(conn)
		return err
	})
	if err != nil {
		return Engine{}, &upstreamTLSError{err}
	}
	return e, nil
}

// DialPlain connects to the engine without TLS.
func (l *Legs) DialPlain(ctx context.Context) (net.Conn, error) {
	conn, err := l.dialer.DialContext(ctx, l.opts.Upstream.Network, l.opts.Upstream.Address)
	if err != nil {
		return nil, fmt.Errorf("connect to server: %w", err)
	}
	return conn, nil
}

// Request connects to the engine, sends an SSLRequest and returns the answer, one byte.
func (l *Legs) Request(ctx context.Context) (conn net.Conn, answer byte, err error) {
	if conn, err = l.DialPlain(ctx); err != nil {
		return nil, 0, err
	}
	err = l.within(ctx, conn, func() error {
		answer, err = askTLS(conn)
		return err
	})
	return conn, answer, err
}

// within runs f, which reads and writes conn, until the dial timeout is over or ctx ends. It closes conn if f fails.
func (l *Legs) within(ctx context.Context, conn net.Conn, f func() error) error {
	_ = conn.SetDeadline(time.Now().Add(l.opts.DialTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	err := f()
	stop()
	if err != nil {
		_ = conn.Close()
		return err
	}
	_ = conn.SetDeadline(time.Time{})
	return nil
}

// Probe is proxy.Server.Probe.
func (l *Legs) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.opts.DialTimeout)
	defer cancel()
	if l.upstreamTLS != nil {
		server, err := l.Dial(ctx)
		if err == nil {
			l.hangUp(server) // the engine has answered SSLRequest
		}
		return err
	}
	conn, err := l.DialPlain(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was sent that matters
	return l.within(ctx, conn, func() error {
		answer, err := askTLS(conn)
		switch {
		case err != nil:
			return fmt.Errorf("connected, but it does not respond like a PostgreSQL server: %w", err)
		case answer != 'S' && answer != 'N' && answer != 'E':
			return errors.New("connected, but it does not respond like a PostgreSQL server")
		}
		return nil
	})
}

// hangUp closes a connection before its StartupMessage: the engine logs nothing.
func (l *Legs) hangUp(server Engine) {
	_ = server.SetDeadline(time.Now().Add(WriteLimit))
	wire.CloseWrite(server.Conn)
	_ = server.Close()
}

// Cancel forwards a CancelRequest on its own connection, with TLS where sessions use it, and waits until the engine
// closes it: the engine does so after it has handled the request, and a client that waits for the close must not see it
// earlier.
func (l *Legs) Cancel(ctx context.Context, packet []byte) error {
	if len(packet) < minCancel || len(packet) > maxCancel {
		return fmt.Errorf("cancel request has %d bytes", len(packet))
	}
	server, err := l.Dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // the engine has closed, or did not in time
	return l.within(ctx, server, func() error {
		if _, err := server.Write(packet); err != nil {
			return fmt.Errorf("write to server: %w", err)
		}
		if _, err := io.Copy(io.Discard, server); err != nil {
			l.log.Debug("the engine did not close after a cancel request", zap.Error(err))
		}
		return nil
	})
}

// secure requests TLS and performs the handshake.
func (t *upstreamTLS) secure(conn net.Conn) (Engine, error) {
	answer, err := askTLS(conn)
	switch {
	case err != nil:
		return Engine{}, err
	case answer == 'N' && t.mode == UpstreamPrefer:
		return Engine{Conn: conn}, nil
	case answer == 'N':
		return Engine{}, fmt.Errorf("the engine does not support TLS, but upstream TLS is %s", t.mode)
	case answer != 'S':
		return Engine{}, fmt.Errorf("the engine answered SSLRequest with %q", answer)
	}
	asked := false
	secured := tls.Client(conn, t.config(&asked))
	if err := secured.Handshake(); err != nil {
		return Engine{}, err
	}
	t.asked.Store(asked)
	return Engine{&tlsLeg{secured, conn}, secured.ConnectionState().PeerCertificates[0]}, nil
}

// askTLS sends an SSLRequest and returns the answer, one byte. It rejects bytes that directly follow the answer: they
// did not come through TLS and may have been injected (CVE-2021-23222).
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
		return 0, errors.New("received unencrypted data after the answer to SSLRequest")
	}
	return answer[0], nil
}
