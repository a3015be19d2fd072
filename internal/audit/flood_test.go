package audit_test

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestExecutionsInAFlood: the ledger has every execution of a text that is repeated, also the first one if it was
// turned away without being parsed; each statement is counted as placed or as skipped, once.
func TestExecutionsInAFlood(t *testing.T) {
	t.Parallel()
	const texts, rounds = 300, 3
	l := newLedgerRig(t, func(o *audit.Options) { o.PerShape, o.Workers = 2, 0 })
	stop := l.begin(t)
	defer stop()
	l.restored(t)
	for range rounds {
		for i := range texts {
			l.Submit(query(fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i)))
		}
	}
	conn := pgtest.Connect(t, l.ledger.DSN)
	var queries, least, most, executions, unplaced, skipped int
	eventually.True(t, "all executions are in the ledger", func() bool {
		if err := conn.QueryRow(t.Context(), `SELECT count(*), coalesce(min(executions), 0), coalesce(max(executions), 0), coalesce(sum(executions), 0)::bigint,
			(SELECT coalesce(sum(unplaced), 0)::bigint FROM dpwatch_ledger.query_hours), (SELECT coalesce(sum(statements), 0)::bigint FROM dpwatch_ledger.skipped)
			FROM dpwatch_ledger.queries`).Scan(&queries, &least, &most, &executions, &unplaced, &skipped); err != nil {
			t.Fatal(err)
		}
		return executions-unplaced+skipped >= texts*rounds
	}, func() any { return []int{queries, least, most, executions, unplaced, skipped} })
	if queries != texts || least != rounds || most != rounds || unplaced != skipped || executions-unplaced+skipped != texts*rounds {
		t.Errorf("%d queries with %d to %d executions, want %d with %d; %d executions without a place, %d skipped", queries, least, most, texts, rounds, unplaced, skipped)
	}
}
