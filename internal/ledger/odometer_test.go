package ledger_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/odometer"
)

// TestReceived: what analysts received is the sum over the claims of their answers, once for each answer; a later
// answer to the same query is a repetition, and hours beyond the retention still count.
func TestReceived(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	seq := int64(0)
	record := func(user, application, key string, epsilon float64, n int64, at time.Time) {
		t.Helper()
		q := query()
		q.Key, q.Claim, q.FirstSeen, q.LastSeen = key, &ledger.Claim{Epsilon: epsilon, Delta: 1e-6}, at, at
		if epsilon == 0 {
			q.Claim = nil
		}
		seq++
		b := ledger.Batch{Term: e.Term(), Seq: seq, Sightings: []ledger.Sighting{{Query: q, User: user, Database: "db", Application: application, Executions: n}}}
		for range 2 { // a batch that arrives twice counts once
			if err := e.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	now := ledger.Hour(time.Now())
	record("ann", "psql", "one", 0.5, 3, now)
	record("ann", "psql", "one", 0.5, 2, now)
	record("ann", "bi", "two", 0.25, 1, now.Add(-48*time.Hour))
	record("bob", "psql", "one", 0.5, 1, now)
	record("bob", "psql", "unclaimed", 0, 7, now)

	seq++ // refused statements count as repetitions, and those whose claims are not known apart
	refused := []ledger.Refusal{
		{User: "eve", Database: "db", Hour: now, Statements: 3, Claim: &ledger.Claim{Epsilon: 0.5}},
		{User: "eve", Database: "db", Hour: now, Statements: 4},
	}
	for range 2 {
		if err := e.Record(t.Context(), ledger.Batch{Term: e.Term(), Seq: seq, Refused: refused}); err != nil {
			t.Fatal(err)
		}
	}

	type sums struct {
		User, Application string
		Answers           int64
		Epsilon, Delta    float64
	}
	check := func(what string, a ledger.Answers, want ...sums) {
		t.Helper()
		all, err := e.Received(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		var got []sums
		for _, r := range all {
			if unread := map[string]int64{"eve": 4}[r.Analyst.User]; r.Spent.Unread != unread {
				t.Errorf("%s: %d unknown claims of %s, want %d", what, r.Spent.Unread, r.Analyst.User, unread)
			}
			got = append(got, sums{r.Analyst.User, r.Analyst.Application, r.Spent.Answers, r.Spent.Epsilon, r.Spent.Delta})
		}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(x, y float64) bool { return x-y < 1e-12 && y-x < 1e-12 })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	ever := ledger.Answers{Repeated: true}
	checkAll := func() {
		t.Helper()
		eve := sums{"eve", "", 3, 1.5, 0}
		check("ever", ever, sums{"ann", "", 6, 2.75, 6e-6}, sums{"bob", "", 1, 0.5, 1e-6}, eve)
		check("a day", ledger.Answers{Repeated: true, Since: now.Add(-24 * time.Hour)}, sums{"ann", "", 5, 2.5, 5e-6}, sums{"bob", "", 1, 0.5, 1e-6}, eve)
		check("without repetitions", ledger.Answers{}, sums{"ann", "", 2, 0.75, 2e-6}, sums{"bob", "", 1, 0.5, 1e-6}, sums{"eve", "", 0, 0, 0})
		check("one user", ledger.Answers{Repeated: true, Analyst: ledger.Analyst{User: "bob"}}, sums{"bob", "", 1, 0.5, 1e-6})
	}
	checkAll()
	check("by application", ledger.Answers{Repeated: true, Applications: true},
		sums{"ann", "bi", 1, 0.25, 1e-6}, sums{"ann", "psql", 5, 2.5, 5e-6}, sums{"bob", "psql", 1, 0.5, 1e-6}, sums{"eve", "", 3, 1.5, 0})
	for range 2 {
		if _, err := e.Prune(t.Context(), time.Now(), 24*time.Hour, []string{"one", "two"}); err != nil {
			t.Fatal(err)
		}
	}
	checkAll()

	all, err := e.Received(t.Context(), ever)
	if err != nil {
		t.Fatal(err)
	}
	want := odometer.Of(0.5, 1e-6, 5).Add(odometer.Of(0.25, 1e-6, 1))
	if got := all[0].Spent; !cmp.Equal(got, want, cmp.Comparer(func(x, y float64) bool { return x-y < 1e-12 && y-x < 1e-12 })) {
		t.Errorf("sums %+v, want %+v", got, want)
	}
}

func TestExceeded(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e, who := acquire(t, o, "e"), ledger.Analyst{User: "ann", Database: "db"}
	for _, exceeded := range []bool{true, true, false, false} {
		if err := e.SetExceeded(t.Context(), "b", who, exceeded); err != nil {
			t.Fatal(err)
		}
		all, err := e.Exceeded(t.Context(), "b")
		if _, got := all[who]; err != nil || got != exceeded {
			t.Errorf("%v, %v; want ann: %t", all, err, exceeded)
		}
	}
}
