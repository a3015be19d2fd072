package capture

// Outcome is how a statement ended.
type Outcome uint8

// The outcomes.
const (
	Complete  Outcome = iota // the server completed it
	Failed                   // the server ended it with an error, which is an answer, too
	Suspended                // the client has read only a part of its rows so far
	Cancelled                // by a cancel request or a timeout
	Lost                     // the connection ended before the server had answered completely
	outcomes
)

// String returns the outcome as people read it.
func (o Outcome) String() string {
	switch o {
	case Complete:
		return "completed"
	case Failed:
		return "failed"
	case Suspended:
		return "suspended"
	case Cancelled:
		return "cancelled"
	case Lost:
		return "connection lost"
	}
	return "unknown"
}
