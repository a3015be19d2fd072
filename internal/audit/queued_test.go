package audit_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRestartOfQueued: an audit that has a place and no trial yet has its place in the next process, whether the ledger
// or the spool has it, and has none if it lost it.
func TestRestartOfQueued(t *testing.T) {
	t.Parallel()
	const queries, places = 30, 20
	dir := filepath.Join(t.TempDir(), "spool")
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Workers, o.MaxAudits, o.PerShape = 0, places, 100
		o.Spool = func() (*ledger.Spool, error) { return ledger.OpenSpool(dir, 1<<20, false) }
	})
	capture := func(from, to int) {
		for i := from; i < to; i++ {
			l.Submit(query(fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i)))
		}
	}
	held := func(want int) {
		t.Helper()
		l.restored(t)
		eventually.True(t, "the queries have their places again", func() bool { return len(l.Status().Audits) == want }, func() any { return l.Status() })
		for _, a := range l.Status().Audits {
			if a.State != view.Queued {
				t.Errorf("audit %s is %s", a.ID, a.State)
			}
		}
	}
	stop := l.begin(t)
	capture(0, queries/3)
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	held(queries / 3)
	conn := pgtest.Connect(t, l.ledger.DSN)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec("ALTER SCHEMA dpwatch_ledger RENAME TO away") // the ledger fails
	capture(queries/3, queries/2)
	stop()
	exec("ALTER SCHEMA away RENAME TO dpwatch_ledger")
	l.restart(t, nil)
	stop = l.begin(t)
	held(queries / 2)
	capture(queries/2, queries)
	eventually.True(t, "the other queries are turned away", func() bool { return l.Status().Skipped["too_many_audits"] == queries-places }, func() any { return l.Status() })
	stop()
	l.restart(t, nil)
	defer l.begin(t)()
	held(places)
	var queued int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM dpwatch_ledger.audits WHERE state = 'queued'").Scan(&queued); err != nil || queued != places {
		t.Errorf("%d audits wait in the ledger, %v; want %d", queued, err, places)
	}
}
