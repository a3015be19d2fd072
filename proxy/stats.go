package proxy

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// Stats is what a server has counted since it was made. Numbers only grow, but for OpenSessions.
type Stats struct {
	Connections    uint64 `json:"connections"`     // accepted
	Sessions       uint64 `json:"sessions"`        // of them, those that reached the engine
	OpenSessions   uint64 `json:"open_sessions"`   // now
	FailedSessions uint64 `json:"failed_sessions"` // ended by an error of the network
	IdleEnded      uint64 `json:"idle_ended"`      // ended after IdleTimeout

	RefusedLimit    uint64 `json:"refused_limit"`    // 53300: too many sessions
	RefusedUpstream uint64 `json:"refused_upstream"` // 08001: the engine could not be reached
	RefusedProtocol uint64 `json:"refused_protocol"` // no valid startup packet, or none in time; most are closed without an answer
	RefusedDraining uint64 `json:"refused_draining"` // 57P03: the proxy was shutting down
	RefusedTLS      uint64 `json:"refused_tls"`      // 28000: without TLS where it is required
	RefusedDirect   uint64 `json:"refused_direct"`   // began with TLS where the proxy has none
	TLSFailures     uint64 `json:"tls_failures"`     // TLS handshakes with clients that failed
	DirectTLS       uint64 `json:"direct_tls"`       // began with TLS
	SSLRequests     uint64 `json:"ssl_requests"`
	GSSENCRequests  uint64 `json:"gssenc_requests"` // answered with N
	CancelRequests  uint64 `json:"cancel_requests"` // forwarded, or tried to be
	CancelFailures  uint64 `json:"cancel_failures"` // of them, those that did not reach the engine

	TLSSessions       uint64    `json:"tls_sessions"`                // of the sessions, those whose client spoke TLS with the proxy
	PlusFiltered      uint64    `json:"plus_filtered"`               // those to whose clients SCRAM-SHA-256-PLUS was not offered
	CertificateExpiry time.Time `json:"certificate_expiry,omitzero"` // end of the certificate that clients see; zero without
	CertificateLoads  uint64    `json:"certificate_loads"`           // how often its files were replaced by good ones
	CertificateFaults uint64    `json:"certificate_faults"`          // and by such as could not be used

	BytesFromClients uint64 `json:"bytes_from_clients"`
	BytesFromServer  uint64 `json:"bytes_from_server"`

	QueriesCaptured uint64 `json:"queries_captured"` // given to the sink
	QueriesDropped  uint64 `json:"queries_dropped"`  // of them, those that it did not take

	// Completed statements that were not captured, by reason.
	SkippedEncoding         uint64 `json:"skipped_encoding"`          // client_encoding is not UTF8
	SkippedStrings          uint64 `json:"skipped_strings"`           // standard_conforming_strings is off
	SkippedTooLong          uint64 `json:"skipped_too_long"`          // longer than MaxStatementBytes
	SkippedNotCopied        uint64 `json:"skipped_not_copied"`        // over the capture budget
	SkippedUnknownStatement uint64 `json:"skipped_unknown_statement"` // statement or portal made out of sight
	SkippedUnreadable       uint64 `json:"skipped_unreadable"`        // not well formed
	SkippedArguments        uint64 `json:"skipped_arguments"`         // an EXECUTE whose arguments are not plain literals
	SkippedUnprotected      uint64 `json:"skipped_unprotected"`       // not interesting (Options.Interesting)

	// Sessions whose capture stopped, by reason. Their traffic went on. After an overflow the capture comes back once nothing is
	// under way, so that one session may count more than once; the statements missed are in SkippedNotCopied.
	UncapturedPairing     uint64 `json:"uncaptured_pairing"`     // answers did not match messages
	UncapturedCopy        uint64 `json:"uncaptured_copy"`        // a failed COPY left it open which Sync counts
	UncapturedReplication uint64 `json:"uncaptured_replication"` // replication protocol
	UncapturedProtocol    uint64 `json:"uncaptured_protocol"`    // impossible or unknown messages, another protocol version
	UncapturedOverflow    uint64 `json:"uncaptured_overflow"`    // more messages than the capture budget
	UncapturedPanic       uint64 `json:"uncaptured_panic"`       // a fault in the capture code
	UncapturedPassthrough uint64 `json:"uncaptured_passthrough"` // TLS passed through to the engine
}

// Add adds the counters of another server. The end of the certificate is the earlier one.
func (stats *Stats) Add(other Stats) {
	sum, add := reflect.ValueOf(stats).Elem(), reflect.ValueOf(other)
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(f.Uint() + add.Field(i).Uint())
		}
	}
	if end := other.CertificateExpiry; stats.CertificateExpiry.IsZero() || !end.IsZero() && end.Before(stats.CertificateExpiry) {
		stats.CertificateExpiry = end
	}
}

// counters is what sessions count as they go.
type counters struct {
	connections, sessions, open, failed                                                       atomic.Uint64
	refusedLimit, refusedUpstream, refusedProtocol, refusedDraining                           atomic.Uint64
	directTLS, sslRequests, gssRequests, cancelRequests, cancelFailed                         atomic.Uint64
	refusedTLS, refusedDirect, tlsFailed, tlsSessions, plusFiltered, passedThrough, idleEnded atomic.Uint64
	fromClients, fromServer                                                                   atomic.Uint64 // of sessions that have ended
}

// Stats returns the server's counters. They are not all of exactly the same moment.
func (s *Server) Stats() Stats {
	c := &s.counters
	stats := Stats{
		Connections: c.connections.Load(), Sessions: c.sessions.Load(),
		OpenSessions: c.open.Load(), FailedSessions: c.failed.Load(), IdleEnded: c.idleEnded.Load(),
		RefusedLimit: c.refusedLimit.Load(), RefusedUpstream: c.refusedUpstream.Load(),
		RefusedProtocol: c.refusedProtocol.Load(), RefusedDraining: c.refusedDraining.Load(),
		DirectTLS: c.directTLS.Load(), SSLRequests: c.sslRequests.Load(), GSSENCRequests: c.gssRequests.Load(),
		CancelRequests: c.cancelRequests.Load(), CancelFailures: c.cancelFailed.Load(),
	}
	s.addTLS(&stats)
	stats.BytesFromClients, stats.BytesFromServer = s.conns.bytes(c)
	s.drainer.addTo(&stats)
	return stats
}

// addTLS puts what TLS counted into stats.
func (s *Server) addTLS(stats *Stats) {
	c := &s.counters
	stats.RefusedDirect = c.refusedDirect.Load()
	stats.RefusedTLS, stats.TLSFailures, stats.TLSSessions = c.refusedTLS.Load(), c.tlsFailed.Load(), c.tlsSessions.Load()
	stats.PlusFiltered, stats.UncapturedPassthrough = c.plusFiltered.Load(), c.passedThrough.Load()
	if s.clientTLS != nil {
		stats.CertificateExpiry = s.clientTLS.certificate().Leaf.NotAfter
		stats.CertificateLoads, stats.CertificateFaults = s.clientTLS.pair.Counts()
	}
}

// add puts what the trackers counted into stats.
func (stats *Stats) add(t *tracker.Counts, dropped uint64) {
	stats.QueriesCaptured, stats.QueriesDropped = t.Captured, dropped
	stats.SkippedEncoding = t.Skipped[tracker.Encoding]
	stats.SkippedStrings = t.Skipped[tracker.Strings]
	stats.SkippedTooLong = t.Skipped[tracker.TooLong]
	stats.SkippedNotCopied = t.Skipped[tracker.NotCopied]
	stats.SkippedUnknownStatement = t.Skipped[tracker.UnknownStatement]
	stats.SkippedUnreadable = t.Skipped[tracker.Unreadable]
	stats.SkippedArguments = t.Skipped[tracker.Arguments]
	stats.SkippedUnprotected = t.Skipped[tracker.Unprotected]
	stats.UncapturedPairing = t.Off[tracker.OffPairing]
	stats.UncapturedCopy = t.Off[tracker.OffCopy]
	stats.UncapturedReplication = t.Off[tracker.OffReplication]
	stats.UncapturedProtocol = t.Off[tracker.OffProtocol]
	stats.UncapturedOverflow = t.Off[tracker.OffOverflow]
	stats.UncapturedPanic = t.Off[tracker.OffPanic]
}
