package keep

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// maxObservations bounds the observations that wait to be written; beyond it they are counted as lost.
const maxObservations = 16384

// observations are what clients ran since the last batch that was written. They are safe for concurrent use.
type observations struct {
	on        bool                  // there is a ledger
	OnSettled func(capture.Settled) // is told what Settled returns when that grows by a write; may be nil
	samples   capture.Samples

	mu         sync.Mutex // guards the fields below
	sightings  map[sighted]*ledger.Sighting
	skips      map[skippedIn]int64
	refused    map[refusedTo]int64
	placed     map[string]ledger.Query // audits that have got a place and not begun, by key
	displaced  map[string]bool         // keys of those that lost it
	pending    *ledger.Batch           // its write failed, perhaps after it took effect
	holding    bool                    // a spooled file is being submitted: its observations go into one batch
	file       string                  // the file whose observations the next batch has; "" = none
	settling   settling
	captured   int64  // the Capture whose observations it has; 0 = none
	queries    []byte // that it has for the process that audits the engine
	statements int    // number of queries
	seq        int64
	lost       uint64 // executions and skipped statements that were not recorded
}

// sighted identifies what one user ran in one hour.
type sighted struct {
	key, user, database, application string
	hour                             int64
}

type skippedIn struct {
	reason string
	hour   int64
}

// refusedTo identifies what one user received in one hour by refused statements with one claim.
type refusedTo struct {
	user, database, application string
	hour                        int64
	epsilon, delta              float64
	claimed                     bool
}

func newObservations(on bool) observations {
	return observations{
		on: on, sightings: map[sighted]*ledger.Sighting{}, skips: map[skippedIn]int64{}, refused: map[refusedTo]int64{}, placed: map[string]ledger.Query{}, displaced: map[string]bool{},
	}
}

// pends reports whether a batch waits whose write failed.
func (o *observations) pends() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pending != nil
}

// waiting returns how many observations are not written yet, and how many executions and skipped statements were lost.
func (o *observations) waiting() (n int, lost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n = len(o.sightings) + len(o.skips) + len(o.refused)
	if o.pending != nil {
		n += len(o.pending.Sightings) + len(o.pending.Skips) + len(o.pending.Refused)
	}
	return n, o.lost
}

// Attach puts captured queries in the next batch. The batch before it has been written.
func (o *observations) Attach(content []byte, statements int, file string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queries, o.statements, o.file = content, statements, file
}

// done forgets the batch that was written.
func (o *observations) done() {
	o.mu.Lock()
	o.pending = nil
	o.settling.settled = o.settling.pending
	o.mu.Unlock()
	o.tell()
}

// Hold collects all observations until Submitted is called.
func (o *observations) Hold() {
	o.mu.Lock()
	o.holding = true
	o.mu.Unlock()
}

// Submitted puts the observations since Hold into one batch, which comes from a spooled file or, with its number, from
// a Capture.
func (o *observations) Submitted(file string, captured int64) {
	o.mu.Lock()
	o.holding, o.file, o.captured = false, file, captured
	o.mu.Unlock()
}

// batch returns the next batch to write, with the term of its writer; nil if nothing is waiting.
func (o *observations) batch(term func() int64) *ledger.Batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pending != nil || o.holding || len(o.sightings)+len(o.skips)+len(o.refused)+len(o.placed)+len(o.displaced)+o.statements == 0 && o.file == "" && o.captured == 0 {
		if o.pending == nil && !o.holding {
			o.settling.settled = o.settling.handled
		}
		return o.pending
	}
	o.settling.pending = o.settling.handled
	o.seq++
	b := &ledger.Batch{Seq: o.seq, File: o.file, Queries: o.queries, Statements: o.statements, Captured: o.captured, Term: term()}
	o.file, o.queries, o.statements, o.captured = "", nil, 0, 0
	for s := range maps.Values(o.sightings) {
		b.Sightings = append(b.Sightings, *s)
	}
	for s, n := range o.skips {
		b.Skips = append(b.Skips, ledger.Skip{Reason: s.reason, Hour: time.Unix(s.hour, 0), Statements: n})
	}
	for r, n := range o.refused {
		one := ledger.Refusal{User: r.user, Database: r.database, Application: r.application, Hour: time.Unix(r.hour, 0), Statements: n}
		if r.claimed {
			one.Claim = &ledger.Claim{Epsilon: r.epsilon, Delta: r.delta}
		}
		b.Refused = append(b.Refused, one)
	}
	b.Placed, b.Displaced = slices.Collect(maps.Values(o.placed)), slices.Collect(maps.Keys(o.displaced))
	clear(o.sightings)
	clear(o.skips)
	clear(o.refused)
	clear(o.placed)
	clear(o.displaced)
	for _, x := range o.samples.Take() {
		b.Samples = append(b.Samples, ledger.Sample(x))
	}
	o.pending = b
	return b
}

// Place notes that the audit of a query, which has its statement, has a place and has not begun.
func (o *observations) Place(query ledger.Query) {
	if !o.on {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.placed) < maxObservations { // one more is stored when it begins
		o.placed[query.Key] = query
		delete(o.displaced, query.Key)
	}
}

// Displace notes that an audit has lost its place before it began.
func (o *observations) Displace(key string) {
	if !o.on {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.placed, key)
	if len(o.displaced) < maxObservations { // one more is begun by the next process
		o.displaced[key] = true
	}
}

// See counts an execution of a DP query. placed means that the query has an audit; otherwise skip counts the execution
// too. before means that it counts an earlier execution, which skip has counted, as well.
func (o *observations) See(key string, query ledger.Query, q capture.Query, placed, before bool) {
	if !o.on {
		return
	}
	at := sighted{key, q.User, q.Database, q.ApplicationName, ledger.Hour(q.Completed).Unix()}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.sightings[at]
	switch {
	case s == nil && len(o.sightings) >= maxObservations:
		o.lost++
		if placed && len(q.Then) == 0 {
			o.skips[skippedIn{NotRecorded, at.hour}]++
		}
		return
	case s == nil:
		query.Key, query.FirstSeen = key, q.Completed
		s = &ledger.Sighting{Query: query, User: q.User, Database: q.Database, Application: q.ApplicationName, Together: len(q.Then) > 0}
		o.sightings[at] = s
	}
	s.Query.Destinations = read.AddDestinations(s.Query.Destinations, query.Destinations)
	s.Executions++
	if !placed {
		s.Unplaced++
	}
	if before {
		s.Executions++
		s.Unplaced++
	}
	s.Query.LastSeen = q.Completed
}

// Refuse counts an execution of a refused DP query; claim is nil if it is not known.
func (o *observations) Refuse(q capture.Query, claim *ledger.Claim) {
	if !o.on || len(q.Then) > 0 {
		return
	}
	to := refusedTo{user: q.User, database: q.Database, application: q.ApplicationName, hour: ledger.Hour(q.Completed).Unix(), claimed: claim != nil}
	if claim != nil {
		to.epsilon, to.delta = claim.Epsilon, claim.Delta
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.refused[to]; !known && len(o.refused) >= maxObservations {
		o.lost++
		return
	}
	o.refused[to]++
}

// Skip counts statements that are not audited.
func (o *observations) Skip(reason string, n uint64, now time.Time) {
	if !o.on {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.skips[skippedIn{reason, ledger.Hour(now).Unix()}] += int64(n) //nolint:gosec // a number of statements
}

// WantsSample reports whether a sample of a statement would be kept until the next batch.
func (o *observations) WantsSample(reason string, q capture.Query) bool {
	return o.on && o.samples.Wants(reason, q.User, q.Database, q.ApplicationName)
}

// Sample keeps a sample of a statement that is not audited for the next batch.
func (o *observations) Sample(x capture.Sample) {
	if o.on {
		o.samples.Add(x)
	}
}
