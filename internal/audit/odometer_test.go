package audit_test

import (
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/odometer"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// TestPrivacyBudget: an analyst whose answers exceed a budget is reported once, also by the next process, and again
// only after the answers kept to it.
func TestPrivacyBudget(t *testing.T) {
	t.Parallel()
	budget := func(name string, epsilon float64, answers ledger.Answers) ledger.PrivacyBudget {
		return ledger.PrivacyBudget{Name: name, Answers: answers, Period: 24 * time.Hour, Budget: odometer.Budget{Epsilon: epsilon, Composition: odometer.Basic}}
	}
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Workers = 0 // nothing but counts
		o.Budgets = []ledger.PrivacyBudget{
			budget("two", 2, ledger.Answers{Repeated: true}),
			budget("cached", 2, ledger.Answers{}),
		}
	})
	fails := false
	run := func(user string, executions int) {
		t.Helper()
		q := query(honestQuery) // claims 0.5
		q.User = user
		for i := range executions {
			if i%2 == 1 { // an error is an answer, too
				q.Outcome, q.SQLState, q.Tag = capture.Failed, "22012", ""
			}
			l.Submit(q)
		}
		eventually.True(t, "the executions are recorded", func() bool { return l.Status().Ledger.Waiting == 0 }, func() any { return l.Status().Ledger })
		if err := l.MeterNow(t.Context()); (err != nil) != fails {
			t.Fatal(err)
		}
	}
	check := func(what string, alerts, exceeded int, spent float64) {
		t.Helper()
		l.mu.Lock()
		defer l.mu.Unlock()
		found := 0
		for _, f := range l.findings {
			if f.Kind != finding.BudgetExceeded {
				continue
			}
			found++
			if b := f.Budget; b.Name != "two" || b.User != "ann" || b.Epsilon != 2 || b.Spent <= 2 {
				t.Errorf("%s: %+v", what, b)
			}
		}
		s := l.Status().PrivacyBudgets
		if found != alerts || s[0].Exceeded != exceeded || s[0].Spent != spent || s[1].Exceeded != 0 || s[1].Spent != 0.25 {
			t.Errorf("%s: %d alerts and %+v; want %d alerts, %d analysts and a share of %g, and nobody who exceeds the budget of a cache", what, found, s, alerts, exceeded, spent)
		}
	}
	stop := l.begin(t)
	l.restored(t)
	run("ann", 4)
	run("bob", 2)
	check("as much as the budget", 0, 0, 1)
	for _, sql := range []string{"SELECT pg_sleep(0), count(*) FROM people", "SELECT count(*) FROM people FOR UPDATE"} {
		q := query(sql) // neither is audited, and what they claim is not known
		q.User = "eve"
		l.Submit(q)
	}
	run("eve", 0)
	check("refused statements", 0, 0, 1)
	unread := 0
	if err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT sum(unread) FROM dpwatch_ledger.analyst_hours WHERE username = 'eve'").Scan(&unread); err != nil || unread != 2 {
		t.Errorf("%d claims are not known, %v; want 2", unread, err)
	}
	pgtest.Exec(t, l.ledger.DSN, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON dpwatch_ledger.budgets_exceeded EXECUTE FUNCTION fail()`)
	fails = true
	run("ann", 1)
	run("ann", 0) // reported once, although it cannot be noted
	pgtest.Exec(t, l.ledger.DSN, "DROP TRIGGER fail ON dpwatch_ledger.budgets_exceeded")
	fails = false
	run("ann", 0)
	check("more than the budget", 1, 1, 1.25)
	run("ann", 1)
	check("still more", 1, 1, 1.5)
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	run("bob", 1)
	check("another process", 1, 1, 1.5)
	pgtest.Exec(t, l.ledger.DSN, "UPDATE dpwatch_ledger.analyst_hours SET hour = hour - interval '2 days' WHERE repeated")
	run("bob", 0)
	check("the answers are older than the period", 1, 0, 0.25)
	run("ann", 4)
	check("exceeded again", 2, 1, 1.25)
	stop()
}

// TestAnsweredBudget: a budget counts each answer with the claim that the engine states in it, and the audits of one
// statement with different claims go on with theirs in another process.
func TestAnsweredBudget(t *testing.T) {
	t.Parallel()
	rewriter, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{"noisy"}, Claims: rewrite.ClaimRules{Answer: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Rewriter, o.Workers = rewriter, 0 // nothing but counts
		o.Budgets = []ledger.PrivacyBudget{{Name: "four", Answers: ledger.Answers{Repeated: true}, Period: 24 * time.Hour, Budget: odometer.Budget{Epsilon: 4, Composition: odometer.Basic}}}
	})
	check := func(spent float64) {
		t.Helper()
		eventually.True(t, "the executions are recorded", func() bool { return l.Status().Ledger.Waiting == 0 }, func() any { return l.Status().Ledger })
		if err := l.MeterNow(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := l.Status(); s.PrivacyBudgets[0].Spent != spent || len(s.Audits) != 2 {
			t.Errorf("%d audits and %+v, want a share of %g", len(s.Audits), s.PrivacyBudgets, spent)
		}
	}
	stop := l.begin(t)
	l.restored(t)
	for _, epsilon := range []float64{0.5, 2, 0.5} {
		q := query("SELECT noisy(count(*), 4) FROM people")
		q.Stated = capture.Stated{Epsilon: epsilon}
		l.Submit(q)
	}
	check(0.75)
	stop()
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	check(0.75)
	claims := map[float64]bool{}
	for _, a := range l.Status().Audits {
		claims[float64(a.Report.Claimed.Epsilon)] = true
	}
	if !claims[0.5] || !claims[2] {
		t.Errorf("claims %v", claims)
	}
	stop()
}
