package startup

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/reload"
)

// expiryNotice is how long before its expiry a certificate is logged, expiryRepeat how often.
const (
	expiryNotice = 14 * 24 * time.Hour
	expiryRepeat = 24 * time.Hour
)

// clientTLS terminates the clients' TLS.
type clientTLS struct {
	log     *zap.Logger
	timeout time.Duration // for writes during a handshake
	pair    *reload.Files[*tls.Certificate]
	ca      *reload.Files[*x509.CertPool] // nil: no client certificates
	warned  atomic.Int64                  // Unix seconds of the last warning about the expiry
	wanted  atomic.Pointer[[sha256.Size]byte]
}

// newClientTLS reads the files. It returns nil if TLS does not end at the proxy.
func newClientTLS(o *Options) (*clientTLS, error) {
	c := &o.ClientTLS
	if !c.Mode.terminates() {
		return nil, nil
	}
	t := &clientTLS{log: o.Logger.Named("proxy.tls"), timeout: o.StartupTimeout}
	var err error
	if t.pair, err = reload.Load("the proxy's certificate and key", []string{c.CertFile, c.KeyFile}, t.log, t.parsePair); err != nil {
		return nil, err
	}
	if c.ClientCAFile != "" {
		t.ca, err = reload.Load("the CA of clients' certificates", []string{c.ClientCAFile}, t.log, parsePool)
	}
	return t, err
}

func (t *clientTLS) parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := parsePair(contents)
	if err == nil {
		t.warned.Store(0)
		t.log.Info("certificate loaded", zap.String("subject", pair.Leaf.Subject.String()), zap.Time("not_after", pair.Leaf.NotAfter))
		t.checkExpiry(pair)
	}
	return pair, err
}

// parsePair parses a certificate and its key, both PEM.
func parsePair(contents [][]byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, err
	}
	return &pair, nil
}

func parsePool(contents [][]byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents[0]) {
		return nil, errors.New("the file contains no PEM certificate")
	}
	return pool, nil
}

// checkExpiry warns once a day about a certificate that has expired or is about to.
func (t *clientTLS) checkExpiry(pair *tls.Certificate) {
	now, last := time.Now(), t.warned.Load()
	left := pair.Leaf.NotAfter.Sub(now)
	if left > expiryNotice || now.Unix()-last < int64(expiryRepeat/time.Second) || !t.warned.CompareAndSwap(last, now.Unix()) {
		return
	}
	t.log.Warn("the proxy's certificate expires soon or has expired: replace its files",
		zap.Time("not_after", pair.Leaf.NotAfter), zap.Duration("left", left))
}

// certificate returns the certificate for the next client: the pair in the files, or the previous pair while the engine
// still shows that one.
func (t *clientTLS) certificate() *tls.Certificate {
	pair, previous := t.pair.Get()
	t.checkExpiry(pair)
	if wanted := t.wanted.Load(); wanted != nil && previous != nil &&
		*wanted != fingerprint(pair.Leaf) && *wanted == fingerprint(previous.Leaf) {
		return previous
	}
	return pair
}

// engineShows records the engine's current certificate, for the choice in certificate.
func (t *clientTLS) engineShows(leaf *x509.Certificate) {
	sum := fingerprint(leaf)
	t.wanted.Store(&sum)
}

// fingerprint identifies a certificate.
func fingerprint(leaf *x509.Certificate) [sha256.Size]byte { return sha256.Sum256(leaf.Raw) }

// handshake performs the TLS handshake with a client; buffered holds bytes that were read already. Direct TLS requires
// ALPN, as in PostgreSQL (manual, 55.2.10). ask requests the client's certificate as the engine does; without a CA it
// is not verified, and not used. The caller has set the read deadline.
func (t *clientTLS) handshake(client net.Conn, buffered []byte, direct, ask bool) (*tlsLeg, *x509.Certificate, error) {
	pair := t.certificate()
	cfg := &tls.Config{
		Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12,
		NextProtos: []string{alpn}, SessionTicketsDisabled: true,
	}
	switch {
	case t.ca != nil:
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
		cfg.ClientCAs, _ = t.ca.Get()
	case ask:
		cfg.ClientAuth = tls.RequestClientCert
	}
	under := client
	if len(buffered) > 0 {
		under = &prefixConn{client, buffered}
	}
	_ = client.SetWriteDeadline(time.Now().Add(t.timeout))
	conn := tls.Server(under, cfg)
	if err := conn.Handshake(); err != nil {
		return nil, nil, fmt.Errorf("TLS handshake with client: %w", err)
	}
	_ = client.SetWriteDeadline(time.Time{})
	if direct && conn.ConnectionState().NegotiatedProtocol != alpn {
		return nil, nil, errors.New("TLS handshake with client: direct TLS needs the ALPN protocol postgresql")
	}
	return &tlsLeg{conn, client}, pair.Leaf, nil
}
