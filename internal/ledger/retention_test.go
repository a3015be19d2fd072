package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestPrune: what is older than the retention goes, in batches; violations, queries to keep, and other engines stay.
func TestPrune(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e, other := acquire(t, o, "e"), acquire(t, o, "another")
	now := time.Now().UTC()
	old, recent := now.Add(-100*24*time.Hour), now.Add(-24*time.Hour)
	b := ledger.Batch{Term: 1, Seq: 1, Skips: []ledger.Skip{{Reason: "explain", Hour: old, Statements: 1}, {Reason: "explain", Hour: recent, Statements: 1}}}
	for i := range 1200 { // more than a batch
		b.Sightings = append(b.Sightings, sighting(fmt.Sprint("old ", i), 1, 0, old))
	}
	for _, key := range []string{"found", "kept", "both"} {
		b.Sightings = append(b.Sightings, sighting(key, 1, 0, old))
	}
	b.Sightings = append(b.Sightings, sighting("both", 1, 0, recent))
	if err := e.Record(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := other.Record(t.Context(), ledger.Batch{Term: 1, Seq: 1, Sightings: []ledger.Sighting{sighting("old", 1, 0, old)}}); err != nil {
		t.Fatal(err)
	}
	a := ledger.Audit{Query: query(), State: "decided", Verdict: "violation"}
	a.Query.Key = "found"
	if err := e.Audits.Save(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	var sum ledger.Pruned
	rounds := 0
	for more := true; more; rounds++ {
		// The caller's clock is years ahead: the server's counts.
		p, err := e.Prune(t.Context(), now.AddDate(5, 0, 0), 90*24*time.Hour, []string{"kept"})
		if err != nil {
			t.Fatal(err)
		}
		sum.Queries, sum.Rows, more = sum.Queries+p.Queries, sum.Rows+p.Rows, p.More
	}
	// Rows: an hour of found, kept and both, a user of found and kept, and a row of skipped.
	if rounds != 2 || sum.Queries != 1200 || sum.Rows < 6 {
		t.Errorf("%d rounds removed %+v; want 2 rounds, 1200 queries", rounds, sum)
	}
	v, err := l.Volumes(t.Context(), "e", old)
	if want := []ledger.Volume{{"queued", 1, 1}}; err != nil || !cmp.Equal(want, v.Queries) || !cmp.Equal([]ledger.Volume{{"explain", 0, 1}}, v.Skipped) {
		t.Errorf("left: %+v, %v", v, err)
	}
	var left []string
	err = pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT array_agg(key ORDER BY key) FROM "the ""ledger""".queries WHERE engine = 'e'`).Scan(&left)
	if want := []string{"both", "found", "kept"}; err != nil || !cmp.Equal(want, left) {
		t.Errorf("queries left: %q, %v; want %q", left, err, want)
	}
	if v, err := l.Volumes(t.Context(), "another", old); err != nil || len(v.Queries) != 1 {
		t.Errorf("another engine: %+v, %v", v, err)
	}
}

// TestPruneTerms: the terms of former processes go when the next term began before the cutoff, and 30 days ago; the
// batches of those that stay do not count twice.
func TestPruneTerms(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	now := time.Now().UTC()
	ago := func(days int) int64 { return now.AddDate(0, 0, -days).UnixMilli() }
	admin := pgtest.Connect(t, o.DSN)
	for _, engine := range []string{"e", "another"} {
		for _, days := range []int{200, 100, 95, 20, 10} {
			if _, err := admin.Exec(t.Context(), `INSERT INTO "the ""ledger""".terms (engine, term, seq) VALUES ($1, $2, 7)`, engine, ago(days)); err != nil {
				t.Fatal(err)
			}
		}
	}
	prune := func(age time.Duration, want int64) {
		t.Helper()
		if p, err := e.Prune(t.Context(), now, age, nil); err != nil || p.Rows != want {
			t.Errorf("retention %s removed %+v, %v; want %d rows", age, p, err, want)
		}
	}
	terms := func(engine string, want ...int64) {
		t.Helper()
		var left []int64
		err := admin.QueryRow(t.Context(), `SELECT array_agg(term ORDER BY term) FROM "the ""ledger""".terms WHERE engine = $1`, engine).Scan(&left)
		if err != nil || !cmp.Equal(want, left) {
			t.Errorf("terms of %s: %d, %v; want %d", engine, left, err, want)
		}
	}
	prune(98*24*time.Hour, 1) // the next of the second one began 95 days ago
	prune(90*24*time.Hour, 1)
	terms("e", ago(95), ago(20), ago(10), e.Term())
	prune(time.Hour, 0)
	terms("e", ago(95), ago(20), ago(10), e.Term())
	terms("another", ago(200), ago(100), ago(95), ago(20), ago(10))
	if err := e.Record(t.Context(), ledger.Batch{Term: ago(20), Seq: 7, Sightings: []ledger.Sighting{sighting("twice", 1, 0, now)}}); err != nil {
		t.Fatal(err)
	}
	var queries int
	if err := admin.QueryRow(t.Context(), `SELECT count(*) FROM "the ""ledger""".queries WHERE key = 'twice'`).Scan(&queries); err != nil || queries != 0 {
		t.Errorf("a stored batch counts again: %d queries, %v", queries, err)
	}
}
