package audit

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// desk owns the state of all audits and decides what happens to them. It is pure: it does no input and output, takes no
// lock and reads no clock. What a decision makes others do is returned as effects, in the order in which they must
// happen. Each use begins with at and ends with drain: see lock.
type desk struct {
	opt    *Options
	secret string // key for the ids of groups

	now         time.Time                // of the present use, by the auditor's clock
	wall        time.Time                // of the present use, by the clock of readings of databases
	environment *environment.Environment // at the time of the present use
	effects     []effect

	roster    *schedule.Roster
	jobs      map[string]*job               // by key
	wished    map[string]int                // by key: how often the evidence had begun when an operator's wish for a new audit was fulfilled
	order     []*job                        // in order of admission
	asked     recent.Map[string, demand]    // queries without an audit, by key
	readers   recent.Map[reader, time.Time] // of unclaimed reads, by when they were reported
	records   records
	accepted  map[string]*ledger.Acceptance // of violations, by key; see acceptance
	away      map[string]*life              // of accepted violations whose audits are not in memory, by key; see recallAway
	coverage  coverage
	captured  uint64
	skipped   map[string]uint64
	unlisted  map[string]bool // tables and functions that were logged, see logUnlisted
	evictions map[string]uint64
	turned    turnedAway
	faults    uint64
	engines   engines
	lastTrial time.Time // zero = none yet
	shadowUp  bool      // the last use of the shadow database succeeded
	begun     int       // audits with a claim that have begun, if there is no ledger
	reported  int       // those of them that have ended in a violation
}

// newDesk returns the desk of an auditor without audits.
func newDesk(opt *Options, secret string) desk {
	return desk{
		opt: opt, secret: secret, environment: &environment.Environment{},
		roster: schedule.New(schedule.Limits{
			Audits: opt.MaxAudits, PerShape: opt.PerShape, Bytes: opt.Memory, Watch: schedule.Watch{Share: opt.WatchShare, Every: opt.WatchEvery},
		}),
		jobs: map[string]*job{}, wished: map[string]int{}, away: map[string]*life{}, skipped: map[string]uint64{}, unlisted: map[string]bool{}, evictions: map[string]uint64{},
		asked:   recent.Map[string, demand]{N: 4 * recognize.RememberedTexts},
		readers: recent.Map[reader, time.Time]{N: reportedUnclaimed},
		records: records{most: recordsPerAudit * opt.MaxAudits},
	}
}

// at begins a use at a time, by both clocks, and in an environment.
func (d *desk) at(now, wall time.Time, env *environment.Environment) {
	d.now, d.wall, d.environment = now, wall, env
}

// drain ends a use, and returns its effects.
func (d *desk) drain() []effect {
	all := d.effects
	d.effects = nil
	return all
}

// do adds an effect.
func (d *desk) do(e effect) { d.effects = append(d.effects, e) }

func (d *desk) log(level zapcore.Level, message string, fields ...zap.Field) {
	d.do(logged{level, message, fields})
}

func (d *desk) alert(f alert.Finding) { d.do(found{f}) }
