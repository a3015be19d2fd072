package audit

import (
	"reflect"
	"slices"
	"sync"

	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/replay"
)

// maxServed is the number of audits of which a worker keeps the state of hoisting between their turns.
const maxServed = 2 * maxIdleRuns

// served holds the state of hoisting of the audits that a worker served lately. Their idle replays, with the tables,
// are in the cache of idle replays.
type served struct {
	mu   sync.Mutex // guards all
	all  []*servedJob
	idle *idleRuns
}

// servedJob is the state of hoisting after a turn of an audit, and what it was computed for.
type servedJob struct {
	job       *job // without its evidence
	statement replay.Statement
	processes int
	copies    string           // their epoch
	engine    string           // engine epoch of the evidence
	shadow    *engine.Snapshot // of the shadow database
}

// keep keeps the state of hoisting of a job after its turn, and drops the job's evidence.
func (s *served) keep(j *job, shadow *engine.Snapshot) {
	if j.hoist == nil || j.evidence == nil || j.evidence.Decided() || j.evidence.Confirming() {
		s.idle.drop(j)
		return
	}
	k := &servedJob{job: j, statement: j.statement(false), processes: j.processes, copies: j.epoch, engine: j.life.Engine, shadow: shadow}
	j.evidence, j.reports = nil, nil
	s.drop(j.Key)
	s.mu.Lock()
	s.all = append(s.all, k)
	var oldest *servedJob
	if len(s.all) > maxServed {
		oldest = s.all[0]
		s.all = slices.Delete(s.all, 0, 1)
	}
	s.mu.Unlock()
	if oldest != nil {
		s.idle.drop(oldest.job)
	}
}

// resume gives a job, whose turn begins, the state of hoisting of its last turn here, if that was the same audit on the
// same copies and engine.
func (s *served) resume(j *job, shadow *engine.Snapshot) {
	k := s.take(j.Key)
	if k == nil {
		return
	}
	if j.hoist == nil || j.hoist.Report().Reason != "" || j.confirming || // a Hoisting that was stopped
		j.processes != k.processes || j.epoch != k.copies || j.life.Engine != k.engine || shadow != k.shadow {
		s.idle.drop(k.job)
		return
	}
	now := j.statement(false)
	now.Hoist = k.statement.Hoist
	if !reflect.DeepEqual(now, k.statement) {
		s.idle.drop(k.job)
		return
	}
	j.hoist = k.statement.Hoist
	j.hoisted += j.hoist.Report().HoistedRounds
	s.idle.hand(k.job, j)
}

// take removes and returns the state of an audit; nil if there is none.
func (s *served) take(key string) *servedJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(k *servedJob) bool { return k.job.Key == key })
	if i < 0 {
		return nil
	}
	k := s.all[i]
	s.all = slices.Delete(s.all, i, i+1)
	return k
}

// drop removes the state of an audit and closes its idle replay.
func (s *served) drop(key string) {
	if k := s.take(key); k != nil {
		s.idle.drop(k.job)
	}
}
