package inbox

import (
	"slices"
	"sync"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// Bounds of the inbox.
const (
	MaxQueries = 4096
	MaxBytes   = 16 << 20
)

// Inbox holds captured queries that have not been recognized yet. Recognition may need a parse, so queries can arrive
// faster than they are recognized. Owners take turns, and so do the lines of each owner, new ones first; a line is the
// queries with one outline (see Look). A flood of one query with different constants therefore delays another query by
// one turn, not by the length of the flood. When the inbox is full, the longest line of the owner with the most queries
// loses its latest query. Use New. It is safe for concurrent use.
type Inbox struct {
	queries, bytes int           // the bounds
	Ready          chan struct{} // holds one token while there may be a query

	mu     sync.Mutex // guards the fields below
	owners []*inboxOwner
	n      int
	size   int
}

// inboxOwner holds one owner's queries, at least one.
type inboxOwner struct {
	owner schedule.Owner
	lines []*inboxLine
	n     int
}

// inboxLine holds the queries of one owner and one outline, at least one, the earliest first.
type inboxLine struct {
	outline uint64
	queries []Arrival
}

// Arrival is a captured query with its look.
type Arrival struct {
	Query capture.Query
	Look  Look
}

// New returns an empty Inbox with these bounds.
func New(queries, bytes int) *Inbox {
	return &Inbox{queries: queries, bytes: bytes, Ready: make(chan struct{}, 1)}
}

// Put adds a query and returns the queries that were dropped.
func (b *Inbox) Put(owner schedule.Owner, x Arrival) (dropped []Arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.owners, func(o *inboxOwner) bool { return o.owner == owner })
	if i < 0 {
		i = len(b.owners)
		b.owners = append(b.owners, &inboxOwner{owner: owner})
	}
	o := b.owners[i]
	l := o.line(x.Look)
	l.queries = append(l.queries, x)
	o.n++
	b.n++
	b.size += x.Query.Size()
	for b.n > b.queries || b.size > b.bytes && b.n > 1 {
		dropped = append(dropped, b.drop())
	}
	select {
	case b.Ready <- struct{}{}:
	default:
	}
	return dropped
}

// Beyond reports whether the queries exceed a part of the bounds: 2 = a half, 0 = there are any.
func (b *Inbox) Beyond(part int) bool {
	held, size := b.Held()
	return held > 0 && (part == 0 || held > b.queries/part || size > b.bytes/part)
}

// Held returns the number and the size of the queries.
func (b *Inbox) Held() (queries, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n, b.size
}

// line returns the line for a query. A new line goes to the front, and so does one that already contains the same text:
// otherwise an owner's flood of different queries would delay a new or repeated query by its whole length.
func (o *inboxOwner) line(x Look) *inboxLine {
	i := slices.IndexFunc(o.lines, func(l *inboxLine) bool { return l.outline == x.Outline })
	if i < 0 {
		l := &inboxLine{outline: x.Outline}
		o.lines = slices.Insert(o.lines, 0, l)
		return l
	}
	l := o.lines[i]
	if slices.ContainsFunc(l.queries, func(y Arrival) bool { return y.Look.Text == x.Text }) {
		o.lines = slices.Insert(slices.Delete(o.lines, i, i+1), 0, l)
	}
	return l
}

// drop removes and returns the latest query of the longest line of the owner with the most queries. The caller holds
// b.mu.
func (b *Inbox) drop() Arrival {
	most := 0
	for i, o := range b.owners {
		if o.n > b.owners[most].n {
			most = i
		}
	}
	lines, longest := b.owners[most].lines, 0
	for i, l := range lines {
		if len(l.queries) >= len(lines[longest].queries) { // the last of equal ones
			longest = i
		}
	}
	return b.remove(most, longest, len(lines[longest].queries)-1)
}

// remove removes one query and keeps the order of owners and lines. The caller holds b.mu.
func (b *Inbox) remove(owner, line, at int) Arrival {
	o := b.owners[owner]
	l := o.lines[line]
	x := l.queries[at]
	if at == 0 {
		l.queries[0] = Arrival{} // for the garbage collector
		l.queries = l.queries[1:]
	} else {
		l.queries = slices.Delete(l.queries, at, at+1)
	}
	o.n--
	b.n--
	b.size -= x.Query.Size()
	if len(l.queries) == 0 {
		o.lines = slices.Delete(o.lines, line, line+1)
	}
	if o.n == 0 {
		b.owners = slices.Delete(b.owners, owner, owner+1)
	}
	return x
}

// Next returns the next query, if there is one. It moves the query's line behind the owner's other lines, and its owner
// behind the other owners.
func (b *Inbox) Next() (Arrival, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == 0 {
		return Arrival{}, false
	}
	o := b.owners[0]
	l := o.lines[0]
	x := b.remove(0, 0, 0)
	if len(l.queries) > 0 {
		o.lines = append(o.lines[1:], l)
	}
	if o.n > 0 {
		b.owners = append(b.owners[1:], o)
	}
	return x, true
}
