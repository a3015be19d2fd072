package audit

import (
	"strings"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/inbox"
	"github.com/dpwatch/dpwatch/internal/audit/recent"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// later holds the queries that wait until the catalogs are read again: those with a name that no catalog has, once for
// each name and edition of the catalogs, and those that ran after definitions were changed. It is safe for concurrent use.
type later struct {
	mu      sync.Mutex                 // guards the fields below
	queries []heldQuery                // in the order of since
	asked   recent.Map[string, uint64] // the edition of the catalogs for which a name was looked up
}

// heldQuery is a query that waits.
type heldQuery struct {
	inbox.Arrival
	since  time.Time
	counts bool // the relay has not been told yet that it has a record
}

// maxHeld bounds the queries that wait, and the names that are remembered. What is beyond is decided with the catalogs
// that were read.
const maxHeld = 4096

// hold reports whether a query, recognized so, is to wait, and keeps it then. counts is as in heldQuery.
func (l *later) hold(x inbox.Arrival, r *recognize.Recognized, c *environment.Catalogs, counts bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if len(l.queries) >= maxHeld || x.Query.Definition == capture.Read && !l.asks(r) || c.Awaited(now) {
		return false
	}
	l.queries = append(l.queries, heldQuery{x, now, counts})
	return true
}

// asks reports whether a statement has a name that was not looked up in the present catalogs since it was first seen. The
// caller holds l.mu.
func (l *later) asks(r *recognize.Recognized) bool {
	for _, name := range r.Unknown {
		if edition, ok := l.asked.Get(name); !ok || edition != r.Edition {
			return true
		}
	}
	return false
}

// settle records that the names of a statement were looked up.
func (l *later) settle(r *recognize.Recognized) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked.N = maxHeld
	for _, name := range r.Unknown {
		l.asked.Put(name, r.Edition)
	}
}

// released removes and returns the queries for which the catalogs were read.
func (l *later) released(c *environment.Catalogs) []heldQuery {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.queries) && c.Awaited(l.queries[n].since) {
		n++
	}
	released := l.queries[:n:n]
	if l.queries = l.queries[n:]; len(l.queries) == 0 {
		l.queries = nil
	}
	return released
}

// all removes and returns all queries.
func (l *later) all() []heldQuery {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.queries
	l.queries = nil
	return all
}

// held returns how many queries wait.
func (l *later) held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queries)
}

// returnHeld puts the queries that wait back into the inbox, which is spooled at the end.
func (n *intake) returnHeld() {
	for _, x := range n.later.all() {
		n.offer(x.Query)
	}
}

// unexamined returns how many captured queries were not decided on yet.
func (n *intake) unexamined() int {
	held, _ := n.inbox.Held()
	return held + n.later.held()
}

// committed returns what a statement was recognized as, or a refusal of one that ran in a transaction which had changed
// definitions, if it seems to be no DP query: what its names meant then, the catalogs may never show.
func committed(q capture.Query, r recognize.Recognized) recognize.Recognized {
	if q.Definition != capture.Uncommitted || !reasons.NotDP(reasons.Reason(r.Reason)) || !returnsData(q.Tag) {
		return r
	}
	r.Reason, r.Advice = string(reasons.UnknownName), "commit changes of definitions before they are used"
	r.Detail = "the transaction had changed definitions, which the catalog did not show then"
	return r
}

// returnsData reports whether a command tag is that of a statement that runs a query.
func returnsData(tag string) bool {
	verb, _, _ := strings.Cut(tag, " ")
	switch verb {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY", "FETCH", "DO", "CALL", "EXPLAIN", "":
		return true
	}
	return false
}
