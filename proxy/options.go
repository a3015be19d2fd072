package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// Address is where the engine listens, as net.Dial takes it.
type Address struct {
	Network string // "tcp" or "unix"
	Address string // "db.internal:5432", "/run/postgresql/.s.PGSQL.5432"
}

// Sink takes captured queries. Offer must not block; false means that the query was dropped.
// It is called from one goroutine at a time.
type Sink interface {
	Offer(q capture.Query) bool
}

// Options is what a Server is made from. Where a field says default, zero stands for it.
type Options struct {
	// Upstream is the engine. It has to be given.
	Upstream Address
	// UpstreamTLS is TLS between the proxy and the engine.
	UpstreamTLS UpstreamTLS
	// ClientTLS is TLS between the clients and the proxy.
	ClientTLS ClientTLS
	// ProxyProtocol lists the networks whose connections begin with a PROXY protocol header (v1 or v2), which is
	// required of them and of nobody else taken. The address in it goes to the log. Default: none.
	ProxyProtocol []netip.Prefix
	// SessionIDBase is added to the numbers of sessions, so that several servers can share a sink. Default 0.
	SessionIDBase uint64
	// Capture turns the tap on. Without it the proxy is a plain relay.
	Capture bool
	// Sink takes what is captured; it has to be given with Capture.
	Sink Sink
	// Interesting reports whether a statement of this text may have to be captured. What it says no to is not
	// offered to the Sink but counted (Stats.SkippedUnprotected); what such a statement does to the session is
	// followed all the same. It is called once for a Parse message and about once for a statement of a simple query, from
	// one goroutine at a time, must be quick, and may not keep the text. Nil: every statement is captured.
	Interesting func(sql string) bool
	// MaxSessions is how many sessions may be open; more are refused with SQLSTATE 53300. Default 1000.
	MaxSessions int
	// StartupTimeout is how long a client may take to send its StartupMessage, TLS included. Default 10 s.
	StartupTimeout time.Duration
	// DrainTimeout is how long open sessions may go on after Serve's context ended. Default 30 s; negative
	// ends them at once. Until they have ended, cancel requests are forwarded and new sessions refused with 57P03.
	DrainTimeout time.Duration
	// DialTimeout is how long a connection to the engine may take. Default 10 s.
	DialTimeout time.Duration
	// KeepAlive is the time between TCP keep-alive probes, to both sides. Default 30 s; negative sends none.
	KeepAlive time.Duration
	// IdleTimeout is how long a session outside a transaction may be unused before it ends with SQLSTATE 57P05.
	// Zero, the default, is for ever, as clients' pools expect it. Passed-through sessions are never ended.
	IdleTimeout time.Duration
	// CaptureBudgetBytes bounds, for each session, the copies of messages that wait to be looked at, and once
	// more what is remembered of its prepared statements and portals. A client that sends more messages at once than fit
	// loses the capture until it has had all its answers. Default 256 KiB.
	CaptureBudgetBytes int
	// MaxStatementBytes is the longest statement that is captured. Default 16 KiB.
	MaxStatementBytes int
	// DrainInterval is how often the copies are looked at while there are some. Default 50 ms.
	DrainInterval time.Duration
	// Loops is how many event loops relay the sessions whose two sides are plain sockets (TCP or unix, without
	// TLS), on Linux. Default: a quarter of the processors, 1 at least and 4 at most. Negative: none; goroutines
	// relay every session, as they do elsewhere.
	Loops int
	// Logger gets what happens to sessions, never SQL, parameters or rows. Default: none.
	Logger *zap.Logger
}

// withDefaults returns o with the defaults filled in.
func (o Options) withDefaults() Options {
	orDefault(&o.MaxSessions, 1000)
	orDefault(&o.StartupTimeout, 10*time.Second)
	orDefault(&o.DrainTimeout, 30*time.Second)
	orDefault(&o.DialTimeout, 10*time.Second)
	orDefault(&o.KeepAlive, 30*time.Second)
	orDefault(&o.CaptureBudgetBytes, 256<<10)
	orDefault(&o.MaxStatementBytes, 16<<10)
	orDefault(&o.DrainInterval, 50*time.Millisecond)
	orDefault(&o.Loops, DefaultLoops())
	if o.ClientTLS.Mode == "" {
		o.ClientTLS.Mode = TLSDisable
	}
	if o.UpstreamTLS.Mode == "" {
		o.UpstreamTLS.Mode = UpstreamDisable
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

func orDefault[T int | time.Duration](v *T, value T) {
	if *v == 0 {
		*v = value
	}
}

// minBudget is room for a few messages: below it nothing would ever be captured.
const minBudget = 4 << 10

// validate reports all faults of o, which has its defaults.
func (o Options) validate() error {
	var errs []error
	if o.Upstream.Network != "tcp" && o.Upstream.Network != "unix" {
		errs = append(errs, fmt.Errorf("upstream network is %q, must be tcp or unix", o.Upstream.Network))
	}
	if o.Upstream.Address == "" {
		errs = append(errs, errors.New("upstream address is empty"))
	}
	errs = append(errs, o.validateTLS()...)
	if err := validPrefixes(o.ProxyProtocol); err != nil {
		errs = append(errs, err)
	}
	if o.Capture && o.Sink == nil {
		errs = append(errs, errors.New("capture needs a sink"))
	}
	if o.CaptureBudgetBytes < minBudget {
		errs = append(errs, fmt.Errorf("capture budget is %d bytes, must be %d or more", o.CaptureBudgetBytes, minBudget))
	}
	for name, v := range map[string]int64{
		"max sessions": int64(o.MaxSessions), "startup timeout": int64(o.StartupTimeout),
		"idle timeout": int64(o.IdleTimeout), "dial timeout": int64(o.DialTimeout), "max statement bytes": int64(o.MaxStatementBytes),
		"drain interval": int64(o.DrainInterval),
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	return errors.Join(errs...)
}
