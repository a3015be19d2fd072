package proxy

import (
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/tap"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// Stats holds the counters of a server since New. They never decrease, except OpenSessions.
type Stats struct {
	Connections    uint64 `json:"connections"`     // accepted
	Sessions       uint64 `json:"sessions"`        // of these, those whose session with the engine was established
	OpenSessions   uint64 `json:"open_sessions"`   // currently open
	FailedSessions uint64 `json:"failed_sessions"` // ended by a network error or a panic
	IdleEnded      uint64 `json:"idle_ended"`      // ended because they were idle for IdleTimeout

	RefusedLimit    uint64 `json:"refused_limit"`    // 53300: too many sessions or connections
	RefusedUpstream uint64 `json:"refused_upstream"` // the session with the engine could not be established
	RefusedProtocol uint64 `json:"refused_protocol"` // invalid or late startup packet; most are closed without an answer
	RefusedDraining uint64 `json:"refused_draining"` // 57P03: the proxy was shutting down
	RefusedTLS      uint64 `json:"refused_tls"`      // 28000: the client did not use TLS, which is required
	RefusedDirect   uint64 `json:"refused_direct"`   // the client began with a TLS handshake, and TLS is disabled
	TLSFailures     uint64 `json:"tls_failures"`     // TLS handshakes with clients that failed
	DirectTLS       uint64 `json:"direct_tls"`       // connections that began with a TLS handshake, without an SSLRequest
	SSLRequests     uint64 `json:"ssl_requests"`
	GSSENCRequests  uint64 `json:"gssenc_requests"` // answered with N
	CancelRequests  uint64 `json:"cancel_requests"` // requests that were, or should have been, forwarded
	CancelFailures  uint64 `json:"cancel_failures"` // of these, those that could not be forwarded

	TLSSessions       uint64    `json:"tls_sessions"`                // sessions with TLS between client and proxy
	PlusFiltered      uint64    `json:"plus_filtered"`               // the proxy removed SCRAM-SHA-256-PLUS (package startup)
	CertificateExpiry time.Time `json:"certificate_expiry,omitzero"` // expiry of the proxy's certificate for clients; zero without one
	CertificateLoads  uint64    `json:"certificate_loads"`           // reloads of the certificate that succeeded
	CertificateFaults uint64    `json:"certificate_faults"`          // reloads that failed

	BytesFromClients uint64 `json:"bytes_from_clients"`
	BytesFromServer  uint64 `json:"bytes_from_server"`

	QueriesCaptured uint64 `json:"queries_captured"` // offered to the sink
	QueriesDropped  uint64 `json:"queries_dropped"`  // of these, those that the sink rejected
	ClaimsUnread    uint64 `json:"claims_unread"`    // messages of the engine with a claim (Options.ClaimPrefix) that could not be read

	// Statements that were run and not captured, by reason.
	SkippedEncoding         uint64 `json:"skipped_encoding"`          // client_encoding is unknown, or not UTF8 or SQL_ASCII with ASCII text
	SkippedStrings          uint64 `json:"skipped_strings"`           // standard_conforming_strings is not on
	SkippedTooLong          uint64 `json:"skipped_too_long"`          // longer than MaxStatementBytes, or too many in one query
	SkippedNotCopied        uint64 `json:"skipped_not_copied"`        // not copied, because the capture budget was used up
	SkippedUnknownStatement uint64 `json:"skipped_unknown_statement"` // created before capture or by a function, or no longer tracked
	SkippedUnreadable       uint64 `json:"skipped_unreadable"`        // the tracker could not parse the message
	SkippedArguments        uint64 `json:"skipped_arguments"`         // EXECUTE not with plain literals; unsupported parameter type
	SkippedUnprotected      uint64 `json:"skipped_unprotected"`       // Options.MaybeProtected returned false
	SkippedFunctionCall     uint64 `json:"skipped_function_call"`     // a FunctionCall message, which names no function

	// Sessions whose capture stopped, by reason; their traffic continued. UncapturedPairing and UncapturedOverflow
	// count gaps: capture resumes when the session is idle, and one session can have several. The statements in a gap
	// count as SkippedNotCopied.
	UncapturedPairing     uint64 `json:"uncaptured_pairing"`     // an answer of the engine did not match the client's message
	UncapturedReplication uint64 `json:"uncaptured_replication"` // physical replication, in which the server accepts no queries
	UncapturedProtocol    uint64 `json:"uncaptured_protocol"`    // impossible type or length of a message; unknown protocol version
	UncapturedOverflow    uint64 `json:"uncaptured_overflow"`    // gaps: the messages exceeded the capture budget
	UncapturedPanic       uint64 `json:"uncaptured_panic"`       // a panic in the capture code
	UncapturedPassthrough uint64 `json:"uncaptured_passthrough"` // TLS was passed through to the engine

	// Unfollowed counts the open sessions whose statements are not captured at present, by the names of the reasons in
	// metrics: during a gap, or because capture stopped. UnfollowedSessions names the first ones.
	Unfollowed         map[string]uint64   `json:"unfollowed"`
	UnfollowedSessions []UnfollowedSession `json:"unfollowed_sessions,omitempty"`
}

// UnfollowedSession is an open session whose statements are not captured at present.
type UnfollowedSession struct {
	Session     uint64    `json:"session"` // as in the log
	User        string    `json:"user"`
	Database    string    `json:"database"`
	Application string    `json:"application,omitempty"`
	Reason      string    `json:"reason"`
	Since       time.Time `json:"since"`
}

// maxUnfollowed limits Stats.UnfollowedSessions.
const maxUnfollowed = 10

// Add adds the counters of another server to stats. CertificateExpiry becomes the earlier of the two.
func (stats *Stats) Add(other Stats) {
	sum, add := reflect.ValueOf(stats).Elem(), reflect.ValueOf(other)
	for i := range sum.NumField() {
		if f := sum.Field(i); f.Kind() == reflect.Uint64 {
			f.SetUint(f.Uint() + add.Field(i).Uint())
		}
	}
	unfollowed := maps.Clone(stats.Unfollowed)
	for reason, n := range other.Unfollowed {
		if unfollowed == nil {
			unfollowed = map[string]uint64{}
		}
		unfollowed[reason] += n
	}
	stats.Unfollowed = unfollowed
	sessions := slices.Concat(stats.UnfollowedSessions, other.UnfollowedSessions)
	slices.SortStableFunc(sessions, func(x, y UnfollowedSession) int { return x.Since.Compare(y.Since) })
	stats.UnfollowedSessions = sessions[:min(len(sessions), maxUnfollowed)]
	if end := other.CertificateExpiry; stats.CertificateExpiry.IsZero() || !end.IsZero() && end.Before(stats.CertificateExpiry) {
		stats.CertificateExpiry = end
	}
}

// counters holds the counters that sessions update. The fields of Stats have the same names; the bytes are those of
// sessions that have ended.
type counters struct {
	Connections, Sessions, OpenSessions, FailedSessions, IdleEnded                             atomic.Uint64
	RefusedLimit, RefusedUpstream, RefusedProtocol, RefusedDraining, RefusedTLS, RefusedDirect atomic.Uint64
	CancelRequests, CancelFailures, TLSSessions, UncapturedPassthrough                         atomic.Uint64
	BytesFromClients, BytesFromServer                                                          atomic.Uint64
}

// Stats returns the server's counters. They are read one after the other, not at one moment.
func (s *Server) Stats() Stats {
	var stats Stats
	stats.load(&s.counters)
	stats.load(&s.legs.Counts)
	stats.BytesFromClients, stats.BytesFromServer = s.conns.bytes(&s.counters)
	stats.CertificateExpiry, stats.CertificateLoads, stats.CertificateFaults = s.legs.Certificate()
	counts, dropped := s.drainer.Counts()
	stats.add(&counts, dropped)
	stats.ClaimsUnread = s.drainer.UnreadClaims()
	stats.unfollowed(s.drainer.Unfollowed())
	return stats
}

// unfollowed sets the sessions that are not followed.
func (stats *Stats) unfollowed(sessions []tap.Unfollowed) {
	stats.Unfollowed = map[string]uint64{}
	for _, reason := range [...]tracker.Off{tracker.OffOverflow, tracker.OffPairing, tracker.OffProtocol, tracker.OffReplication, tracker.OffPanic} {
		stats.Unfollowed[reason.String()] = 0
	}
	for i, u := range sessions {
		stats.Unfollowed[u.Reason.String()]++
		if i < maxUnfollowed {
			stats.UnfollowedSessions = append(stats.UnfollowedSessions, UnfollowedSession{u.Session, u.User, u.Database, u.Application, u.Reason.String(), u.Since})
		}
	}
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
	stats.SkippedFunctionCall = t.Skipped[tracker.FunctionCall]
	stats.UncapturedPairing = t.Off[tracker.OffPairing]
	stats.UncapturedReplication = t.Off[tracker.OffReplication]
	stats.UncapturedProtocol = t.Off[tracker.OffProtocol]
	stats.UncapturedOverflow = t.Off[tracker.OffOverflow]
	stats.UncapturedPanic = t.Off[tracker.OffPanic]
}
