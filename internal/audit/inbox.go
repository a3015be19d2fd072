package audit

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/internal/capture"
)

// Bounds of the inbox.
const (
	inboxQueries = 4096
	inboxBytes   = 16 << 20
)

// inbox holds captured queries that have not been recognized yet. Recognition may need a parse, so queries can arrive
// faster than they are recognized. Owners take turns, and so do the lines of each owner, new ones first; a line is the
// queries with one outline (see look). A flood of one query with different constants therefore delays another query by one
// turn, not by the length of the flood. When the inbox is full, the longest line of the owner with the most queries loses
// its latest query. Use newInbox. It is safe for concurrent use.
type inbox struct {
	queries, bytes int           // the bounds
	ready          chan struct{} // holds one token while there may be a query

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
	queries []arrival
}

// arrival is a captured query with its look.
type arrival struct {
	query capture.Query
	look  look
}

func newInbox(queries, bytes int) *inbox {
	return &inbox{queries: queries, bytes: bytes, ready: make(chan struct{}, 1)}
}

// put adds a query and returns how many queries were dropped.
func (b *inbox) put(owner schedule.Owner, x arrival) (dropped int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.owners, func(o *inboxOwner) bool { return o.owner == owner })
	if i < 0 {
		i = len(b.owners)
		b.owners = append(b.owners, &inboxOwner{owner: owner})
	}
	o := b.owners[i]
	l := o.line(x.look)
	l.queries = append(l.queries, x)
	o.n++
	b.n++
	b.size += x.query.Size()
	for b.n > b.queries || b.size > b.bytes && b.n > 1 {
		b.drop()
		dropped++
	}
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return dropped
}

// beyond reports whether the queries exceed a part of the bounds: 2 = a half, 0 = there are any.
func (b *inbox) beyond(part int) bool {
	held, size := b.held()
	return held > 0 && (part == 0 || held > b.queries/part || size > b.bytes/part)
}

// held returns the number and the size of the queries.
func (b *inbox) held() (queries, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.n, b.size
}

// line returns the line for a query. A new line goes to the front, and so does one that already contains the same text:
// otherwise an owner's flood of different queries would delay a new or repeated query by its whole length.
func (o *inboxOwner) line(x look) *inboxLine {
	i := slices.IndexFunc(o.lines, func(l *inboxLine) bool { return l.outline == x.outline })
	if i < 0 {
		l := &inboxLine{outline: x.outline}
		o.lines = slices.Insert(o.lines, 0, l)
		return l
	}
	l := o.lines[i]
	if slices.ContainsFunc(l.queries, func(y arrival) bool { return y.look.text == x.text }) {
		o.lines = slices.Insert(slices.Delete(o.lines, i, i+1), 0, l)
	}
	return l
}

// drop removes the latest query of the longest line of the owner with the most queries. The caller holds b.mu.
func (b *inbox) drop() {
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
	b.remove(most, longest, len(lines[longest].queries)-1)
}

// remove removes one query and keeps the order of owners and lines. The caller holds b.mu.
func (b *inbox) remove(owner, line, at int) arrival {
	o := b.owners[owner]
	l := o.lines[line]
	x := l.queries[at]
	if at == 0 {
		l.queries[0] = arrival{} // for the garbage collector
		l.queries = l.queries[1:]
	} else {
		l.queries = slices.Delete(l.queries, at, at+1)
	}
	o.n--
	b.n--
	b.size -= x.query.Size()
	if len(l.queries) == 0 {
		o.lines = slices.Delete(o.lines, line, line+1)
	}
	if o.n == 0 {
		b.owners = slices.Delete(b.owners, owner, owner+1)
	}
	return x
}

// next returns the next query, if there is one. It moves the query's line behind the owner's other lines, and its owner
// behind the other owners.
func (b *inbox) next() (arrival, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == 0 {
		return arrival{}, false
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

// Offer takes one captured query like Submit, but does not wait for its recognition, which Run performs. If queries arrive
// faster than they are recognized, each owner's different queries take turns, and those beyond the bounds are counted as
// skipped.
func (a *Auditor) Offer(q capture.Query) {
	owner := schedule.Owner{User: q.User, Database: q.Database, Route: a.route(q)}
	dropped := a.inbox.put(owner, arrival{query: q, look: lookAt(a.seed, q)})
	if dropped == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for range dropped {
		a.captured++
		a.metrics.captured.Inc()
		a.turnAway(skippedBacklog)
	}
}

// intake submits the offered queries until ctx is done, after those that were spooled while the ledger was away, and those that other
// processes of the engine captured.
func (a *Auditor) intake(ctx context.Context) {
	tick := time.NewTicker(intakeEvery)
	defer tick.Stop()
	var others captures
	for a.awaitLedger(ctx, tick) {
		for ctx.Err() == nil && a.unspool(ctx) {
		}
		more := others.submit(ctx, a)
		for n := 0; n < inboxQueries && ctx.Err() == nil; n++ { // what is left at the end is spooled
			x, ok := a.inbox.next()
			if !ok {
				break
			}
			a.submit(x)
		}
		if more || a.inbox.beyond(0) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-a.inbox.ready:
		case <-tick.C:
		}
	}
}

// intakeEvery is the interval at which the inbox is spooled while the ledger is away, and the spool is read.
const intakeEvery = 100 * time.Millisecond

// awaitLedger waits until queries can be submitted, and spools what arrives meanwhile when the inbox is half full, unless recordOnly writes it to the ledger. It returns false if ctx is done.
func (a *Auditor) awaitLedger(ctx context.Context, tick *time.Ticker) bool {
	for ctx.Err() == nil {
		select {
		case <-a.keeper.restored:
			select {
			case <-ctx.Done():
				return false
			case <-a.informed:
				return true
			}
		default:
		}
		if !a.keeper.shares.Load() {
			a.spoolInbox(2)
		}
		select {
		case <-ctx.Done():
		case <-a.keeper.restored:
		case <-a.inbox.ready:
		case <-tick.C:
		}
	}
	return false
}
