package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/startup"
	"github.com/dpwatch/dpwatch/proxy/internal/tap"
)

// The types of the startup and of the capture that are part of this package's API.
type (
	Address          = startup.Address
	ClientTLS        = startup.ClientTLS
	TLSMode          = startup.TLSMode
	UpstreamTLS      = startup.UpstreamTLS
	UpstreamTLSMode  = startup.UpstreamTLSMode
	CertificateError = startup.CertificateError
	UpstreamError    = startup.UpstreamError
	Sink             = tap.Sink
	Samples          = tap.Samples
)

// The modes of the client leg and of the engine leg.
const (
	TLSDisable         = startup.TLSDisable
	TLSAllow           = startup.TLSAllow
	TLSRequire         = startup.TLSRequire
	TLSPassthrough     = startup.TLSPassthrough
	UpstreamDisable    = startup.UpstreamDisable
	UpstreamPrefer     = startup.UpstreamPrefer
	UpstreamRequire    = startup.UpstreamRequire
	UpstreamVerifyCA   = startup.UpstreamVerifyCA
	UpstreamVerifyFull = startup.UpstreamVerifyFull
)

// Options configures a Server. A zero field means its default, where one is given.
type Options struct {
	// Upstream is the engine. Required.
	Upstream Address
	// UpstreamTLS configures TLS between the proxy and the engine.
	UpstreamTLS UpstreamTLS
	// ClientTLS configures TLS between the clients and the proxy.
	ClientTLS ClientTLS
	// ProxyProtocol lists the networks whose connections must begin with a PROXY protocol header (v1 or v2). From other
	// networks the header is not accepted. The address in it goes to the log. Default: none.
	ProxyProtocol []netip.Prefix
	// SessionIDBase is added to the numbers of sessions, so that several servers can share a sink. Default 0.
	SessionIDBase uint64
	// Capture enables the tap. Without it the proxy is a plain relay.
	Capture bool
	// Sink receives the captured queries. Required with Capture.
	Sink Sink
	// MaybeProtected reports whether a statement with this text may read protected data. Statements for which it
	// returns false are counted (Stats.SkippedUnprotected) and not offered to the Sink; their effect on the session's
	// state is still tracked. It is called once for a Parse message and about once for each statement of a simple
	// query, from one goroutine at a time. It must be fast and must not retain the text. Nil means that every statement
	// is captured.
	MaybeProtected func(sql string) bool
	// Definitions follows what clients change in the definitions of the engine's database, which can change what
	// MaybeProtected returns. Servers of one engine share it. Nil means that such changes are not followed.
	Definitions *capture.Definitions
	// ClaimPrefix, for example "dp", makes the tap read the claims that the engine states in its answers: in a notice
	// with the message "dp.epsilon=1.5 dp.delta=1e-6", or in ParameterStatus messages for dp.epsilon, dp.delta, dp.rho
	// and dp.mu, before the CommandComplete of a statement. Only the numbers are kept. "" means that none are read.
	ClaimPrefix string
	// Samples receives a few of the statements and sessions that are not captured, except for those that MaybeProtected
	// rejects. Nil means none.
	Samples *Samples
	// MaxSessions limits the open sessions; more are refused with SQLSTATE 53300. Default 1000.
	MaxSessions int
	// StartupTimeout limits how long a client takes to send its StartupMessage, TLS included. Default 10 s.
	StartupTimeout time.Duration
	// DrainTimeout limits how long open sessions can continue after Serve's context ends. Default 30 s; negative ends
	// them at once. Until they have ended, cancel requests are forwarded and new sessions refused with 57P03.
	DrainTimeout time.Duration
	// DialTimeout limits how long connecting to the engine takes. Default 10 s.
	DialTimeout time.Duration
	// KeepAlive is the interval of TCP keep-alive probes, on both sides. Default 30 s; negative disables them.
	KeepAlive time.Duration
	// IdleTimeout ends a session that was idle outside a transaction for that long, with SQLSTATE 57P05. Default 0:
	// sessions are not ended, as connection pools expect. Passed-through sessions are never ended.
	IdleTimeout time.Duration
	// CaptureBudgetBytes bounds, for each session, the copied messages that wait for the tracker and, separately, the
	// state kept of its prepared statements and portals. If a client sends more at once than fits, capture of its
	// session pauses until the server has answered everything. Default 256 KiB.
	CaptureBudgetBytes int
	// MaxStatementBytes is the length of the longest statement that is captured. Default 16 KiB.
	MaxStatementBytes int
	// DrainInterval is how often the copied messages are processed while there are some. Default 50 ms.
	DrainInterval time.Duration
	// Loops is the number of event loops, on Linux, that relay the sessions with plain sockets on both sides (TCP or
	// Unix, without TLS). Default: a quarter of the processors, at least 1 and at most 4. Negative: none; goroutines
	// relay every session, as on other systems.
	Loops int
	// Logger logs session events, never SQL, parameters or rows. Default: none.
	Logger *zap.Logger
}

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

// minBudget is the least CaptureBudgetBytes: less would not hold a few messages, and nothing would be captured.
const minBudget = 4 << 10

// legs returns the options of package startup.
func (o Options) legs() startup.Options {
	return startup.Options{
		Upstream: o.Upstream, UpstreamTLS: o.UpstreamTLS, ClientTLS: o.ClientTLS, ProxyProtocol: o.ProxyProtocol,
		StartupTimeout: o.StartupTimeout, DialTimeout: o.DialTimeout, KeepAlive: o.KeepAlive, Logger: o.Logger,
	}
}

// tap returns the options of package tap.
func (o Options) tap() tap.Options {
	return tap.Options{
		Sink: o.Sink, Samples: o.Samples, MaybeProtected: o.MaybeProtected, Definitions: o.Definitions, BudgetBytes: o.CaptureBudgetBytes, MaxStatementBytes: o.MaxStatementBytes,
		ClaimPrefix: o.ClaimPrefix, Interval: o.DrainInterval, Logger: o.Logger,
	}
}

// DefaultLoops returns the default number of event loops: a quarter of the processors, at least 1 and at most 4. One
// loop can relay as much traffic as an engine on the other processors produces.
func DefaultLoops() int { return max(1, min(4, runtime.NumCPU()/4)) }

// validate returns all errors of o, in which the defaults are filled in.
func (o Options) validate() error {
	legs := o.legs()
	errs := legs.Validate()
	if o.Capture && o.Sink == nil {
		errs = append(errs, errors.New("capture is enabled without a sink"))
	}
	if o.CaptureBudgetBytes < minBudget {
		errs = append(errs, fmt.Errorf("capture budget is %d bytes, and must be at least %d", o.CaptureBudgetBytes, minBudget))
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
