package desk

import (
	"errors"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Engines compares the engine on which trials run with the one that clients use, and with that of each audit.
type Engines struct {
	*core
	versions    *versions
	violations  *violations
	places      *places
	turns       *Turns
	acceptances *Acceptances
}

// Changed notes that the engine on which trials run has changed, and begins the decided audits again that this
// concerns.
func (e *Engines) Changed(before, after *environment.Environment) {
	functions := after.Shadow.Changed(before.Shadow)
	e.versions.noteChange(e.now, functions, after.Label, !sameBase(after.Shadow, before.Shadow))
	e.do(EngineChanged{})
	e.review(functions)
}

// Deployed notes that another version of the engine was deployed, under a label.
func (e *Engines) Deployed(label string) {
	e.versions.noteChange(e.now, nil, label, true)
	e.do(EngineChanged{})
}

// Review compares the decided audits with the present engines.
func (e *Engines) Review() { e.review(nil) }

// CatalogsAdopted lets the audits go on that waited until all catalogs were read. changed reports that they are others
// than before: what was derived from those is dropped.
func (e *Engines) CatalogsAdopted(changed bool) {
	if changed {
		clear(e.acceptances.away)
	}
	for _, j := range e.order {
		if j.held {
			j.held, j.NotBefore, j.shown = false, time.Time{}, nil
		}
	}
	e.do(Wake{})
}

// Diverted makes an audit inconclusive at the beginning of a turn if its functions differ from production's, and
// reports whether it did.
func (e *Engines) Diverted(key string) bool {
	j := e.job(key)
	differ, known := e.versions.differ(j)
	if !known || len(differ) == 0 {
		return false
	}
	e.setApart(j, differ)
	return true
}

// shownFunctions is the number of functions that a log line lists.
const shownFunctions = 10

// review compares the decided audits with the present engines: those of another version begin again, and those
// whose functions differ from production's become inconclusive. changed are the functions that have just changed, for
// the log.
func (e *Engines) review(changed []string) {
	again := 0
	defer e.reportEqual()
	for _, j := range slices.Clone(e.order) {
		if j.Busy() || j.Phase() == schedule.Queued {
			continue
		}
		differ, known := e.versions.differ(j)
		same := e.versions.sameEngine(j)
		switch {
		case !known:
		case len(differ) > 0:
			if !slices.Equal(differ, j.life.Differ) {
				e.setApart(j, differ)
			}
		case len(j.life.Differ) > 0 || !same:
			if !same {
				j.life.Began++
			}
			for _, name := range j.life.Differ { // an earlier process may have reported it
				e.versions.report(name)
			}
			j.life.released = true
			e.places.again(j, j.query, j.plan, j.edition)
			again++
		}
	}
	if again > 0 {
		fields := []zap.Field{zap.Int("audits", again), zap.Strings("functions", changed[:min(len(changed), shownFunctions)])}
		if label := e.environment.Label; label != "" {
			fields = append(fields, zap.String("label", label))
		}
		e.log(zap.InfoLevel, "the engine changed: decided audits of queries that it concerns begin again now, running ones with their next turn", fields...)
	}
}

// setApart makes a job inconclusive because the shadow database runs other functions than production.
func (e *Engines) setApart(j *job, differ []string) {
	j.shown = nil
	e.violations.stand(j)
	j.Measuring, j.Watched, j.life.Differ = false, false, differ
	e.turns.markInconclusive(j, errors.New("the shadow database runs another "+strings.Join(differ[:min(len(differ), shownFunctions)], ", ")+
		" than production: install production's definition in the shadow database"))
	e.reportDiffer(j, differ)
}

// reportDiffer reports each function once.
func (e *Engines) reportDiffer(j *job, differ []string) {
	for _, name := range differ {
		if e.versions.report(name) {
			e.alert(alert.Finding{
				Kind: finding.EngineDrift, Function: name, ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary,
				User: j.query.User, Database: j.query.Database, Route: j.Owner.Route,
			})
		}
	}
}

// reportEqual reports the functions that differed and do not any more, or that no audit calls any more.
func (e *Engines) reportEqual() {
	if len(e.versions.reported) == 0 {
		return
	}
	still := map[string]bool{}
	for _, j := range e.order {
		names, known := e.versions.differ(j)
		if !known {
			return
		}
		for _, name := range names {
			still[name] = true
		}
	}
	for name := range e.versions.reported {
		if still[name] {
			continue
		}
		delete(e.versions.reported, name)
		if e.opt.Findings {
			e.alert(alert.Finding{Kind: finding.EngineDrift, Status: finding.Resolved, Function: name})
		}
	}
}
