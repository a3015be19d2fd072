package desk

import (
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite"
)

// engineChanged is a change of the engine.
type engineChanged struct {
	finding.Change
	all bool // it concerns all queries: a version, a setting, a deploy
}

// mostChanges bounds the changes of the engine that are remembered.
const mostChanges = 32

// noteChange remembers a change of the engine.
func (e *versions) noteChange(at time.Time, functions []string, label string, all bool) {
	e.changes = append(e.changes, engineChanged{finding.Change{At: at, Functions: functions, Label: label}, all})
	if n := len(e.changes); n > mostChanges {
		e.changes = slices.Delete(e.changes, 0, n-mostChanges)
	}
}

// engineChange returns the last change of the engine that concerns a job's query; nil if this process has noticed
// none.
func (e *versions) engineChange(j *job) *finding.Change {
	shadow := e.environment.Shadow
	if shadow == nil || len(e.changes) == 0 {
		return nil
	}
	called := shadow.Called(e.callsOf(&j.life, j.plan))
	var last *finding.Change
	for _, c := range slices.Backward(e.changes) {
		f := slices.DeleteFunc(slices.Clone(c.Functions), func(name string) bool { return !slices.Contains(called, name) })
		switch {
		case last != nil && last.At.Sub(c.At) > sameDeploy:
			return last
		case len(f) > 0:
			change := finding.Change{At: c.At, Functions: f[:min(len(f), shownFunctions)], Label: c.Label}
			if last != nil {
				change.Label = last.Label
			}
			return &change
		case c.all && last == nil:
			last = &c.Change
		}
	}
	return last
}

// sameDeploy is the time before a change without functions, such as the label of a deploy, in which changed functions
// belong to it.
const sameDeploy = 5 * time.Minute

// versions is what is known of the engine on which trials run, and of the one that clients use, besides the
// environment.
type versions struct {
	*core
	reported map[string]bool // functions that were reported to differ, and are not reported to be equal again
	changes  []engineChanged // that this process has noticed, the latest last

	pair     [2]*engine.Snapshot  // of compared
	compared map[string][]string  // functions that differ, by engine.Calls
	seen     map[string]time.Time // since when they are seen to differ, by engine.Calls
}

// life is what a job keeps about the engine.
type life struct {
	saved.Life
	standing *view.Standing // the violation that is not resolved; nil = none. Audit.Open is set with it
	released bool           // the plan was reduced: a new beginning parses the query again

	calls    *engine.Calls // of the plan; nil = not computed yet
	snapshot *engine.Snapshot
	label    string
	version  string // for snapshot and label
}

// engineVersion returns the present version of the engine of a job; "" = not known yet.
func (e *versions) engineVersion(j *job) string { return e.versionOf(&j.life, j.plan) }

// versionOf returns the present version of the engine of the query with a plan; "" = not known yet. It keeps that in l.
func (e *versions) versionOf(l *life, plan *rewrite.Plan) string {
	now := e.environment
	if l.version == "" || l.snapshot != now.Shadow || l.label != now.Label {
		l.version, l.snapshot, l.label = now.Version(e.callsOf(l, plan)), now.Shadow, now.Label
	}
	return l.version
}

// callsOf returns what the query with a plan calls on the copies. It keeps that in l.
func (e *versions) callsOf(l *life, p *rewrite.Plan) engine.Calls {
	if l.calls == nil {
		c := engine.Calls{Functions: p.Functions, Implied: p.Implied, Path: slices.Concat(p.SearchPath, []string{e.opt.D0}, e.opt.D1)}
		for _, t := range p.Tables {
			c.Relations = append(c.Relations, t, ident.Table{Schema: e.opt.D0, Name: t.Name})
		}
		c.Relations = append(c.Relations, p.Public...)
		l.calls = &c
	}
	return *l.calls
}

// sameEngine reports whether a job's evidence is of the present engine. Evidence of an unknown engine counts as such.
func (e *versions) sameEngine(j *job) bool {
	now := e.engineVersion(j)
	if j.life.Engine == "" {
		j.life.Engine = now
	}
	return now == "" || j.life.Engine == now
}

// setPlan gives a job a complete plan, and the edition of the catalogs with which it was made.
func (j *job) setPlan(plan *rewrite.Plan, edition uint64) {
	j.plan, j.edition, j.life.released, j.life.calls, j.life.version = plan, edition, false, nil, ""
}

// adoptEngine gives a job, whose evidence is dropped, the present engine.
func (e *versions) adoptEngine(j *job) {
	if e.sameEngine(j) {
		return
	}
	j.life.Began++
	j.life.Engine = e.engineVersion(j)
	e.log(zap.InfoLevel, "the engine changed during an audit: it begins again", zap.String("audit", j.id), zap.String("engine_epoch", j.life.Engine))
}

// differ returns the functions of a job's query of which production has other definitions than the shadow database.
// known is false if a database has not been read yet.
func (e *versions) differ(j *job) (names []string, known bool) {
	now := e.environment
	switch {
	case e.opt.Engine && now.Shadow == nil:
		return nil, false
	case !e.opt.Production || !e.opt.Engine:
		return nil, true
	case now.Production == nil:
		return nil, len(j.life.Differ) == 0 // what was found before stays until it is refuted
	}
	calls := e.callsOf(&j.life, j.plan)
	key := fmt.Sprint(calls)
	names = e.compare(now, key, calls, append([]string{e.opt.D0}, e.opt.D1...))
	if !e.lasting(now, key, len(names) > 0) {
		return nil, false
	}
	return names, true
}

// replacedWithin is how long it may take to replace a function in both databases: until then they differ without a
// fault.
const replacedWithin = 2 * time.Second

// lasting reports whether a comparison of the definitions that a query calls counts: if they differ, both readings
// must have begun so long after the difference was first seen that it is not one of a replacement in both databases.
func (e *versions) lasting(now *environment.Environment, calls string, differ bool) bool {
	if !differ {
		delete(e.seen, calls)
		return true
	}
	since, seen := e.seen[calls]
	if !seen {
		if e.seen == nil || len(e.seen) >= mostCompared {
			e.seen = map[string]time.Time{}
		}
		e.seen[calls] = e.wall
		e.do(ReadEngines{replacedWithin})
		return false
	}
	settled := since.Add(replacedWithin)
	return !now.ShadowRead.Before(settled) && !now.ProductionRead.Before(settled)
}

// mostCompared bounds the results that are kept.
const mostCompared = 4096

// compare returns engine.Differ for the present engines; key is the calls as a text. It keeps the results: many queries
// call the same functions.
func (e *versions) compare(now *environment.Environment, key string, c engine.Calls, copies []string) []string {
	if pair := [2]*engine.Snapshot{now.Production, now.Shadow}; pair != e.pair || len(e.compared) >= mostCompared {
		e.pair, e.compared = pair, map[string][]string{}
	}
	names, ok := e.compared[key]
	if !ok {
		names = engine.Differ(now.Production, now.Shadow, c, copies)
		e.compared[key] = names
	}
	return names
}

// report notes that a function is reported to differ, and returns whether it was not.
func (e *versions) report(name string) (first bool) {
	if e.reported == nil {
		e.reported = map[string]bool{}
	}
	first = !e.reported[name]
	e.reported[name] = true
	return first
}

// present reports whether a job's evidence belongs to the present copies and engine.
func (e *versions) present(j *job, now *environment.Environment) bool {
	if j.copies == "" {
		j.copies = now.Copies
	}
	return e.sameEngine(j) && j.copies == now.Copies
}
