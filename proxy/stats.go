package proxy

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// Stats holds the counters of a server since it was made. Numbers never decrease, except OpenSessions.
type Stats struct {
	Connections    uint64 `json:"connections"`     // accepted
	Sessions       uint64 `json:"sessions"`        // of these, those that reached the engine
	OpenSessions   uint64 `json:"open_sessions"`   // currently open
	FailedSessions uint64 `json:"failed_sessions"` // ended by a network error or a panic
	IdleEnded      uint64 `json:"idle_ended"`      // ended after IdleTimeout

	RefusedLimit    uint64 `json:"refused_limit"`    // 53300: too many sessions
	RefusedUpstream uint64 `json:"refused_upstream"` // 08001: the engine could not be reached
	RefusedProtocol uint64 `json:"refused_protocol"` // invalid or late startup packet; most are closed without an answer
	RefusedDraining uint64 `json:"refused_draining"` // 57P03: the proxy was shutting down
	RefusedTLS      uint64 `json:"refused_tls"`      // 28000: no TLS where it is required
	RefusedDirect   uint64 `json:"refused_direct"`   // began with TLS where it is disabled
	TLSFailures     uint64 `json:"tls_failures"`     // TLS handshakes with clients that failed
	DirectTLS       uint64 `json:"direct_tls"`       // began with TLS
	SSLRequests     uint64 `json:"ssl_requests"`
	GSSENCRequests  uint64 `json:"gssenc_requests"` // answered with N
	CancelRequests  uint64 `json:"cancel_requests"` // forwarded, or attempted
	CancelFailures  uint64 `json:"cancel_failures"` // of these, those that did not reach the engine

	TLSSessions       uint64    `json:"tls_sessions"`                // sessions whose client used TLS that ends at the proxy
	PlusFiltered      uint64    `json:"plus_filtered"`               // sessions without SCRAM-SHA-256-PLUS in the engine's offer
	CertificateExpiry time.Time `json:"certificate_expiry,omitzero"` // expiry of the certificate shown to clients; zero without one
	CertificateLoads  uint64    `json:"certificate_loads"`           // reloads of its files that succeeded
	CertificateFaults uint64    `json:"certificate_faults"`          // reloads that failed

	BytesFromClients uint64 `json:"bytes_from_clients"`
	BytesFromServer  uint64 `json:"bytes_from_server"`

	QueriesCaptured uint64 `json:"queries_captured"` // offered to the sink
	QueriesDropped  uint64 `json:"queries_dropped"`  // of these, those that the sink rejected

	// Completed statements that were not captured, by reason.
	SkippedEncoding         uint64 `json:"skipped_encoding"`          // client_encoding is not UTF8
	SkippedStrings          uint64 `json:"skipped_strings"`           // standard_conforming_strings is off
	SkippedTooLong          uint64 `json:"skipped_too_long"`          // longer than MaxStatementBytes
	SkippedNotCopied        uint64 `json:"skipped_not_copied"`        // over the capture budget
	SkippedUnknownStatement uint64 `json:"skipped_unknown_statement"` // the statement or portal was created unseen
	SkippedUnreadable       uint64 `json:"skipped_unreadable"`        // malformed
	SkippedArguments        uint64 `json:"skipped_arguments"`         // an EXECUTE whose arguments are not plain literals
	SkippedUnprotected      uint64 `json:"skipped_unprotected"`       // not interesting (Options.Interesting)

	// Sessions whose capture stopped, by reason; their traffic went on. After an overflow, capture resumes once the session
	// is idle, so one session can count more than once; the missed statements are in SkippedNotCopied.
	UncapturedPairing     uint64 `json:"uncaptured_pairing"`     // answers did not match messages
	UncapturedCopy        uint64 `json:"uncaptured_copy"`        // a failed COPY left it open which Sync messages count
	UncapturedReplication uint64 `json:"uncaptured_replication"` // replication protocol
	UncapturedProtocol    uint64 `json:"uncaptured_protocol"`    // impossible or unknown messages, or another protocol version
	UncapturedOverflow    uint64 `json:"uncaptured_overflow"`    // more messages than the capture budget holds
	UncapturedPanic       uint64 `json:"uncaptured_panic"`       // a panic in the capture code
	UncapturedPassthrough uint64 `json:"uncaptured_passthrough"` // TLS passed through to the engine
}

// Add adds the counters of another server. CertificateExpiry becomes the earlier one.
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

// counters holds the counters that sessions update. The fields of Stats have the same names; the bytes are those of sessions
// that have ended.
type counters struct {
	Connections, Sessions, OpenSessions, FailedSessions, IdleEnded                             atomic.Uint64
	RefusedLimit, RefusedUpstream, RefusedProtocol, RefusedDraining, RefusedTLS, RefusedDirect atomic.Uint64
	CancelRequests, CancelFailures, TLSSessions, UncapturedPassthrough                         atomic.Uint64
	BytesFromClients, BytesFromServer                                                          atomic.Uint64
}

// Stats returns the server's counters. They are not one atomic snapshot.
func (s *Server) Stats() Stats {
	var stats Stats
	stats.load(&s.counters)
	stats.load(&s.legs.Counts)
	stats.BytesFromClients, stats.BytesFromServer = s.conns.bytes(&s.counters)
	stats.CertificateExpiry, stats.CertificateLoads, stats.CertificateFaults = s.legs.Certificate()
	counts, dropped := s.drainer.Counts()
	stats.add(&counts, dropped)
	return stats
}

// load copies counters, a pointer to a struct of atomic.Uint64, into the fields of the same names.
func (stats *Stats) load(counters any) {
	to, from := reflect.ValueOf(stats).Elem(), reflect.ValueOf(counters).Elem()
	for i := range from.NumField() {
		count := from.Field(i).Addr().Interface().(*atomic.Uint64)
		to.FieldByName(from.Type().Field(i).Name).SetUint(count.Load())
	}
}

// add adds the trackers' counters to stats.
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
