package tracker

// Reason says why a completed statement was not captured.
type Reason uint8

// The reasons.
const (
	captured Reason = iota
	// Encoding: client_encoding is neither UTF8 nor SQL_ASCII with ASCII text only, or not known.
	Encoding
	// Strings: standard_conforming_strings is not on.
	Strings
	// TooLong: its text is longer than MaxStatementBytes, or its query has too many statements.
	TooLong
	// NotCopied: the message was not copied, for want of room.
	NotCopied
	// UnknownStatement: its statement or portal was made before capture began, its portal in SQL (DECLARE), or
	// it was forgotten.
	UnknownStatement
	// Unreadable: a message that is not well formed, though the server took it.
	Unreadable
	// Arguments: an EXECUTE whose arguments are not plain literals, or a parameter of a type not known here.
	Arguments
	// Unprotected: Config.Interesting says that it cannot matter.
	Unprotected
	reasons
)

// Off says why a session is not captured any more.
type Off uint8

// The reasons to stop; the first three are the tracker's own.
const (
	On Off = iota
	// OffPairing: an answer does not belong to the message it should.
	OffPairing
	// OffCopy: a COPY failed while a Sync was under way; which Sync counts cannot be known.
	OffCopy
	// OffReplication: the session speaks the replication protocol.
	OffReplication
	// OffProtocol: a message whose length or type is impossible.
	OffProtocol
	// OffOverflow: more messages than there was room for. The session is followed again once nothing is under way: it is
	// counted, and the tracker goes on.
	OffOverflow
	// OffPanic: a fault of the tracker's.
	OffPanic
	offs
)

// Counts is what the trackers that share it have counted. It is not safe for concurrent use.
type Counts struct {
	Captured uint64          // queries given to Emit
	Skipped  [reasons]uint64 // completed statements that were not, by Reason
	Off      [offs]uint64    // sessions that stopped, by Off; for OffOverflow: gaps
}
