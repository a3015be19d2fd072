package tracker

// Reason is why a statement that was run was not captured.
type Reason uint8

const (
	captured Reason = iota
	// Encoding: client_encoding is unknown or neither UTF8 nor, for text that is all ASCII, SQL_ASCII.
	Encoding
	// Strings: standard_conforming_strings is not on.
	Strings
	// TooLong: the text is longer than MaxStatementBytes, or the query has too many statements.
	TooLong
	// NotCopied: the message was not copied for lack of room.
	NotCopied
	// UnknownStatement: the statement or portal was created before capture began, the cursor was opened by a function, or
	// the tracker no longer holds it.
	UnknownStatement
	// Unreadable: the message is malformed, although the server accepted it.
	Unreadable
	// Arguments: an EXECUTE whose arguments are not plain literals, or a parameter of an unsupported type.
	Arguments
	// Unprotected: Config.MaybeProtected rejected the statement.
	Unprotected
	// FunctionCall: a FunctionCall message, unless it is one for large objects. The function has no name in it.
	FunctionCall
	reasons
)

// String returns the reason as the coverage names it.
func (r Reason) String() string {
	switch r {
	case Encoding:
		return "client_encoding"
	case Strings:
		return "standard_conforming_strings"
	case TooLong:
		return "too_long"
	case NotCopied:
		return "over_budget"
	case UnknownStatement:
		return "unknown_statement"
	case Unreadable:
		return "unreadable"
	case Arguments:
		return "arguments"
	case Unprotected:
		return "unprotected"
	case FunctionCall:
		return "function_call"
	}
	return ""
}

// Off is why the capture of a session stopped, or was interrupted.
type Off uint8

// The reasons. After OffPairing and OffOverflow, which the tracker itself counts, capture resumes once the session is
// idle.
const (
	On Off = iota
	// OffPairing: an answer does not match its message.
	OffPairing
	// OffReplication: the session is one of physical replication, in which the server accepts no queries.
	OffReplication
	// OffProtocol: a message has an impossible length or type.
	OffProtocol
	// OffOverflow: the messages exceeded the budget.
	OffOverflow
	// OffPanic: the tracker panicked.
	OffPanic
	offs
)

// Counts holds the counters of all trackers that share it. It is not safe for concurrent use.
type Counts struct {
	Captured uint64          // queries passed to Emit
	Skipped  [reasons]uint64 // completed statements that were not captured, by Reason
	Off      [offs]uint64    // sessions whose capture stopped, by Off; for OffPairing and OffOverflow: interruptions
}

// String returns the reason as metrics name it.
func (o Off) String() string {
	switch o {
	case OffPairing:
		return "pairing"
	case OffReplication:
		return "replication"
	case OffProtocol:
		return "protocol"
	case OffOverflow:
		return "over_budget"
	case OffPanic:
		return "panic"
	}
	return ""
}
