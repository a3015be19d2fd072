package audit_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// patience bounds waits and only ends a test that hangs.
const patience = 5 * time.Minute

// rig is an auditor on real copies: d0 has 40 people, d1 lacks one, d2 lacks the only one in group 9. An honest query
// fails a test at most once in 10,000 audits for a tight claim, and far less often here, where claims are twice the
// actual epsilon.
type rig struct {
	*audit.Auditor
	mu       sync.Mutex // guards findings
	findings []alert.Finding
	dsn      string
}

func newRig(t testing.TB, change func(*audit.Options)) *rig {
	t.Helper()
	return newRigOn(t, replay.Options{}, change)
}

// newRigOn is newRig with options for replays.
func newRigOn(t testing.TB, options replay.Options, change func(*audit.Options)) *rig {
	t.Helper()
	r := &rig{dsn: pgtest.Database(t)}
	pgtest.Exec(t, r.dsn, `
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024';
		CREATE SCHEMA d0; CREATE TABLE d0.people AS SELECT g AS id, CASE g WHEN 40 THEN 9 ELSE g % 3 END AS grp FROM generate_series(1, 40) g;
		CREATE SCHEMA d1; CREATE TABLE d1.people AS SELECT * FROM d0.people WHERE id <> 1;
		CREATE SCHEMA d2; CREATE TABLE d2.people AS SELECT * FROM d0.people WHERE id <> 40`)
	rewriter, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}}, AllowFunctions: []string{"noisy"},
		Claims: rewrite.ClaimRules{TrustComment: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	options.DSN, options.SearchPath, options.StatementTimeout, options.ConnectTimeout = r.dsn, []string{"public"}, time.Minute, time.Minute
	options.MaxRows, options.MaxBytes = 1000, 1<<20
	player, err := replay.New(options)
	if err != nil {
		t.Fatal(err)
	}
	opt := audit.Options{
		Rewriter: rewriter, Player: step.Replays(player), D0: "d0", D1: []string{"d1"}, Tables: []string{"people"},
		Analysis: analysis.Options{Confidence: 0.999999, MaxTrials: 400}, BatchTrials: 20, TurnTrials: 100, Workers: 2,
		MaxAudits: 10, RetryAfter: 50 * time.Millisecond, CloseTimeout: patience,
		OnFinding: func(f alert.Finding) {
			r.mu.Lock()
			r.findings = append(r.findings, f)
			r.mu.Unlock()
		},
		Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Now: time.Now, Seed: func() uint64 { return 1 },
	}
	if change != nil {
		change(&opt)
	}
	if r.Auditor, err = audit.New(opt); err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs the auditor until the test ends.
func (r *rig) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

func query(sql string) capture.Query {
	return capture.Query{SQL: sql, User: "ann", Database: "shop", Completed: time.Now()}
}

// decided waits until every audit is decided.
func (r *rig) decided(t *testing.T) []view.Entry {
	t.Helper()
	var entries []view.Entry
	eventually.True(t, "all audits are decided", func() bool {
		entries = r.Status().Audits
		return !slices.ContainsFunc(entries, func(e view.Entry) bool { return e.State != view.Decided })
	}, func() any { return r.Status() })
	return entries
}

func TestAuditsEachQueryOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	leaky := query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/")
	for range 3 {
		r.Submit(leaky)
	}
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 4) FROM people"))
	r.Submit(query("SELECT 1"))
	r.Submit(query("DELETE FROM people"))
	r.Submit(query("not SQL"))
	r.run(t)
	entries := r.decided(t)
	if len(entries) != 3 {
		t.Fatalf("%d audits, want 3", len(entries))
	}
	for i, want := range []struct {
		verdict analysis.Verdict
		seen    uint64
	}{{analysis.Violation, 3}, {analysis.NoEvidence, 1}, {analysis.Inconclusive, 1}} {
		if e := entries[i]; e.Report.Verdict != want.verdict || e.Seen != want.seen {
			t.Errorf("audit %d: %s seen %d, want %s seen %d", i, e.Report.Verdict, e.Seen, want.verdict, want.seen)
		}
	}
	if reason := entries[2].Report.Reason; reason != "no claim" {
		t.Errorf("without a claim the reason is %q", reason)
	}
	s := r.Status()
	for _, reason := range []string{"no_protected_table", "not_select", "unparseable"} {
		if s.Skipped[reason] != 1 {
			t.Errorf("skipped %v; want one %s", s.Skipped, reason)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.findings) != 1 || r.findings[0].ID != entries[0].ID || r.findings[0].SQL != "" || !(r.findings[0].Lower > 0.5) {
		t.Errorf("findings %+v; want one, of the first audit, without SQL, above the claim", r.findings)
	}
	if strings.Contains(entries[0].Summary, "0.2") {
		t.Errorf("the summary %q shows a literal", entries[0].Summary)
	}
}

// The same query at two engines is two audits: the claim may be correct for one and wrong for the other.
func TestRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Route = func(q capture.Query) string { return map[uint64]string{1: "orders", 2: "people"}[q.SessionID] }
	})
	q := query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/")
	for _, session := range []uint64{1, 2, 1} {
		q.SessionID = session
		r.Submit(q)
	}
	r.run(t)
	entries := r.decided(t)
	if len(entries) != 2 || entries[0].Key == entries[1].Key || entries[0].ID == entries[1].ID || entries[0].Seen != 2 {
		t.Fatalf("audits %+v; want two, the first seen twice", entries)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]string{}
	for _, f := range r.findings {
		told[f.Route] = f.ID
	}
	if len(r.findings) != 2 || told["orders"] != entries[0].ID || told["people"] != entries[1].ID {
		t.Errorf("findings %+v; want one for each route", r.findings)
	}
}

// With several neighbours the worst one is reported.
func TestSeveralNeighbours(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.D1 = []string{"d1", "d2"} })
	// Without person 40 group 9 does not exist; without person 1 a count changes by one, which the noise covers.
	r.Submit(query("SELECT grp, noisy(count(*), 5) FROM people GROUP BY grp /*dp_epsilon='1'*/"))
	r.run(t)
	e := r.decided(t)[0]
	if e.Report.Verdict != analysis.Violation || e.Neighbour != "d2" {
		t.Errorf("%s on %s, want a violation on d2", e.Report.Verdict, e.Neighbour)
	}
	if len(e.Neighbours) != 2 || e.Neighbours[0].Schema != "d1" || e.Neighbours[0].Verdict == analysis.Violation || e.Neighbours[1].Lower != e.Report.EpsilonLower {
		t.Errorf("neighbours %+v, want d1 without a violation and d2 as in the report", e.Neighbours)
	}
}

// The order of rows is evidence if the query sorts by more than its group keys. Otherwise the server chooses it.
func TestOrderOfRows(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	// Without person 1 another one of three equal groups is the smallest. The noise covers the counts.
	r.Submit(query("SELECT grp, noisy(count(*), 5) FROM people GROUP BY grp ORDER BY count(*), grp /*dp_epsilon='1'*/"))
	r.Submit(query("SELECT grp, noisy(n, 5) FROM (SELECT grp, count(*) AS n FROM people GROUP BY grp ORDER BY 2, 1) AS q /*dp_epsilon='1'*/"))
	r.run(t)
	entries := r.decided(t)
	if e := entries[0]; e.Report.Verdict != analysis.Violation || e.Report.Event == nil || e.Report.Event.Kind != analysis.OrderEvent {
		t.Errorf("sorted by the true count: %s: %s, %+v; want a violation by the order", e.Report.Verdict, e.Report.Reason, e.Report.Event)
	}
	if e := entries[1]; e.Report.Verdict != analysis.NoEvidence {
		t.Errorf("not sorted: %s: %s, %+v; want no evidence", e.Report.Verdict, e.Report.Reason, e.Report.Event)
	}
}

// With Family, each audit with a claim has its share of the error rate, in the order in which they begin.
func TestFamily(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) {
		o.Family, o.D1, o.Analysis.Confidence, o.Workers = true, []string{"d1", "d2"}, 0.99, 1 // they begin in order
	})
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people"))
	r.Submit(query("SELECT noisy(count(*), 0.3) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	entries := r.decided(t)
	for i, share := range []float64{multiplicity.Share(1), 1, multiplicity.Share(2)} {
		if got, want := entries[i].Report.Confidence, 1-.01/2*share; math.Abs(got-want) > 1e-12 {
			t.Errorf("audit %d: confidence %.12f, want %.12f", i, got, want)
		}
	}
	if v := entries[2].Report.Verdict; v != analysis.Violation {
		t.Errorf("the second audit with a claim: %s, want a violation", v)
	}
}

func TestInfeasibleBudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Submit(query("SELECT noisy(count(*), 1) FROM people /*dp_epsilon='12'*/"))
	r.run(t)
	e := r.decided(t)[0]
	if e.State != view.Decided || e.Report.Verdict != analysis.Inconclusive || !strings.Contains(e.Trouble, "cannot be refuted") {
		t.Errorf("%s %s %q; want an audit that is refused as infeasible", e.State, e.Report.Verdict, e.Trouble)
	}
}

// A query that cannot be replayed waits, shows the reason, and continues when it can.
func TestWaitsForTheShadow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	conn := pgtest.Connect(t, r.dsn)
	if _, err := conn.Exec(t.Context(), "ALTER TABLE d1.people RENAME TO gone"); err != nil {
		t.Fatal(err)
	}
	r.Submit(query("SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	var s view.Status
	eventually.True(t, "the audit waits", func() bool {
		s = r.Status()
		e := s.Audits[0]
		return e.State == view.Waiting && strings.Contains(e.Trouble, "create the copies") && s.Shadow != ""
	})
	if s.Audits[0].State != view.Waiting || s.Audits[0].Trouble == "" || s.Faults == 0 || !strings.Contains(s.Shadow, "d1.people") {
		t.Errorf("status %+v; want the trouble told", s)
	}
	if _, err := conn.Exec(t.Context(), "ALTER TABLE d1.gone RENAME TO people"); err != nil {
		t.Fatal(err)
	}
	if e := r.decided(t)[0]; e.Report.Verdict != analysis.Violation || e.Trouble != "" {
		t.Errorf("after the repair: %s %q, want a violation", e.Report.Verdict, e.Trouble)
	}
}
