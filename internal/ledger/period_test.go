package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestPeriod: a period concerns the queries that ran in it, those whose audit changed in it, and violations of before;
// volumes end before its end.
func TestPeriod(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	at := time.Date(2026, 3, 4, 5, 30, 0, 0, time.UTC)
	five := ledger.Hour(at)
	b := ledger.Batch{
		Term: 1, Seq: 1, Sightings: []ledger.Sighting{sighting("found", 100, 0, at.Add(-time.Hour)), sighting("found", 5, 0, at), sighting("honest", 7, 0, at), sighting("waiting", 3, 0, at)},
		Skips: []ledger.Skip{{Reason: "explain", Hour: at, Statements: 9}, {Reason: "explain", Hour: at.Add(-time.Hour), Statements: 50}},
	}
	err := e.Record(t.Context(), b)
	for key, verdict := range map[string]string{"found": "violation", "honest": "no_evidence"} {
		a := ledger.Audit{Query: query(), State: "decided", Verdict: verdict, DataEpoch: "7", EngineEpoch: "v1"}
		a.Query.Key = key
		err = errors.Join(err, e.Audits.Save(t.Context(), a))
	}
	if err != nil {
		t.Fatal(err)
	}
	never := time.Now().Add(24 * time.Hour)
	for _, tc := range []struct {
		name         string
		since, until time.Time
		want         []string
	}{
		{"the hour", at, five.Add(time.Hour), []string{"found", "honest", "waiting"}},
		{"the hour before", five.Add(-time.Hour), five, []string{"found"}},
		{"later, when a violation is left", five.Add(time.Hour), five.Add(2 * time.Hour), []string{"found"}},
		{"when the audits were written", time.Now().Add(-24 * time.Hour), never, []string{"found", "honest"}},
		{"before all", time.Time{}, at.AddDate(-1, 0, 0), nil},
		{"ever", time.Time{}, never, []string{"found", "honest", "waiting"}},
	} {
		all, err := l.Concerned(t.Context(), tc.since, tc.until, 100)
		var keys []string
		for _, s := range all {
			keys = append(keys, s.Key)
			if s.Verdict != "" && (s.DataEpoch != "7" || s.EngineEpoch != "v1") {
				t.Errorf("%s: epochs %q and %q", s.Key, s.DataEpoch, s.EngineEpoch)
			}
		}
		slices.Sort(keys)
		if err != nil || !slices.Equal(keys, tc.want) {
			t.Errorf("%s: %v, %v; want %v", tc.name, keys, err, tc.want)
		}
	}
	reached, err := l.Reached(t.Context(), time.Now().Add(-24*time.Hour), never)
	if diff := cmp.Diff([]ledger.Reached{{"e", "no_evidence", 1, 1}, {"e", "violation", 1, 1}}, reached); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if reached, err := l.Reached(t.Context(), at, five.Add(time.Hour)); err != nil || len(reached) != 0 {
		t.Errorf("before the verdicts: %v, %v", reached, err)
	}
	v, err := l.VolumesUntil(t.Context(), "e", five.Add(-time.Hour), &five)
	if err != nil || !slices.Equal(v.Queries, []ledger.Volume{{"violation", 1, 100}}) || !slices.Equal(v.Skipped, []ledger.Volume{{"explain", 0, 50}}) {
		t.Errorf("%+v, %v", v, err)
	}
	if f, err := l.Fleet(t.Context()); err != nil || f.Reported != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}
