package audit_test

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestBudget: the trials that the engine itself counts never exceed the budget, over a restart too; what waits for it is shown, and
// the ledger has what was used. The budget's clock is fast, so that an hour takes three minutes.
func TestBudget(t *testing.T) {
	t.Parallel()
	const perHour, fast = 36_000, 20
	started := time.Now()
	clock := func() time.Time { return started.Add(fast * time.Since(started)) }
	pace := &latest{}
	next := func() *audit.Budget {
		pace.Budget = audit.NewBudget(audit.BudgetLimits{Trials: perHour}, nil, clock)
		return pace.Budget
	}
	l := newLedgerRigOn(t, replay.Options{Pace: pace}, func(o *audit.Options) { o.Budget, o.Analysis.MaxTrials = next(), 800 })
	pgtest.Exec(t, l.dsn, `CREATE SEQUENCE calls;
		CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024 + 0 * nextval(''public.calls'')'`)
	conn := pgtest.Connect(t, l.dsn)
	calls := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM calls").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	within := func() { // a full bucket at the start, and what flowed in since
		n := calls()
		if allowed := perHour/30 + float64(perHour-perHour/30)*clock().Sub(started).Hours(); float64(n) > allowed {
			t.Errorf("%d trials, the budget allows %.0f until now", n, allowed)
		}
	}
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	eventually.True(t, "the first audit is decided", func() bool {
		within()
		s := l.Status()
		return len(s.Audits) == 1 && s.Audits[0].State == audit.Decided
	}, func() any { return l.Status() })
	stop()
	first := l.Status().Budget.Trials
	l.restart(t, func(o *audit.Options) { o.Budget = next() })
	stop = l.begin(t)
	l.restored(t)
	l.Submit(query(longQuery))
	eventually.True(t, "the second audit waits for the budget", func() bool {
		s := l.Status()
		w := s.Audits[1].WaitingFor
		return w != nil && w.Reason == "budget" && w.Position == 1 && !s.Budget.Since.IsZero() && s.Budget.Waiting == 1
	}, func() any { return l.Status() })
	eventually.True(t, "the second audit is decided", func() bool {
		within()
		return l.Status().Audits[1].State == audit.Decided
	}, func() any { return l.Status() })
	stop()
	within()
	used, ran := int(first+l.Status().Budget.Trials), calls()
	var stored int
	err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT sum(trials) FROM dpwatch_ledger.budget_hours").Scan(&stored)
	if err != nil || stored != used || ran > used || ran < used*9/10 || ran < 3200 {
		t.Errorf("%d trials used, %d in the ledger, the engine ran %d, %v; want at least 3200, and the same numbers up to what was not needed", used, stored, ran, err)
	}
}

// latest is the Pace of the Player of several auditors, one after the other.
type latest struct{ *audit.Budget }
