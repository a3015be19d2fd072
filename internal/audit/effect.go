package audit

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// effect is what a decision of the desk makes others do. None waits for a database.
type effect interface{ perform(a *Auditor) }

// The effects.
type (
	logged struct {
		level   zapcore.Level
		message string
		fields  []zap.Field
	}
	found        struct{ alert.Finding }
	write        struct{ ledger.Audit } // the state of an audit, which Auditor.save writes
	placed       struct{ ledger.Query } // an audit has a place, and has not begun
	displaced    struct{ key string }   // it has lost it
	ledgerFailed struct{ error }
	seen         struct { // an execution of a DP query
		key            string
		query          ledger.Query
		captured       capture.Query
		placed, before bool // see keep.Keeper.See
	}
	skipped struct{ reason string } // a statement that is not audited
	sampled struct {                // a sample of such a statement, if one is wanted
		reason, detail, advice string
		query                  capture.Query
	}
	refused    struct{ reason string } // by the rewriter, possibly because the catalogs are old
	remembered struct {                // whether a text was turned away
		look inbox.Look
		away bool
	}
	readEngines struct{ after time.Duration }
	wake        struct{} // a turn may be due
	counted     struct {
		counter counter
		label   string
	}
)

// counter is a counter that decisions increment.
type counter uint8

const (
	verdictsCounter counter = iota
	confirmationsCounter
	evictedCounter
	skippedCounter
	recognizedCounter
	auditedCounter
	lostCounter
	resolvedCounter
	faultsCounter
)

func (e logged) perform(a *Auditor) {
	if entry := a.opt.Logger.Check(e.level, e.message); entry != nil {
		entry.Write(e.fields...)
	}
}

func (e found) perform(a *Auditor) {
	if a.opt.OnFinding != nil {
		a.opt.OnFinding(e.Finding)
	}
}

func (e write) perform(a *Auditor)        { a.keeper.Note(e.Audit) }
func (e placed) perform(a *Auditor)       { a.keeper.Place(e.Query) }
func (e displaced) perform(a *Auditor)    { a.keeper.Displace(e.key) }
func (e ledgerFailed) perform(a *Auditor) { a.keeper.Wrote(e.error) }
func (e seen) perform(a *Auditor)         { a.keeper.See(e.key, e.query, e.captured, e.placed, e.before) }
func (e skipped) perform(a *Auditor)      { a.keeper.Skip(e.reason, 1, a.now) }

func (e sampled) perform(a *Auditor) {
	if !a.keeper.WantsSample(e.reason, e.query) {
		return
	}
	x := capture.SampleOf(e.reason, e.query, false)
	x.Detail, x.Advice = e.detail, e.advice
	a.keepSample(x)
}

// perform requests a reading of the catalogs if a refusal may be out of date: the table may have been created since.
func (e refused) perform(a *Auditor) {
	switch reasons.Reason(e.reason) {
	case reasons.UnknownTable, reasons.UnknownFunction, reasons.NoCopy:
		a.catalogs.Ask()
	}
}

func (e remembered) perform(a *Auditor)  { a.recognizer.Outcome(e.look, e.away) }
func (e readEngines) perform(a *Auditor) { time.AfterFunc(e.after, a.readEnginesSoon) }

func (wake) perform(a *Auditor) {
	select {
	case a.ready <- struct{}{}:
	default:
	}
}

func (e counted) perform(a *Auditor) { a.metrics.counter(e).Inc() }

// counter returns the counter of an effect.
func (m *metrics) counter(e counted) prometheus.Counter {
	switch e.counter {
	case verdictsCounter:
		return m.verdicts.WithLabelValues(e.label)
	case confirmationsCounter:
		return m.confirmations.WithLabelValues(e.label)
	case evictedCounter:
		return m.evicted.WithLabelValues(e.label)
	case skippedCounter:
		return m.skipped.WithLabelValues(e.label)
	case recognizedCounter:
		return m.recognized
	case auditedCounter:
		return m.audited
	case lostCounter:
		return m.lost
	case resolvedCounter:
		return m.resolved
	}
	return m.faults
}

// lock lets one goroutine at a time use the desk. The effects of its decisions are performed before the next one does,
// so that they happen in order.
type lock struct {
	sync.Mutex
	a *Auditor
}

// Lock begins a use of the desk.
func (l *lock) Lock() {
	l.Mutex.Lock()
	l.a.at(l.a.opt.Now(), time.Now(), l.a.env.Now())
}

// Unlock ends the use of the desk.
func (l *lock) Unlock() {
	defer l.Mutex.Unlock()
	for _, e := range l.a.drain() {
		e.perform(l.a)
	}
}
