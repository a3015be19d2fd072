package audit

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/sequence"
	"github.com/dpwatch/dpwatch/internal/capture"
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
		q.Then = append(q.Then, next.AsStep())
		if next.Completed.After(q.Completed) { // the queries may have come in another order
			q.Completed = next.Completed
		}
	}
	return q, true
}
