// Package sequence finds groups of queries that sessions run again and again, such as those of a dashboard. It is pure:
// no I/O, no clock.
//
// In: the audited queries of all sessions, with their times. Out: recurring groups, in the order in which their queries
// first came.
package sequence

import (
	"container/list"
	"slices"
	"strings"
	"time"
)

// Bounds of a Tracker.
const (
	MaxQueries  = 8        // of a group
	maxBytes    = 32 << 10 // of the texts of a group
	maxSessions = 512      // with an open group
	maxGroups   = 4096     // whose recurrence is counted
)

// Recurring is how often a group must be seen before it is returned, this time included.
const Recurring = 2

// Session identifies what belongs together.
type Session struct {
	ID             uint64
	User, Database string
}

// Query is one execution of an audited query.
type Query[T any] struct {
	Session Session
	At      time.Time
	Key     string // identity of its audit
	Bytes   int    // of its text
	Value   T      // returned with its group
}

// Tracker forms groups. A group has the queries of one session from its first query on for as long as the window, with
// different keys: a query that is in the group already begins the next one, and so does one beyond MaxQueries. Use New.
// It is not safe for concurrent use.
type Tracker[T any] struct {
	window time.Duration
	open   map[Session]*list.Element // of *group[T]
	begun  *list.List                // the open groups, in the order in which they began
	seen   map[string]recurrence     // of groups that were seen, by their keys, sorted
}

// recurrence is how often a group was seen, at most Recurring. A session that runs the same queries in another order,
// as a dashboard does that loads its parts at once, runs the same group.
type recurrence struct {
	n    int
	keys []string // in the order in which they first came
}

type group[T any] struct {
	session Session
	at      time.Time // of the first query
	bytes   int
	keys    []string
	values  []T
}

// New returns a Tracker.
func New[T any](window time.Duration) *Tracker[T] {
	return &Tracker[T]{window: window, open: map[Session]*list.Element{}, begun: list.New(), seen: map[string]recurrence{}}
}

// Add adds an execution and returns the groups, of two queries at least, that it ends, each from the Recurring-th time
// on. Executions come in the order of their times, about.
func (t *Tracker[T]) Add(q Query[T]) [][]T {
	var found [][]T
	for e := t.begun.Front(); e != nil && (q.At.Sub(e.Value.(*group[T]).at) > t.window || len(t.open) >= maxSessions && t.open[q.Session] == nil); e = t.begun.Front() {
		found = t.end(e, found)
	}
	e := t.open[q.Session]
	if e != nil {
		if g := e.Value.(*group[T]); len(g.keys) == MaxQueries || slices.Contains(g.keys, q.Key) {
			found, e = t.end(e, found), nil
		}
	}
	if e == nil {
		e = t.begun.PushBack(&group[T]{session: q.Session, at: q.At})
		t.open[q.Session] = e
	}
	g := e.Value.(*group[T])
	g.keys, g.bytes = append(g.keys, q.Key), g.bytes+q.Bytes
	if g.bytes <= maxBytes {
		g.values = append(g.values, q.Value)
	} else {
		g.values = nil // it is too large to be returned
	}
	return found
}

// end ends a group and appends it to found if it is recurring.
func (t *Tracker[T]) end(e *list.Element, found [][]T) [][]T {
	g := t.begun.Remove(e).(*group[T])
	delete(t.open, g.session)
	if len(g.keys) < 2 || len(g.values) < len(g.keys) {
		return found
	}
	id := strings.Join(slices.Sorted(slices.Values(g.keys)), " ")
	r, known := t.seen[id]
	if !known {
		if len(t.seen) >= maxGroups {
			clear(t.seen)
		}
		r.keys = g.keys
	}
	r.n = min(r.n+1, Recurring)
	if t.seen[id] = r; r.n < Recurring {
		return found
	}
	values := make([]T, len(r.keys))
	for i, key := range r.keys {
		values[i] = g.values[slices.Index(g.keys, key)]
	}
	return append(found, values)
}
