package desk

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/replay"
)

// ended is a statement that ended its sessions, on a version of the engine. It stays in memory when its audit loses its
// place, and ends with the process.
type ended struct {
	*outcome.Ends        // nil = it may run again
	engine        string // "" = not known
}

// untilAsked continues the reason of an audit whose statement ends its sessions.
const untilAsked = "; it does not run again until an operator asks for a new audit (on its page), its functions change, or dpwatch starts again"

// WatchEnded ends the turn of a watched audit whose trials ended their sessions.
func (t *Turns) WatchEnded(key string, took time.Duration, err *replay.EndsError) {
	j := t.job(key)
	t.roster.Rest(&j.Audit, took, t.now)
	t.endAudit(j, &err.Ends)
}

// SetAside makes an audit inconclusive in its turn if its statement ended its sessions before, on the same engine, and
// reports whether it did.
func (t *Turns) SetAside(key string) bool {
	j := t.job(key)
	e, _ := t.places.ended.Get(key)
	if e.Ends == nil {
		return false
	}
	if now := t.places.versions.engineVersion(j); e.engine != "" && now != "" && now != e.engine {
		t.places.ended.Put(key, ended{})
		return false
	}
	t.showEnds(j, e.Ends)
	return true
}

// endAudit ends an audit whose trials ended their sessions, or the server, and reports what happened on one copy alone.
func (t *Turns) endAudit(j *job, e *outcome.Ends) {
	t.noteEnds(j, e)
	t.log(zap.WarnLevel, "the trials of a query end their sessions: it does not run again", zap.String("audit", j.id), zap.String("db.query.summary", j.plan.Summary),
		zap.String("reason", e.Text()))
	if _, _, one := e.OneCopy(); one && t.opt.Findings && !j.control && len(j.worlds) > 0 {
		f := t.finding(j, j.neighbourOf(e), t.emptyReport(j.plan, e.Text()))
		f.Kind = finding.SessionEnds
		t.alert(f)
	}
	t.showEnds(j, e)
	t.places.shed()
	t.do(Wake{})
}

// noteEnds notes that the statement of an audit must not run again.
func (t *Turns) noteEnds(j *job, e *outcome.Ends) {
	t.places.ended.Put(j.Key, ended{e, t.places.versions.engineVersion(j)})
}

// showEnds makes an audit inconclusive because of how its sessions ended.
func (t *Turns) showEnds(j *job, e *outcome.Ends) {
	j.Measuring, j.Watched = false, false
	event := analysis.EndsEvent(e)
	t.markInconclusive(j, errors.New(e.Text()+untilAsked))
	j.reports[0].Event = event
}

// neighbourOf returns the neighbour among those of a job whose sessions ended, or which is compared with D0; 0 if there
// is none.
func (j *job) neighbourOf(e *outcome.Ends) int {
	for _, c := range e.Copies {
		for i := range j.worlds {
			if j.worlds[i].Schema == c.Schema {
				return i
			}
		}
	}
	return 0
}

// lostInWorker is what a worker reports of a turn in which a session was lost: see replay.Lost.
type lostInWorker struct{ error }

// longestRetry bounds how long an audit waits whose trials lose their sessions again and again.
const longestRetry = time.Hour

// retryIn returns how long an audit waits after an error: after each further loss of a session in a row twice as long,
// because its statement may be why.
func (t *core) retryIn(j *job, err error) time.Duration {
	if !replay.Lost(err) && !errors.As(err, new(*lostInWorker)) {
		j.losses = 0
		return t.opt.RetryAfter
	}
	j.losses++
	return max(t.opt.RetryAfter, min(longestRetry, t.opt.RetryAfter<<min(j.losses-1, 20)))
}
