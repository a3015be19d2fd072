package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// shownFunctions is the number of functions that a log line lists.
const shownFunctions = 10

// watchEngine reads both engines, and begins the decided audits again that a change concerns. The audits report errors.
func (a *Auditor) watchEngine(ctx context.Context) {
	a.storeLabel(ctx)
	_ = a.env.ReadEngine(ctx)
	a.productionNow(ctx)
	a.locked(func() { a.review(nil) })
}

// review compares the decided audits with the present engines: those of another engine epoch begin again, and those
// whose functions differ from production's become inconclusive. changed are the functions that have just changed, for
// the log.
func (d *desk) review(changed []string) {
	again := 0
	defer d.reportEqual()
	for _, j := range slices.Clone(d.order) {
		if j.Busy() || j.Phase() == schedule.Queued {
			continue
		}
		differ, known := d.differ(j)
		same := d.sameEngine(j)
		switch {
		case !known:
		case len(differ) > 0:
			if !slices.Equal(differ, j.life.Differ) {
				d.setApart(j, differ)
			}
		case len(j.life.Differ) > 0 || !same:
			if !same {
				j.life.Began++
			}
			for _, name := range j.life.Differ { // an earlier process may have reported it
				d.engines.report(name)
			}
			j.life.released = true
			d.again(j, j.query, j.plan, j.edition)
			again++
		}
	}
	if again > 0 {
		fields := []zap.Field{zap.Int("audits", again), zap.Strings("functions", changed[:min(len(changed), shownFunctions)])}
		if label := d.environment.Label; label != "" {
			fields = append(fields, zap.String("label", label))
		}
		d.log(zap.InfoLevel, "the engine changed: decided audits of queries that it concerns begin again now, running ones with their next turn", fields...)
	}
}

// differ returns the functions of a job's query of which production has other definitions than the shadow database.
// known is false if a database has not been read yet.
func (d *desk) differ(j *job) (names []string, known bool) {
	now := d.environment
	switch {
	case d.opt.Engine != nil && now.Shadow == nil:
		return nil, false
	case d.opt.Production == nil || d.opt.Engine == nil:
		return nil, true
	case now.Production == nil:
		return nil, len(j.life.Differ) == 0 // what was found before stays until it is refuted
	}
	calls := d.callsOf(&j.life, j.plan)
	key := fmt.Sprint(calls)
	names = d.engines.compare(now, key, calls, append([]string{d.opt.D0}, d.opt.D1...))
	if !d.lasting(now, key, len(names) > 0) {
		return nil, false
	}
	return names, true
}

// replacedWithin is how long it may take to replace a function in both databases: until then they differ without a
// fault.
const replacedWithin = 2 * time.Second

// lasting reports whether a comparison of the definitions that a query calls counts: if they differ, both readings
// must have begun so long after the difference was first seen that it is not one of a replacement in both databases.
func (d *desk) lasting(now *environment.Environment, calls string, differ bool) bool {
	e := &d.engines
	if !differ {
		delete(e.seen, calls)
		return true
	}
	since, seen := e.seen[calls]
	if !seen {
		if e.seen == nil || len(e.seen) >= mostCompared {
			e.seen = map[string]time.Time{}
		}
		e.seen[calls] = d.wall
		d.do(readEngines{replacedWithin})
		return false
	}
	settled := since.Add(replacedWithin)
	return !now.ShadowRead.Before(settled) && !now.ProductionRead.Before(settled)
}

// readEnginesSoon makes watchEpoch read both engines now.
func (a *Auditor) readEnginesSoon() {
	select {
	case a.deployed <- struct{}{}:
	default:
	}
}

// mostCompared bounds the results that are kept.
const mostCompared = 4096

// compare returns engine.Differ for the present engines; key is the calls as a text. It keeps the results: many queries
// call the same functions.
func (e *engines) compare(now *environment.Environment, key string, c engine.Calls, copies []string) []string {
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

// diverted makes a job inconclusive at the beginning of a turn if its functions differ from production's, and reports
// whether it did.
func (d *desk) diverted(j *job) bool {
	differ, known := d.differ(j)
	if !known || len(differ) == 0 {
		return false
	}
	d.setApart(j, differ)
	return true
}

// setApart makes a job inconclusive because the shadow database runs other functions than production.
func (d *desk) setApart(j *job, differ []string) {
	d.stand(j)
	j.Measuring, j.Watched, j.life.Differ = false, false, differ
	d.markInconclusive(j, errors.New("the shadow database runs another "+strings.Join(differ[:min(len(differ), shownFunctions)], ", ")+
		" than production: install production's definition in the shadow database"))
	d.reportDiffer(j, differ)
}

// reportDiffer reports each function once.
func (d *desk) reportDiffer(j *job, differ []string) {
	for _, name := range differ {
		if d.engines.report(name) {
			d.alert(alert.Finding{
				Kind: finding.EngineDrift, Function: name, ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary,
				User: j.query.User, Database: j.query.Database, Route: j.Owner.Route,
			})
		}
	}
}

// report notes that a function is reported to differ, and returns whether it was not.
func (e *engines) report(name string) (first bool) {
	if e.reported == nil {
		e.reported = map[string]bool{}
	}
	first = !e.reported[name]
	e.reported[name] = true
	return first
}

// reportEqual reports the functions that differed and do not any more, or that no audit calls any more.
func (d *desk) reportEqual() {
	if len(d.engines.reported) == 0 {
		return
	}
	still := map[string]bool{}
	for _, j := range d.order {
		names, known := d.differ(j)
		if !known {
			return
		}
		for _, name := range names {
			still[name] = true
		}
	}
	for name := range d.engines.reported {
		if still[name] {
			continue
		}
		delete(d.engines.reported, name)
		if d.opt.OnFinding != nil {
			d.alert(alert.Finding{Kind: finding.EngineDrift, Status: finding.Resolved, Function: name})
		}
	}
}
