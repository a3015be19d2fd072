package ledger_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// sighting returns executions of a query in the hour of a time.
func sighting(key string, executions, unplaced int64, at time.Time) ledger.Sighting {
	q := query()
	q.Key, q.FirstSeen, q.LastSeen = key, at, at
	return ledger.Sighting{Query: q, User: "ann", Database: "db", Executions: executions, Unplaced: unplaced}
}

// TestVolumes: every statement since the beginning of the hour is in one volume, of its engine.
func TestVolumes(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e, other := acquire(t, o, "e"), acquire(t, o, "another")
	now := time.Date(2026, 3, 4, 5, 30, 0, 0, time.UTC)
	unclaimed := sighting("unclaimed", 4, 0, now)
	unclaimed.Query.Claim = nil
	b := ledger.Batch{
		Term: 1, Seq: 1,
		Sightings: []ledger.Sighting{
			sighting("found", 5, 0, now), sighting("found", 100, 0, now.Add(-time.Hour)), sighting("going on", 6, 2, now),
			sighting("new", 7, 0, now), sighting("away", 2, 0, now), sighting("impossible", 1, 0, now), sighting("left out", 8, 0, now), sighting("outside", 3, 3, now), unclaimed,
		},
		Skips: []ledger.Skip{{Reason: "too_many_audits", Hour: now, Statements: 5}, {Reason: "explain", Hour: now, Statements: 9}, {Reason: "explain", Hour: now.Add(-time.Hour), Statements: 50}},
	}
	elsewhere := ledger.Batch{Term: 1, Seq: 1, Sightings: []ledger.Sighting{sighting("new", 1, 0, now)}}
	if err := errors.Join(e.Record(t.Context(), b), other.Record(t.Context(), elsewhere)); err != nil {
		t.Fatal(err)
	}
	for key, a := range map[string]ledger.Audit{"found": {State: "decided", Verdict: "violation", Trials: 9}, "going on": {State: "running", Trials: 3}, "away": {State: "waiting", Verdict: "inconclusive"}, "impossible": {State: "decided", Verdict: "inconclusive"}, "left out": {State: "decided", Verdict: "inconclusive", ReasonCode: "vacuous"}, "unclaimed": {State: "decided", Verdict: "inconclusive"}} {
		a.Query = query()
		a.Query.Key = key
		if err := e.Audits.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	v, err := l.Volumes(t.Context(), "e", now.Add(-20*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Volumes{
		Since: ledger.Hour(now), Engines: []string{"e"},
		Queries: []ledger.Volume{{"vacuous", 1, 8}, {"queued", 1, 7}, {"violation", 1, 5}, {"no_claim", 1, 4}, {"running", 1, 4}, {"waiting", 1, 2}, {"untestable", 1, 1}, {"no_place", 1, 0}},
		Skipped: []ledger.Volume{{"explain", 0, 9}, {"too_many_audits", 0, 5}},
	}
	if diff := cmp.Diff(want, v); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if v, err := l.Volumes(t.Context(), "", now); err != nil || len(v.Engines) != 2 || v.Queries[0] != (ledger.Volume{Outcome: "queued", Queries: 2, Statements: 8}) {
		t.Errorf("all engines: %+v, %v", v, err)
	}
	if _, err := l.Volumes(t.Context(), "nowhere", now); err == nil || !strings.Contains(err.Error(), `no engine "nowhere"; it has: another, e`) {
		t.Errorf("an unknown engine: %v", err)
	}
}
