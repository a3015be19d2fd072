package audit_test

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestWorkerKeepsTables: a worker creates the tables of a hoisted query once, not in each of its turns.
func TestWorkerKeepsTables(t *testing.T) {
	t.Parallel()
	const least = 8
	// On a busy machine trials would take long enough for sessions to be replaced.
	l := newLedgerRigOn(t, replay.Options{SessionTrials: 1 << 20}, func(o *audit.Options) {
		o.Workers, o.Hoist, o.NoiseFunctions = 0, true, []string{"noisy"}
		o.TurnTrials, o.Analysis.MaxTrials = 500, 1_000_000
		began := time.Now()
		o.Now = func() time.Time { return began.Add(100 * time.Since(began)) } // turns of a fiftieth of a second
	})
	conn := pgtest.Connect(t, l.dsn)
	pgtest.Exec(t, l.dsn, `
		INSERT INTO d0.people SELECT g, g % 3 FROM generate_series(1000, 6000) g;
		INSERT INTO d1.people SELECT g, g % 3 FROM generate_series(1000, 6000) g;
		CREATE SEQUENCE tables;
		CREATE FUNCTION count_table() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.tables'); END $$;
		CREATE EVENT TRIGGER count_tables ON ddl_command_end WHEN TAG IN ('CREATE TABLE AS', 'CREATE TABLE') EXECUTE FUNCTION count_table()`)
	stop := l.begin(t)
	l.restored(t)
	l.worker(t, "one", func(o *audit.WorkerOptions) { o.Worker.Slots = 1 })
	l.Submit(query(honestQuery))
	l.until(t, "turns", func(s view.Status) bool { return s.Turns.Delivered >= least })
	stop()
	turns := l.Status().Turns.Delivered
	var tables uint64
	if err := conn.QueryRow(t.Context(), "SELECT last_value FROM tables").Scan(&tables); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tables in %d turns", tables, turns)
	// Six are enough: two to rehearse, and two in each of two sessions. Tables are created again when hoisting does not
	// seem faster, and after half a minute without a turn.
	if tables < 6 || tables > 2*turns {
		t.Errorf("%d tables in %d turns, want at least 6, and at most 2 a turn", tables, turns)
	}
}
