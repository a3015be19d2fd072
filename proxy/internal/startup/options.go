package startup

import (
	"errors"
	"fmt"
	"net"
)

// TLSMode selects how TLS from clients is handled.
type TLSMode string

// The modes of the client leg.
const (
	TLSDisable     TLSMode = "disable"     // SSLRequest is answered with N
	TLSAllow       TLSMode = "allow"       // TLS ends at the proxy; clients can also connect without it
	TLSRequire     TLSMode = "require"     // TLS ends at the proxy; clients without it are refused
	TLSPassthrough TLSMode = "passthrough" // TLS ends at the engine; such sessions are relayed unseen, never captured
)

// ClientTLS configures the client leg. The files are PEM and are reloaded when they are replaced.
type ClientTLS struct {
	// Mode; default TLSDisable.
	Mode TLSMode
	// CertFile (leaf first, then intermediates) and KeyFile are needed for TLSAllow and TLSRequire.
	CertFile, KeyFile string
	// ClientCAFile, with TLSRequire only: clients must present a certificate issued by one of these CAs. Database
	// authentication remains with the engine.
	ClientCAFile string
	// AssumeSameCertificate skips comparing the proxy's certificate with the engine's. If both legs use TLS and the
	// certificates differ, clients that use SCRAM with channel binding, libpq's default, fail.
	AssumeSameCertificate bool
}

// UpstreamTLSMode selects TLS to the engine; the values are those of libpq's sslmode.
type UpstreamTLSMode string

// The modes of the engine leg.
const (
	UpstreamDisable    UpstreamTLSMode = "disable"
	UpstreamPrefer     UpstreamTLSMode = "prefer"      // TLS if the engine supports it; its certificate is not verified
	UpstreamRequire    UpstreamTLSMode = "require"     // TLS; its certificate is not verified
	UpstreamVerifyCA   UpstreamTLSMode = "verify-ca"   // the certificate was issued by a CA of CAFile
	UpstreamVerifyFull UpstreamTLSMode = "verify-full" // and it matches the host
)

// UpstreamTLS configures the engine leg. The files are PEM and are reloaded when they are replaced.
type UpstreamTLS struct {
	// Mode; default UpstreamDisable.
	Mode UpstreamTLSMode
	// CAFile holds the CAs that may have issued the engine's certificate. Required for verify-ca; for verify-full, ""
	// means the system's; not valid in other modes.
	CAFile string
	// CertFile and KeyFile are the proxy's client certificate, sent if the engine asks. All clients share it.
	CertFile, KeyFile string
	// ServerName is the expected name in the engine's certificate, also sent as SNI. Default: the host of Upstream.
	ServerName string
}

func (m TLSMode) terminates() bool { return m == TLSAllow || m == TLSRequire }

// validateTLS reports the faults of both legs and of their combination.
func (o *Options) validateTLS() []error {
	errs := append(o.ClientTLS.validate(), o.UpstreamTLS.validate()...)
	upstream := o.UpstreamTLS.Mode != UpstreamDisable
	if upstream && o.Upstream.Network == "unix" {
		errs = append(errs, errors.New("upstream TLS needs TCP, but the upstream is a Unix socket: set it to disable"))
	}
	if upstream && o.ClientTLS.Mode == TLSPassthrough {
		errs = append(errs, errors.New("client TLS is passed through to the engine, so upstream TLS must be disabled"))
	}
	return errs
}

func (c *ClientTLS) validate() []error {
	var errs []error
	switch c.Mode {
	case TLSAllow, TLSRequire:
		if c.CertFile == "" || c.KeyFile == "" {
			errs = append(errs, fmt.Errorf("client TLS %s needs a certificate and its key", c.Mode))
		}
	case TLSDisable, TLSPassthrough:
		if c.CertFile != "" || c.KeyFile != "" {
			errs = append(errs, fmt.Errorf("client TLS %s uses no certificate", c.Mode))
		}
	default:
		errs = append(errs, fmt.Errorf("client TLS mode is %q, must be disable, allow, require or passthrough", c.Mode))
	}
	if c.ClientCAFile != "" && c.Mode != TLSRequire {
		errs = append(errs, fmt.Errorf("client certificates need client TLS require, not %s", c.Mode))
	}
	return errs
}

func (u *UpstreamTLS) validate() []error {
	var errs []error
	switch u.Mode {
	case UpstreamDisable, UpstreamPrefer, UpstreamRequire:
		if u.CAFile != "" {
			errs = append(errs, fmt.Errorf("upstream TLS %s does not verify certificates: use verify-ca or verify-full, or remove the CA", u.Mode))
		}
	case UpstreamVerifyCA:
		if u.CAFile == "" {
			errs = append(errs, errors.New("upstream TLS verify-ca needs a CA"))
		}
	case UpstreamVerifyFull:
	default:
		errs = append(errs, fmt.Errorf("upstream TLS mode is %q, must be disable, prefer, require, verify-ca or verify-full", u.Mode))
	}
	if (u.CertFile == "") != (u.KeyFile == "") {
		errs = append(errs, errors.New("upstream TLS needs a certificate and its key, or neither"))
	}
	if u.Mode == UpstreamDisable && (u.CertFile != "" || u.ServerName != "") {
		errs = append(errs, errors.New("upstream TLS disable uses no certificate and no server name"))
	}
	return errs
}

// serverName returns the engine's host name for TLS.
func (o *Options) serverName() string {
	if o.UpstreamTLS.ServerName != "" {
		return o.UpstreamTLS.ServerName
	}
	host, _, err := net.SplitHostPort(o.Upstream.Address)
	if err != nil {
		return o.Upstream.Address
	}
	return host
}
