package audit_test

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestPlaceIsGivenAway: with a ledger, an audit that has begun gives its place to a new query's, and goes on with its evidence when it has
// a place again.
func TestPlaceIsGivenAway(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) {
		o.MaxAudits, o.Workers, o.TurnTrials, o.Analysis.MaxTrials = 2, 1, 1, 1_000_000
	})
	stop := l.begin(t)
	defer stop()
	texts := map[string]string{} // by shape
	for _, more := range []string{"", ", max(id)", ", max(grp)"} {
		texts["count"+more] = fmt.Sprintf("SELECT noisy(count(*), 4)%s FROM people /*dp_epsilon='0.5'*/", more)
	}
	trials := func() map[string]int { // by text, of the audits that have a place
		out := map[string]int{}
		for _, e := range l.Status().Audits {
			out[e.ID] = e.Report.Trials.D0
		}
		return out
	}
	ids := map[string]string{}
	for _, shape := range []string{"count", "count, max(id)"} {
		before := trials()
		l.Submit(query(texts[shape]))
		for id := range trials() {
			if _, there := before[id]; !there {
				ids[shape] = id
			}
		}
		eventually.True(t, "first trials of "+shape, func() bool { return trials()[ids[shape]] > 0 })
	}
	eventually.True(t, "a place for the third query", func() bool {
		l.Submit(query(texts["count, max(grp)"]))
		return l.Status().Evicted["place"] == 1
	})
	gone := "count"
	if _, there := trials()[ids[gone]]; there {
		gone = "count, max(id)"
	}
	conn := pgtest.Connect(t, l.ledger.DSN)
	stored := func() (trials, processes int) {
		if err := conn.QueryRow(t.Context(), "SELECT trials, processes FROM dpwatch_ledger.audits a JOIN dpwatch_ledger.queries q ON q.id = a.query WHERE q.key LIKE $1 || '%'",
			ids[gone]).Scan(&trials, &processes); err != nil {
			t.Fatal(err)
		}
		return trials, processes
	}
	before, processes := stored()
	if before == 0 || processes != 1 {
		t.Fatalf("the ledger has %d trials of the audit that lost its place, %d beginnings", before, processes)
	}
	eventually.True(t, "the audit goes on", func() bool {
		l.Submit(query(texts[gone]))
		return trials()[ids[gone]] > before
	})
	if _, processes := stored(); processes != 1 {
		t.Errorf("its evidence began %d times", processes)
	}
}
