package keep

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Record writes the observations since the last write. A batch whose write failed is written again with its number, so
// that it counts once.
func (k *Keeper) Record(ctx context.Context) error {
	k.recording.Lock()
	defer k.recording.Unlock()
	if err := k.recordSpooled(ctx); err != nil {
		k.Wrote(err)
		return err
	}
	for {
		b := k.batch()
		if b == nil {
			return nil
		}
		err := k.Writer().Record(ctx, *b)
		if k.Wrote(err); err != nil {
			return err
		}
		if s := k.Spool(); s != nil && b.File != "" {
			_ = s.Remove(b.File) // the ledger remembers it
		}
		k.done()
	}
}

// done forgets the batch that was written.
func (k *Keeper) done() {
	k.mu.Lock()
	k.pending = nil
	k.settling.settled = k.settling.pending
	k.mu.Unlock()
	k.tell()
}

// Ready reports whether the ledger can be written, as far as is known, and no batch waits.
func (k *Keeper) Ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.Engine.Load() != nil && k.trouble == "" && k.pending == nil
}

// Hold collects all observations until submitted is called.
func (k *Keeper) Hold() {
	k.mu.Lock()
	k.holding = true
	k.mu.Unlock()
}

// Submitted puts the observations since hold into one batch, which comes from a spooled file or, with its number, from
// a Capture.
func (k *Keeper) Submitted(file string, captured int64) {
	k.mu.Lock()
	k.holding, k.file, k.captured = false, file, captured
	k.mu.Unlock()
}

// batch returns the next batch to write, nil if nothing is waiting.
func (k *Keeper) batch() *ledger.Batch {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending != nil || k.holding || len(k.sightings)+len(k.skips)+len(k.placed)+len(k.displaced)+k.statements == 0 && k.file == "" && k.captured == 0 {
		if k.pending == nil && !k.holding {
			k.settling.settled = k.settling.handled
		}
		return k.pending
	}
	k.settling.pending = k.settling.handled
	k.seq++
	b := &ledger.Batch{Seq: k.seq, File: k.file, Queries: k.queries, Statements: k.statements, Captured: k.captured}
	if w := k.Writer(); w != nil { // nil = the process ends before it had the ledger
		b.Term = w.Term()
	}
	k.file, k.queries, k.statements, k.captured = "", nil, 0, 0
	for s := range maps.Values(k.sightings) {
		b.Sightings = append(b.Sightings, *s)
	}
	for s, n := range k.skips {
		b.Skips = append(b.Skips, ledger.Skip{Reason: s.reason, Hour: time.Unix(s.hour, 0), Statements: n})
	}
	b.Placed, b.Displaced = slices.Collect(maps.Values(k.placed)), slices.Collect(maps.Keys(k.displaced))
	clear(k.sightings)
	clear(k.skips)
	clear(k.placed)
	clear(k.displaced)
	for _, x := range k.samples.Take() {
		b.Samples = append(b.Samples, ledger.Sample(x))
	}
	k.pending = b
	return b
}

// Place notes that the audit of a query, which has its statement, has a place and has not begun.
func (k *Keeper) Place(query ledger.Query) {
	if !k.On {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.placed) < maxObservations { // one more is stored when it begins
		k.placed[query.Key] = query
		delete(k.displaced, query.Key)
	}
}

// Displace notes that an audit has lost its place before it began.
func (k *Keeper) Displace(key string) {
	if !k.On {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.placed, key)
	if len(k.displaced) < maxObservations { // one more is begun by the next process
		k.displaced[key] = true
	}
}

// See counts an execution of a DP query. placed means that the query has an audit; otherwise skip counts the execution
// too. before means that it counts an earlier execution, which skip has counted, as well.
func (k *Keeper) See(key string, query ledger.Query, q capture.Query, placed, before bool) {
	if !k.On {
		return
	}
	at := sighted{key, q.User, q.Database, q.ApplicationName, ledger.Hour(q.Completed).Unix()}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sightings[at]
	switch {
	case s == nil && len(k.sightings) >= maxObservations:
		k.lost++
		if placed {
			k.skips[skippedIn{NotRecorded, at.hour}]++
		}
		return
	case s == nil:
		query.Key, query.FirstSeen = key, q.Completed
		s = &ledger.Sighting{Query: query, User: q.User, Database: q.Database, Application: q.ApplicationName}
		k.sightings[at] = s
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

// Skip counts statements that are not audited.
func (k *Keeper) Skip(reason string, n uint64, now time.Time) {
	if !k.On {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.skips[skippedIn{reason, ledger.Hour(now).Unix()}] += int64(n) //nolint:gosec // a number of statements
}

// WantsSample reports whether a sample of a statement would be kept until the next batch.
func (k *Keeper) WantsSample(reason string, q capture.Query) bool {
	return k.On && k.samples.Wants(reason, q.User, q.Database, q.ApplicationName)
}

// Sample keeps a sample of a statement that is not audited for the next batch.
func (k *Keeper) Sample(x capture.Sample) {
	if k.On {
		k.samples.Add(x)
	}
}
