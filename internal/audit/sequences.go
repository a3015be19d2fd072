package audit

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/sequence"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
)

// sequences finds the recurring groups of queries. The tracker is nil if sequences are not audited.
type sequences struct {
	mu      *sync.Mutex // guards tracker
	tracker *sequence.Tracker[capture.Query]
}

func newSequences(window time.Duration) sequences {
	s := sequences{mu: new(sync.Mutex)}
	if window > 0 {
		s.tracker = sequence.New[capture.Query](window)
	}
	return s
}

// follow adds an audited query to the group of its session, and submits a recurring group that has ended as a query of
// its own. Queries without a claim belong to no group.
func (a *Auditor) follow(q capture.Query, r recognize.Recognized) {
	if a.sequences.tracker == nil || r.Reason != "" || r.Unclaimed != "" || r.Query.Claim == nil || len(q.Then) > 0 || q.Doubt.HasUnknownCode() {
		return
	}
	for _, group := range a.sequences.add(q, r.Key) {
		if q, ok := together(group); ok {
			a.submit(inbox.Arrival{Query: q, Look: inbox.LookAt(a.seed, q)})
		}
	}
}

// add adds a query to the group of its session, and returns the recurring groups that have ended.
func (s *sequences) add(q capture.Query, key string) [][]capture.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tracker.Add(sequence.Query[capture.Query]{
		Session: sequence.Session{ID: q.SessionID, User: q.User, Database: q.Database},
		At:      q.Completed, Key: key, Bytes: q.Size(), Value: q,
	})
}

// together returns the sequence of a group; false if its queries did not have the same settings: a trial has one
// session.
func together(group []capture.Query) (capture.Query, bool) {
	q := group[0]
	for _, next := range group[1:] {
		if !maps.Equal(q.Settings, next.Settings) || !slices.Equal(q.Temporary, next.Temporary) || q.ApplicationName != next.ApplicationName {
			return q, false
		}
		q.Then, q.Completed = append(q.Then, next.AsStep()), next.Completed
	}
	return q, true
}

// sequenceWorlds returns the neighbours with the texts of a sequence.
func (a *Auditor) sequenceWorlds(j *job) ([]world, error) {
	texts := func(schema string) (texts []string, err error) {
		for _, plan := range j.plan.Steps() {
			text, err := a.text(plan, schema)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return texts, nil
	}
	d0, err := texts(a.opt.D0)
	if err != nil {
		return nil, err
	}
	var worlds []world
	for _, schema := range a.opt.D1 {
		d1, err := texts(schema)
		if err != nil {
			return nil, err
		}
		pair := view.SQLPair{D0: strings.Join(d0, ";\n"), D1: strings.Join(d1, ";\n")}
		worlds = append(worlds, world{schema: schema, sql: pair, steps: [2][]string{d0, d1}})
	}
	return worlds, nil
}

// ofSequence makes s the statements of the job's sequence. All trials are separate: see docs/statistics.md.
func (j *job) ofSequence(s *replay.Statement, varyText bool) {
	for i := range j.worlds[0].steps[0] {
		q := j.query.Step(i)
		step := replay.Step{Worlds: []string{j.worlds[0].steps[0][i]}, Params: q.Params, Simple: q.Protocol == capture.Simple, Named: q.Named}
		for w := range j.worlds {
			step.Worlds = append(step.Worlds, j.worlds[w].steps[1][i])
		}
		if i == 0 {
			s.Worlds = step.Worlds
			continue
		}
		s.Then = append(s.Then, step)
	}
	if s.Hoist = nil; s.Separate == nil {
		s.Separate = &replay.Separation{VaryText: varyText}
	}
}
