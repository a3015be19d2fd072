package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// shownFunctions is the number of functions that a log line lists.
const shownFunctions = 10

// watchEngine reads both engines, and begins the decided audits again that a change concerns. The audits report errors.
func (a *Auditor) watchEngine(ctx context.Context) {
	a.storeLabel(ctx)
	_ = a.engineNow(ctx)
	a.productionNow(ctx)
	a.review(nil)
}

// review compares the decided audits with the present engines: those of another engine epoch begin again, and those whose functions
// differ from production's become inconclusive. changed are the functions that have just changed, for the log.
func (a *Auditor) review(changed []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	again := 0
	for _, j := range slices.Clone(a.order) {
		if j.Busy() || j.Phase() == schedule.Queued {
			continue
		}
		differ, known := a.differ(j)
		same := a.sameEngine(j)
		switch {
		case !known:
		case len(differ) > 0:
			if !slices.Equal(differ, j.life.Differ) {
				a.setApart(j, differ)
			}
		case len(j.life.Differ) > 0 || !same:
			if !same {
				j.life.Began++
			}
			j.life.released = true
			a.again(j, j.query, j.plan, j.edition)
			again++
		}
	}
	if again > 0 {
		fields := []zap.Field{zap.Int("audits", again), zap.Strings("functions", changed[:min(len(changed), shownFunctions)])}
		if a.engines.label != "" {
			fields = append(fields, zap.String("label", a.engines.label))
		}
		a.opt.Logger.Info("the engine changed: decided audits of queries that it concerns begin again now, running ones with their next turn", fields...)
	}
}

// differ returns the functions of a job's query of which production has other definitions than the shadow database. known is false if a database
// has not been read yet. The caller holds Auditor.mu.
func (a *Auditor) differ(j *job) (names []string, known bool) {
	e := &a.engines
	switch {
	case a.opt.Engine != nil && e.shadow == nil:
		return nil, false
	case a.opt.Production == nil || a.opt.Engine == nil:
		return nil, true
	case e.production == nil:
		return nil, len(j.life.Differ) == 0 // what was found before stays until it is refuted
	}
	return e.compare(a.callsOf(&j.life, j.plan), append([]string{a.opt.D0}, a.opt.D1...)), true
}

// mostCompared bounds the results that are kept.
const mostCompared = 4096

// compare returns engine.Differ for the present engines. It keeps the results: many queries call the same functions.
func (e *engines) compare(c engine.Calls, copies []string) []string {
	if pair := [2]*engine.Snapshot{e.production, e.shadow}; pair != e.pair || len(e.compared) >= mostCompared {
		e.pair, e.compared = pair, map[string][]string{}
	}
	key := fmt.Sprint(c)
	names, ok := e.compared[key]
	if !ok {
		names = engine.Differ(e.production, e.shadow, c, copies)
		e.compared[key] = names
	}
	return names
}

// diverted makes a job inconclusive at the beginning of a turn if its functions differ from production's, and reports whether it did. The caller has
// the job's turn.
func (a *Auditor) diverted(j *job) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	differ, known := a.differ(j)
	if !known || len(differ) == 0 {
		return false
	}
	a.setApart(j, differ)
	return true
}

// setApart makes a job inconclusive because the shadow database runs other functions than production. The caller holds Auditor.mu and has the
// job's turn, if it has one.
func (a *Auditor) setApart(j *job, differ []string) {
	a.stand(j)
	j.Measuring, j.Watched, j.life.Differ = false, false, differ
	a.markInconclusive(j, errors.New("the shadow database runs another "+strings.Join(differ[:min(len(differ), shownFunctions)], ", ")+
		" than production: install production's definition in the shadow database"))
	a.reportDiffer(j, differ)
}

// reportDiffer reports each function once. The caller holds Auditor.mu.
func (a *Auditor) reportDiffer(j *job, differ []string) {
	if a.engines.reported == nil {
		a.engines.reported = map[string]bool{}
	}
	for _, name := range differ {
		if !a.engines.reported[name] {
			a.engines.reported[name] = true
			a.opt.OnFinding(alert.Finding{
				Kind: finding.EngineDrift, Function: name, ID: j.id, Group: j.plan.Group, Summary: j.plan.Summary,
				User: j.query.User, Database: j.query.Database, Route: j.Owner.Route,
			})
		}
	}
}
