package audit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestBudget: the trials that the engine itself counts, as calls of its noise function, never exceed the budget, over a
// restart too; what waits for it is shown, and the ledger has what was used.
func TestBudget(t *testing.T) {
	t.Parallel()
	const perHour, full = 36_000, 1200 // trials per hour, and in a full bucket
	clock := &clock{at: time.Now(), since: time.Now()}
	pace := &latest{}
	next := func() *budget.Budget {
		pace.Budget = budget.New(budget.Limits{Trials: perHour}, nil, clock.now)
		return pace.Budget
	}
	l := newLedgerRigOn(t, replay.Options{Pace: pace}, func(o *audit.Options) { o.Budget, o.Analysis.MaxTrials = next(), 800 })
	pgtest.Exec(t, l.dsn, `DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET track_functions = ''all''', current_database()); END$$;
		CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE plpgsql VOLATILE
			AS 'BEGIN RETURN round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024; END'`)
	conn := pgtest.Connect(t, l.dsn)
	calls := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT coalesce(sum(calls), 0) FROM pg_stat_user_functions").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	decided := func(i int) {
		t.Helper()
		eventually.True(t, "the audit is decided", func() bool { return l.Status().Audits[i].State == view.Decided }, func() any { return l.Status() })
	}
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	eventually.True(t, "the bucket is empty", func() bool { // or the turn, on a slow machine, ended before: then the next one waits
		s := l.Status()
		w := s.Audits[0].WaitingFor
		return s.Budget.Trials == full || w != nil && w.Reason == "budget"
	}, func() any { return []any{*l.Status().Budget, l.Status().Audits[0].WaitingFor} })
	if n := l.Status().Budget.Trials; n > full {
		t.Errorf("%d trials, and nothing flowed into the budget of %d", n, full)
	}
	clock.run(200)
	decided(0)
	stop()
	first := l.Status().Budget.Trials
	clock.run(0)
	l.restart(t, func(o *audit.Options) { o.Budget = next() })
	stop = l.begin(t)
	l.restored(t)
	l.Submit(query(longQuery))
	eventually.True(t, "the second audit waits for the budget", func() bool {
		s := l.Status()
		w := s.Audits[1].WaitingFor
		return w != nil && w.Reason == "budget" && w.Position == 1 && !s.Budget.Since.IsZero() && s.Budget.Waiting == 1
	}, func() any { return l.Status() })
	if n := l.Status().Budget.Trials; n != 0 {
		t.Errorf("%d trials after the restart, and nothing flowed into the budget", n)
	}
	clock.run(200)
	decided(1)
	stop()
	eventually.True(t, "the engine has counted all trials", func() bool { return calls() >= 3200 }, func() any { return calls() })
	used, ran := int(first+l.Status().Budget.Trials), calls()
	var stored int
	err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT sum(trials) FROM dpwatch_ledger.budget_hours").Scan(&stored)
	if err != nil || stored != used || ran > used || ran < used*3/4 {
		t.Errorf("%d trials used, %d in the ledger, the engine ran %d, %v; want the same numbers, up to what was not needed at the end of a batch", used, stored, ran, err)
	}
}

// clock is a clock that runs faster than time, or stands still.
type clock struct {
	mu        sync.Mutex // guards the fields below
	at, since time.Time
	speed     int
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Add(time.Duration(c.speed) * time.Since(c.since))
}

// run sets the speed.
func (c *clock) run(speed int) {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.since, c.speed = now, time.Now(), speed
}

// latest is the Pace of the Player of several auditors, one after the other.
type latest struct{ *budget.Budget }
