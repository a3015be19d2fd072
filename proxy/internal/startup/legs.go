// Package startup brings both sides of a session to the point from which bytes are relayed unchanged: the client's leg
// from accept to its StartupMessage, and the engine's leg to the first byte of the session.
//
// It owns the messages before authentication, the PROXY protocol, TLS on both legs, channel binding between them, and
// the errors that the proxy itself sends. It relays nothing and counts no sessions. Connections go in; a Client and an
// Engine come out.
package startup

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Address is the engine's address, as net.Dial takes it.
type Address struct {
	Network string // "tcp" or "unix"
	Address string // "db.internal:5432", "/run/postgresql/.s.PGSQL.5432"
}

// Options configures both legs. Package proxy documents the fields of the same name and fills in the defaults.
type Options struct {
	Upstream                               Address
	UpstreamTLS                            UpstreamTLS
	ClientTLS                              ClientTLS
	ProxyProtocol                          []netip.Prefix
	StartupTimeout, DialTimeout, KeepAlive time.Duration
	Logger                                 *zap.Logger
	// Pass relays a session whose TLS is passed through, until it is over. First holds the client's bytes: an
	// SSLRequest, whose answer decides, or the start of direct TLS. It returns false if the engine has no TLS; the
	// client was then answered N and continues in plain text. Required with TLSPassthrough.
	Pass func(client net.Conn, first []byte, direct bool) (over bool)
}

// Legs sets up the two legs of sessions. It is safe for concurrent use.
type Legs struct {
	Counts      Counts
	opts        Options
	log         *zap.Logger
	dialer      net.Dialer
	clientTLS   *clientTLS   // nil: TLS does not end here
	upstreamTLS *upstreamTLS // nil: no TLS to the engine
}

// Counts holds the counters of the startup; the fields of proxy.Stats have the same names.
type Counts struct {
	DirectTLS, SSLRequests, GSSENCRequests, TLSFailures, PlusFiltered atomic.Uint64
}

// New returns the legs of a proxy, or the first fault of the TLS files. The options are valid.
func New(o Options) (*Legs, error) {
	l := &Legs{opts: o, log: o.Logger.Named("proxy"), dialer: net.Dialer{Timeout: o.DialTimeout, KeepAlive: o.KeepAlive}}
	var err error
	if l.clientTLS, err = newClientTLS(&o); err != nil {
		return nil, err
	}
	l.upstreamTLS, err = newUpstreamTLS(&o)
	return l, err
}

// Validate reports all faults of the options.
func (o *Options) Validate() []error {
	var errs []error
	if o.Upstream.Network != "tcp" && o.Upstream.Network != "unix" {
		errs = append(errs, fmt.Errorf("upstream network is %q, must be tcp or unix", o.Upstream.Network))
	}
	if o.Upstream.Address == "" {
		errs = append(errs, errors.New("upstream address is empty"))
	}
	errs = append(errs, o.validateTLS()...)
	if slices.ContainsFunc(o.ProxyProtocol, func(network netip.Prefix) bool { return !network.IsValid() }) {
		errs = append(errs, errors.New("a PROXY protocol network is invalid"))
	}
	return errs
}

// Certificate returns when the certificate shown to clients expires, and how often its files were reloaded, and
// reloaded in vain. It is zero if TLS does not end at the proxy.
func (l *Legs) Certificate() (expiry time.Time, loads, faults uint64) {
	if l.clientTLS == nil {
		return expiry, 0, 0
	}
	loads, faults = l.clientTLS.pair.Counts()
	return l.clientTLS.certificate().Leaf.NotAfter, loads, faults
}
