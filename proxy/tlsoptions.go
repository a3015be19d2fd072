package proxy

import (
	"errors"
	"fmt"
	"net"
)

// TLSMode says how clients may speak TLS.
type TLSMode string

// The modes of the clients' leg.
const (
	TLSDisable     TLSMode = "disable"     // SSLRequest is answered N
	TLSAllow       TLSMode = "allow"       // TLS ends here; clients may do without
	TLSRequire     TLSMode = "require"     // TLS ends here; clients without are refused
	TLSPassthrough TLSMode = "passthrough" // TLS ends at the engine; such sessions are relayed unseen, never captured
)

// ClientTLS is the clients' leg. The files are PEM and are read again when they are replaced.
type ClientTLS struct {
	// Mode; default TLSDisable.
	Mode TLSMode
	// CertFile (leaf first, then intermediates) and KeyFile are needed for TLSAllow and TLSRequire.
	CertFile, KeyFile string
	// ClientCAFile, with TLSRequire only: clients must present a certificate that one of these issued. Who they
	// are in the database remains for the engine to find out.
	ClientCAFile string
	// AssumeSameCertificate skips the comparison of the proxy's certificate with the engine's. Where both legs
	// are TLS and the certificates differ, clients that use SCRAM with channel binding, libpq's default, fail.
	AssumeSameCertificate bool
}

// UpstreamTLSMode says whether the connection to the engine uses TLS, in libpq's words.
type UpstreamTLSMode string

// The modes of the engine's leg.
const (
	UpstreamDisable    UpstreamTLSMode = "disable"
	UpstreamPrefer     UpstreamTLSMode = "prefer"      // TLS if the engine has it; its certificate is not verified
	UpstreamRequire    UpstreamTLSMode = "require"     // TLS; its certificate is not verified
	UpstreamVerifyCA   UpstreamTLSMode = "verify-ca"   // its certificate is of CAFile
	UpstreamVerifyFull UpstreamTLSMode = "verify-full" // and for the host
)

// UpstreamTLS is the engine's leg. The files are PEM and are read again when they are replaced.
type UpstreamTLS struct {
	// Mode; default UpstreamDisable.
	Mode UpstreamTLSMode
	// CAFile holds who may have issued the engine's certificate: needed for verify-ca; for verify-full "" means
	// the system's; other modes take none.
	CAFile string
	// CertFile and KeyFile are what the proxy shows to the engine, if it asks. All clients share it.
	CertFile, KeyFile string
	// ServerName is the name in the engine's certificate, also sent as SNI. Default: the host of Upstream.
	ServerName string
}

func (m TLSMode) terminates() bool { return m == TLSAllow || m == TLSRequire }

// validateTLS reports the faults of both legs and of their combination.
func (o *Options) validateTLS() []error {
	errs := append(o.ClientTLS.validate(), o.UpstreamTLS.validate()...)
	upstream := o.UpstreamTLS.Mode != UpstreamDisable
	if upstream && o.Upstream.Network == "unix" {
		errs = append(errs, errors.New("upstream TLS is for TCP: an engine on a Unix socket needs none"))
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
		errs = append(errs, fmt.Errorf("clients' certificates can be asked for with client TLS require, not with %s", c.Mode))
	}
	return errs
}

func (u *UpstreamTLS) validate() []error {
	var errs []error
	switch u.Mode {
	case UpstreamDisable, UpstreamPrefer, UpstreamRequire:
		if u.CAFile != "" {
			errs = append(errs, fmt.Errorf("upstream TLS %s does not verify: use verify-ca or verify-full, or give no CA", u.Mode))
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

// serverName returns the engine's name for TLS.
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
