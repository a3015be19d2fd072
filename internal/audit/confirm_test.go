package audit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// engines are DP functions that keep something in the session. Their noise has twice the scale that the claim of the
// tests needs, seen from one session to the next.
const engines = `
	CREATE FUNCTION drawn(scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS 'SELECT scale * ln((1 - random()) / (1 - random()))';
	CREATE FUNCTION kept(name text, fresh boolean, scale float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
		BEGIN
			IF fresh OR coalesce(current_setting('engine.' || name, true), '') = '' THEN
				PERFORM set_config('engine.' || name, drawn(scale)::text, false);
			END IF;
			RETURN current_setting('engine.' || name)::float8;
		END $$;
	-- a cache of answers, one for each true value
	CREATE FUNCTION cached(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS $$ SELECT round((value + kept('v' || value, false, scale)) * 2 ^ 30) / 2 ^ 30 $$;
	-- one seed a session, drawn when it begins: the same noise for both worlds
	CREATE FUNCTION seeded(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS $$ SELECT round((value + kept('seed', false, scale)) * 2 ^ 30) / 2 ^ 30 $$;
	-- noise that stays for ten queries on the average
	CREATE FUNCTION sticky(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS $$ SELECT round((value + kept('v' || value, random() < .1, scale)) * 1024) / 1024 $$;
	-- a fixed seed
	CREATE FUNCTION fixed(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS $$ SELECT value + scale * 0.3571428 $$;
	-- noise that follows from the text of the statement
	CREATE FUNCTION part(n int) RETURNS float8 LANGUAGE sql VOLATILE AS $$
		SELECT ('x' || substr(md5(replace(replace(current_query(), 'd0.', ''), 'd1.', '')), n, 8))::bit(32)::bigint / 4294967296.0 $$;
	CREATE FUNCTION textual(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS $$
		SELECT round((value + scale * ln((part(1) + 1e-9) / (part(9) + 1e-9))) * 1024) / 1024 $$`

// sessionEngines returns a rig with engines, whose audits have one session for all first trials, however busy the
// machine is: the clock is slow, so that turns do not end, and each audit has a worker, so that its session is not idle
// until it is closed.
func sessionEngines(t *testing.T, change func(*audit.Options)) *rig {
	t.Helper()
	began := time.Now()
	r := newRigOn(t, replay.Options{Connections: 1, SessionTrials: 1 << 20}, func(o *audit.Options) {
		o.Rewriter, o.Seed = anyFunction(t), rand.Uint64 // one seed would give the same comments in every turn
		o.Analysis.MaxTrials = 200                       // a session for each costs
		o.Now, o.Workers = func() time.Time { return began.Add(time.Since(began) / 10_000) }, 3
		if change != nil {
			change(o)
		}
	})
	pgtest.Exec(t, r.dsn, engines)
	return r
}

// Without audit.max_trials the budgets of the first trials and of their confirmation follow the claim.
func TestBudgetByClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.Analysis.MaxTrials = 0 })
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	r.decided(t)
	report := r.Status().Audits[0].Report
	if c := report.Confirmation; report.Verdict != analysis.Violation || c == nil || c.State != analysis.Confirmed {
		t.Errorf("%s (%s), confirmation %+v", report.Verdict, report.Reason, c)
	}
}

// What a session keeps is no violation of an engine whose answers are honest from session to session: a cache, one seed
// a session, noise that stays. The claim is twice what the engines spend, so that fresh trials show a violation with a
// probability far below 1e-6.
func TestSessionState(t *testing.T) {
	t.Parallel()
	r := sessionEngines(t, nil)
	functions := []string{"sticky"}
	if longtest.Enabled() { // their confirmations open a thousand sessions each
		functions = append(functions, "seeded", "cached")
	}
	for _, function := range functions {
		r.Submit(query("SELECT " + function + "(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	}
	r.run(t)
	for i, e := range r.decided(t) {
		name := functions[i]
		if e.Report.Verdict == analysis.Violation || e.Report.EpsilonLower > .25 { // the true one; fresh trials may show a part of it
			t.Errorf("%s: %s: %s, bound %v; want no violation", name, e.Report.Verdict, e.Report.Reason, e.Report.EpsilonLower)
		}
		if name == "sticky" { // the test for dependence sees it at once
			continue
		}
		if c := e.Report.Confirmation; c == nil || c.State != analysis.NotConfirmed || !strings.Contains(e.Report.Reason, "trials depend on each other") {
			t.Errorf("%s: %s: %s, %+v; want a suspicion that is not confirmed", name, e.Report.Verdict, e.Report.Reason, c)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) > 0 {
		t.Errorf("findings %+v, want none", r.findings)
	}
}

// A violation is confirmed on whole trials, each in a session of its own, before it is reported.
func TestConfirmedOnFreshSessions(t *testing.T) {
	t.Parallel()
	r := sessionEngines(t, nil)
	conn := pgtest.Connect(t, r.dsn)
	sessions := func() (n int) {
		if err := conn.QueryRow(t.Context(), "SELECT sessions FROM pg_stat_database WHERE datname = current_database()").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := sessions()
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	e := r.decided(t)[0]
	c := e.Report.Confirmation
	if e.Report.Verdict != analysis.Violation || c == nil || c.State != analysis.Confirmed || c.Pairs == 0 || !(e.Report.EpsilonLower > 0.5) || !(c.SuspectedLower > 0.5) ||
		e.Report.Trials.D0 != c.Pairs+c.After || e.Report.DetectedAt == nil || *e.Report.DetectedAt > c.After {
		t.Fatalf("%s: %s, %+v; want a violation that is confirmed", e.Report.Verdict, e.Report.Reason, c)
	}
	eventually.True(t, "the server counts a session for each trial", func() bool { return sessions() >= before+2*c.Pairs },
		func() any { return fmt.Sprintf("%d sessions for %d fresh pairs", sessions()-before, c.Pairs) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) != 1 || !strings.Contains(r.findings[0].Reason, "confirmed") {
		t.Errorf("findings %+v, want one", r.findings)
	}
}

// The same answer in every session is a finding without an epsilon, and what it means is the operator's choice.
func TestDeterministicPolicies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		policy   analysis.DeterministicPolicy
		verdict  analysis.Verdict
		finding  bool
		reported int
	}{
		{analysis.DeterministicViolation, analysis.Violation, true, 1},
		{analysis.DeterministicWarning, analysis.Inconclusive, true, 0},
		{analysis.DeterministicIgnore, analysis.Inconclusive, false, 0},
	} {
		t.Run(string(c.policy), func(t *testing.T) {
			t.Parallel()
			r := sessionEngines(t, func(o *audit.Options) { o.Analysis.Deterministic = c.policy })
			r.Submit(query("SELECT fixed(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
			r.run(t)
			e := r.decided(t)[0]
			if e.Report.Verdict != c.verdict || (e.Report.Deterministic != nil) != c.finding || e.Report.EpsilonLower != 0 || e.Report.DetectedAt != nil {
				t.Errorf("%s: %s, %+v, bound %v; want %s without an epsilon", e.Report.Verdict, e.Report.Reason, e.Report.Deterministic, e.Report.EpsilonLower, c.verdict)
			}
			if said := strings.Contains(fmt.Sprint(e.Report.Warnings), "deterministic"); said != c.finding {
				t.Errorf("warnings %v", e.Report.Warnings)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.findings) != c.reported {
				t.Errorf("%d findings, want %d", len(r.findings), c.reported)
			}
		})
	}
}

// Noise that follows from the text looks like a fixed seed, until the text varies: then it is honest.
func TestVaryText(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, vary := range []bool{false, true} {
		t.Run(fmt.Sprint(vary), func(t *testing.T) {
			t.Parallel()
			r := sessionEngines(t, func(o *audit.Options) { o.VaryText = vary })
			r.Submit(query("SELECT textual(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
			r.run(t)
			e := r.decided(t)[0]
			want := analysis.Violation
			if vary {
				want = analysis.Inconclusive
			}
			if e.Report.Verdict != want || e.Report.Confirmation == nil || e.Report.EpsilonLower != 0 {
				t.Errorf("%s: %s, %+v; want %s", e.Report.Verdict, e.Report.Reason, e.Report.Confirmation, want)
			}
		})
	}
}

// Copies that are made anew during a confirmation end it: nothing is reported, and the audit begins again on the new
// ones. While it lasts the status says so.
func TestConfirmationInterrupted(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	registry := prometheus.NewRegistry()
	// In real time: the turn ends, and the next one sees the new copies, also if this one began before they were made.
	r := sessionEngines(t, func(o *audit.Options) { o.Metrics, o.Now = registry, time.Now })
	conn := pgtest.Connect(t, r.dsn)
	// Fresh sessions are slow: the confirmation takes many times as long as making the copies anew.
	if _, err := conn.Exec(t.Context(), `CREATE FUNCTION slow(value float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$
		BEGIN
			IF coalesce(current_setting('engine.used', true), '') = '' THEN
				PERFORM pg_sleep(2), set_config('engine.used', 'yes', false);
			END IF;
			RETURN value;
		END $$`); err != nil {
		t.Fatal(err)
	}
	r.Submit(query("SELECT slow(noisy(count(*), 0.2)) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	e := r.wait(t, "it is unconfirmed", func(e view.Entry) bool { return e.State == view.Unconfirmed || e.State == view.Decided })
	if e.State != view.Unconfirmed || e.Verdict != string(view.Unconfirmed) || !e.Confirming || e.Report.Verdict != "" || e.Report.Confirmation == nil ||
		!strings.HasPrefix(e.Report.Reason, "unconfirmed: ") {
		t.Fatalf("%s %q: %+v; want an audit that is confirming", e.State, e.Verdict, e.Report)
	}
	pgtest.Exec(t, r.dsn, `ALTER TABLE d0.people RENAME TO old; ALTER TABLE d1.people RENAME TO old;
		CREATE TABLE d0.people AS TABLE d0.old; CREATE TABLE d1.people AS TABLE d0.old; DROP TABLE d0.old; DROP TABLE d1.old`)
	e = r.decided(t)[0]
	if e.Restarts != 1 || e.Report.Verdict != analysis.NoEvidence || e.Confirming || e.Report.Confirmation != nil {
		t.Errorf("%s after %d restarts: %s, %+v; want no evidence on worlds that are the same", e.Report.Verdict, e.Restarts, e.Report.Reason, e.Report.Confirmation)
	}
	if n := counted(t, registry, "dpwatch_confirmations_total", "abandoned"); n != 1 {
		t.Errorf("%v confirmations abandoned, want 1", n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) > 0 {
		t.Errorf("findings %+v, want none", r.findings)
	}
}

// counted returns a counter with one label.
func counted(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no %s with %s", name, label)
	return 0
}

// TestOncePerSession: an engine that gives a session something once is found, although the other trials of each session
// keep the claim: the first answer is exact; each session begins with one and the same seed.
func TestOncePerSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Rewriter, o.Analysis.MaxTrials = anyFunction(t), 4000
	})
	pgtest.Exec(t, r.dsn, `
		CREATE FUNCTION once(name text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
			BEGIN
				IF current_setting('engine.' || name, true) = 'seen' THEN RETURN false; END IF;
				PERFORM set_config('engine.' || name, 'seen', false);
				RETURN true;
			END $$;
		CREATE FUNCTION exact_first(value float8) RETURNS float8 LANGUAGE plpgsql VOLATILE
			AS $$ BEGIN IF once('answer') THEN RETURN value; END IF; RETURN noisy(value, 2); END $$;
		CREATE FUNCTION seeded_once(value float8) RETURNS float8 LANGUAGE plpgsql VOLATILE
			AS $$ BEGIN IF once('seed') THEN PERFORM setseed(0.25); END IF; RETURN noisy(value, 2); END $$`)
	for _, sql := range []string{"exact_first", "seeded_once"} {
		r.Submit(query("SELECT " + sql + "(count(*)) FROM people /*dp_epsilon='1'*/"))
	}
	r.run(t)
	for _, e := range r.decided(t) {
		if c := e.Report.Confirmation; e.Report.Verdict != analysis.Violation || c == nil || c.State != analysis.Confirmed {
			t.Errorf("%s: %s: %s, %+v", e.Summary, e.Report.Verdict, e.Report.Reason, c)
		}
	}
}
