package desk

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// Effect is what a decision makes others do. None waits for a database.
type Effect any

// The effects.
type (
	// Log is a line of the log.
	Log struct {
		Level   zapcore.Level
		Message string
		Fields  []zap.Field
	}
	Found        struct{ alert.Finding }
	Write        struct{ ledger.Audit } // the state of an audit
	Placed       struct{ ledger.Query } // an audit has a place, and has not begun
	Displaced    struct{ Key string }   // it has lost it
	LedgerFailed struct{ Err error }
	// Seen is an execution of a DP query.
	Seen struct {
		Key            string
		Query          ledger.Query
		Captured       capture.Query
		Placed, Before bool // see keep.Keeper.See
	}
	Skipped struct { // a statement that is not audited
		Reason string
		At     time.Time
	}
	// Sampled is a sample of such a statement, if one is wanted.
	Sampled struct {
		Reason, Detail, Advice string
		Query                  capture.Query
	}
	Refused struct { // by the rewriter, possibly because the catalogs are old
		Reason   string
		Captured capture.Query
		Claim    *ledger.Claim // nil = not known
	}
	// Remembered is whether a text was turned away.
	Remembered struct {
		Look inbox.Look
		Away bool
	}
	ReadEngines   struct{ After time.Duration }
	EngineChanged struct{} // what it states may be other claims
	Wake          struct{} // a turn may be due
	// Counted increments a counter.
	Counted struct {
		Counter Counter
		Label   string
	}
)

// Counter is a counter that decisions increment.
type Counter uint8

// The counters.
const (
	VerdictsCounter Counter = iota
	ConfirmationsCounter
	EvictedCounter
	RecognizedCounter
	AuditedCounter
	LostCounter
	ResolvedCounter
	FaultsCounter
	ChangesCounter
)
