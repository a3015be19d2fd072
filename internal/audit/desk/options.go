package desk

import (
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// Options configures a Desk. They never change.
type Options struct {
	D0   string   // schema of D0
	D1   []string // schemas of its neighbours
	Twin string   // schema of the twin of D0; "" = there is none

	Analysis      analysis.Options // MaxTrials and Confidence are for one audit, over all its neighbours
	Family        bool             // 1 - Confidence is for all audits together
	Discoveries   bool             // with Family: 1 - Confidence is the false discovery rate
	MeasureTrials int              // greatest number of rounds after a violation; 0 = none
	Hoist         bool             // trials may reuse the part that is the same in all of them

	MaxAudits    int
	PerShape     int           // audits of one user's query and claim with different constants
	Memory       int64         // estimated bytes of all audits; 0 = no limit
	RetryAfter   time.Duration // how long an audit waits after a fault
	Repeat       time.Duration // a query that is run again after so long is audited again; 0 = never
	WatchShare   float64       // of the time in turns: decided audits without a violation are watched; 0 = they are not
	WatchEvery   time.Duration // shortest time between two turns of a watched audit
	ControlShare float64       // of the audits: control audits; 0 = there are none

	Observe    bool // nothing is replayed
	Kept       bool // there is a ledger
	Findings   bool // findings are reported
	Suspected  bool // also violations that fresh trials have not confirmed yet
	ShowSQL    bool
	ShowValues bool
	Engine     bool // the engine on which trials run is read
	Production bool // the engine that clients use is read

	Say     func(error) string                       // returns the message of an error, without values of rows unless they may be shown; pure
	Contain func(where string, f func() error) error // calls f, and returns an error if it panics
	Seed    func() uint64                            // for the order of the trials
}
