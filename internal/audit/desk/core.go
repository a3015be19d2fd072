package desk

import (
	"crypto/hmac"
	"crypto/sha256"
	"math"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay/hoisting"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Desk owns the state of all audits. It is not safe for concurrent use.
type Desk struct {
	*core
	Admission   *Admission   // captured queries
	Beginnings  *Beginnings  // of turns, and of evidence
	Turns       *Turns       // who has the next one, and how it ends
	Watches     *Watches     // turns of decided audits
	Workers     *Workers     // turns in other processes
	Restoration *Restoration // audits of earlier processes
	Engines     *Engines     // versions of the engine, and what follows from another one
	Acceptances *Acceptances // violations that operators accept
	Requests    *Requests    // audits that operators want again
	Overview    *Overview    // what is shown of all this
	Controls    *Controls    // control audits, and the rate of false alarms
}

// core is what all parts of a Desk share.
type core struct {
	opt    *Options
	secret string // key for the ids of groups

	now         time.Time                // of the present use, by the auditor's clock
	wall        time.Time                // of the present use, by the clock of readings of databases
	environment *environment.Environment // at the time of the present use
	effects     []Effect

	roster    *schedule.Roster
	jobs      map[string]*job // by key
	order     []*job          // in order of admission, without control audits
	faults    uint64          // batches that could not be replayed
	lastTrial time.Time       // zero = none yet
	shadowUp  bool            // the last use of the shadow database succeeded
	fleet     ledger.Fleet    // audits with a claim that have begun, if there is no ledger, and those of them that have ended in a violation
}

// New returns the Desk of an auditor without audits. secret is the key for the ids of groups.
func New(opt *Options, secret string) *Desk {
	c := &core{
		opt: opt, secret: secret, environment: &environment.Environment{}, jobs: map[string]*job{},
		roster: schedule.New(schedule.Limits{
			Audits: opt.MaxAudits, PerShape: opt.PerShape, Bytes: opt.Memory, Watch: schedule.Watch{Share: opt.WatchShare, Every: opt.WatchEvery},
		}),
	}
	store, versions, counts := &store{c}, &versions{core: c}, newCounts(c)
	acceptances := &Acceptances{core: c, versions: versions, away: map[string]*life{}}
	violations := &violations{c, versions, acceptances}
	places := newPlaces(c, versions, violations, counts)
	watches := &Watches{c, versions, places}
	controls := &Controls{core: c, places: places, store: store, known: map[string]bool{}, results: map[draw]analysis.Verdict{}, counts: map[analysis.Verdict]int{}}
	places.controls = controls
	beginnings := &Beginnings{c, versions, violations, places, watches, controls}
	turns := &Turns{c, violations, places, store, watches, beginnings, controls}
	return &Desk{
		core: c, Admission: &Admission{c, versions, places, counts, watches}, Beginnings: beginnings, Turns: turns, Watches: watches,
		Workers: &Workers{c, versions, violations, store, turns, beginnings}, Restoration: &Restoration{c, places, beginnings},
		Engines: &Engines{c, versions, violations, places, turns, acceptances}, Acceptances: acceptances, Requests: &Requests{c, places},
		Overview: &Overview{c, acceptances, places, counts, controls}, Controls: controls,
	}
}

// At begins a use of the desk at a time, by both clocks, and in an environment.
func (c *core) At(now, wall time.Time, env *environment.Environment) {
	clear(c.effects) // the values are not needed any more
	c.effects = c.effects[:0]
	c.now, c.wall, c.environment = now, wall, env
}

// Drain ends a use of the desk, and returns its effects, which are valid until the next use.
func (c *core) Drain() []Effect { return c.effects }

// job returns the audit with a key, to be changed: what is shown of it is made anew. nil = there is none. Readers that
// have no turn of it use jobs.
func (c *core) job(key string) *job {
	j := c.jobs[key]
	if j != nil {
		j.shown = nil
	}
	return j
}

// do adds an effect.
func (c *core) do(e Effect) { c.effects = append(c.effects, e) }

func (c *core) log(level zapcore.Level, message string, fields ...zap.Field) {
	c.do(Log{level, message, fields})
}

func (c *core) alert(f alert.Finding) { c.do(Found{f}) }

// emptyReport returns the report of an audit without trials.
func (c *core) emptyReport(plan *rewrite.Plan, reason string) analysis.Report {
	claim, source := analysis.Claim{Epsilon: math.NaN()}, ""
	if of := plan.Claim; of != nil {
		claim, source = analysis.CurveClaim(of.Curve, of.Epsilon, of.Delta), of.Source
	}
	r := analysis.Refused(claim, c.opt.Analysis.Confidence, reason)
	r.Claimed.Source = source
	return r
}

// finding returns the finding that a report on a neighbour shows.
func (c *core) finding(j *job, neighbour int, r analysis.Report) alert.Finding {
	f := alert.Finding{
		ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary, User: j.query.User, Database: j.query.Database,
		Neighbour: j.worlds[neighbour].Schema, Route: j.Owner.Route, Epsilon: float64(r.Claimed.Epsilon), Delta: r.Claimed.Delta, Curve: r.Claimed.Curve, Source: r.Claimed.Source,
		Lower: float64(r.EpsilonLower), Estimate: float64(r.EpsilonEstimate), Confidence: r.Confidence, Reason: r.Reason,
		TrialsD0: r.Trials.D0, TrialsD1: r.Trials.D1, Odds: float64(r.Attacker.PosteriorOdds),
		Application: j.query.ApplicationName, EngineEpoch: j.life.Engine,
	}
	if r.DetectedAt == nil {
		f.Lower, f.Estimate, f.Odds = math.NaN(), math.NaN(), math.NaN()
	}
	f.Kind = finding.OfViolation(f.Lower, r.FloatingPoint())
	if s := j.life.standing; s != nil {
		f.EngineEpoch, f.Change, f.Found = s.FirstEngine, s.Change, s.FirstSeen
	}
	if c.opt.ShowValues {
		r = r.Reveal()
	}
	if r.Finding != nil {
		f.Line = r.Finding.Line
	}
	if e := r.Event; e != nil {
		f.Event = alert.Event{
			Description: e.Description, Kind: string(e.Kind), Column: e.Column, Partition: e.Partition,
			Tail: string(e.Tail), Direction: e.Direction, D0: float64(e.D0), D1: float64(e.D1),
		}
	}
	if c.opt.ShowSQL {
		f.SQL = j.query.SQL
	}
	return f
}

// copies returns the version of the copies; "" = not read yet.
func (c *core) copies() string { return c.environment.Copies }

// running reports whether an audit that is not decided has a turn.
func (c *core) running() bool {
	for _, j := range c.order {
		if j.Phase() == schedule.Running || j.Measuring {
			return true
		}
	}
	return false
}

// salt returns the key for the ids of one audit's groups. It differs between audits: otherwise anyone who may send
// queries could find the group key of an id by a query with known groups.
func (c *core) salt(key string) string {
	mac := hmac.New(sha256.New, []byte(c.secret))
	_, _ = mac.Write([]byte(key)) // never fails
	return string(mac.Sum(nil))
}

// ShadowChecked notes whether the shadow database can be used.
func (c *core) ShadowChecked(up bool) { c.shadowUp = up }

// noHoisting returns the report of hoisting before the first turn; nil if hoisting is off.
func (c *core) noHoisting() *hoisting.Report {
	if !c.opt.Hoist {
		return nil
	}
	return &hoisting.Report{}
}
