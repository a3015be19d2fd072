package desk

import (
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/step"
)

// Outcome is the result of a turn. Only a verdict in its evidence, or Broken, decides an audit.
type Outcome struct {
	Evidence *evidence.Evidence // nil after a Restart
	step.Progress
	Findings []step.Finding
	Took     time.Duration
	Fresh    bool                     // at the end the copies and the engine were those of the evidence
	Restart  *environment.Environment // in which they are others, so that the evidence must not be used
	Stop     error                    // a measurement ends; what it had before this turn is valid
	Broken   error                    // a panic: the audit is set aside
	Trouble  error                    // the databases are unavailable or do not fit the query; another turn may succeed
}

// OutcomeOf returns the result of a turn from that of its step.
func OutcomeOf(a *step.Audit, found []step.Finding, err error) Outcome {
	var replaced *step.ReplacedError
	switch other := errors.As(err, &replaced); {
	case other && !a.Evidence.Measuring():
		return Outcome{Restart: replaced.Environment}
	case other:
		return Outcome{Evidence: a.Evidence, Stop: err}
	}
	return Outcome{Evidence: a.Evidence, Progress: a.Progress(err == nil), Findings: found, Fresh: err == nil, Trouble: err}
}

// ErrInternal is what is shown of a turn that panicked.
var ErrInternal = errors.New("internal error: see the log")
