package audit_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// infeasible returns a query that is decided in its first turn without a trial; queries with different n have the same
// shape.
func infeasible(n int) capture.Query {
	return query(fmt.Sprintf("SELECT noisy(count(*), %d) FROM people /*dp_epsilon='12'*/", n))
}

func of(user string, q capture.Query) capture.Query {
	q.User = user
	return q
}

// TestFlood: during a flood of aliases, constants and shapes by one user, the first trials of another user's query wait
// only for the turns in progress, and its violation is found.
func TestFlood(t *testing.T) {
	t.Parallel()
	const workers = 2
	var mu sync.Mutex
	var begun []string // in order of first turns, after Submit has parsed them
	r := newRig(t, func(o *audit.Options) {
		o.MaxAudits, o.Workers = 40, workers
		o.Announce = func(sql string) func() {
			mu.Lock()
			defer mu.Unlock()
			begun = append(begun, sql)
			return func() {}
		}
	})
	r.run(t)
	flooded, stop, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			for _, sql := range []string{
				fmt.Sprintf("SELECT noisy(count(*), 4) AS c0_%d FROM people p%d WHERE p%d.id > -%d /*dp_epsilon='0.5'*/", i, i, i, i),
				fmt.Sprintf("SELECT noisy(count(*)%s, 4) FROM people /*dp_epsilon='0.5'*/", strings.Repeat(" + 0", i%50)),
			} {
				r.Submit(of("hostile", query(sql)))
			}
			if i == 2000 {
				close(flooded)
			}
			select {
			case <-stop:
				return
			default:
			}
			if i > 2000 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	<-flooded
	const broken = "SELECT noisy(count(*), 0.1) AS broken FROM people /*dp_epsilon='0.5'*/"
	r.Submit(of("dashboard", query(broken)))
	mu.Lock()
	before := len(begun)
	mu.Unlock()
	var found view.Entry
	eventually.True(t, "the violation is found", func() bool {
		for _, e := range r.Status().Audits {
			if e.User == "dashboard" {
				found = e
			}
		}
		return found.Verdict == string(analysis.Violation)
	}, func() any { return r.Status() })
	mu.Lock()
	at := slices.Index(begun, broken)
	mu.Unlock()
	// When Submit returned, each worker may have chosen an audit that it had not announced yet.
	if at < 0 || at > before+workers {
		t.Errorf("%d audits began after it was submitted and before its own, want no more than the workers had chosen", at-before)
	}
	s := r.Status()
	if len(s.Audits) > 40 || s.Skipped["shape_sampled"]+s.Skipped["too_many_audits"] < 1500 {
		t.Errorf("%d audits, skipped %v", len(s.Audits), s.Skipped)
	}
	if s.Coverage.Queries < 2000 || *s.Coverage.AuditedQueries > 0.2 || s.Coverage.Owners != 2 {
		t.Errorf("coverage %+v", s.Coverage)
	}
}

// TestEviction: when all places are taken, decided audits are evicted; a statement without a place is counted, and a
// warning is logged once.
func TestEviction(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.WarnLevel)
	r := newRig(t, func(o *audit.Options) { o.MaxAudits, o.Logger = 2, zap.New(core) })
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.Submit(query("SELECT noisy(count(*), 4), 1 FROM people /*dp_epsilon='0.5'*/"))
	for range 2 {
		r.Submit(query("SELECT noisy(count(*), 4), max(id) FROM people /*dp_epsilon='0.5'*/"))
		r.Submit(query("SELECT noisy(count(*), 4), max(grp) FROM people /*dp_epsilon='0.5'*/"))
	}
	s := r.Status()
	// A query that is run a second time displaces one that was run once.
	if len(s.Audits) != 2 || s.Evicted["place"] != 2 || s.Skipped["too_many_audits"] != 2 {
		t.Errorf("%d audits, %v evicted, skipped %v; want 2, 2 and two that found no room", len(s.Audits), s.Evicted, s.Skipped)
	}
	if n := logs.FilterMessageSnippet("are not audited").Len(); n != 1 {
		t.Errorf("%d warnings, want one a minute", n)
	}
	r.run(t)
	r.decided(t)
	r.Submit(query("SELECT noisy(count(*), 4), max(id), 2 FROM people /*dp_epsilon='0.5'*/"))
	if s := r.Status(); len(s.Audits) != 2 || s.Evicted["place"] != 3 {
		t.Errorf("%d audits, %v evicted; want a decided one to give way", len(s.Audits), s.Evicted)
	}
}

// series returns the query_ids of a metric family.
func series(t *testing.T, reg *prometheus.Registry, family string) (ids []string) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == family {
			for _, m := range f.GetMetric() {
				ids = append(ids, m.GetLabel()[0].GetValue())
			}
		}
	}
	return ids
}

// TestViolationHasSeries: a violation after 115 decided queries has series, for which the others leave room; a dropped
// audit has none.
func TestViolationHasSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := newRig(t, func(o *audit.Options) { o.MaxAudits, o.PerShape, o.Metrics = 117, 200, reg })
	for i := range 115 {
		r.Submit(infeasible(i + 1))
	}
	r.Submit(query("SELECT noisy(count(*), 0.1) AS broken FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	entries := r.decided(t)
	ids := series(t, reg, "dpwatch_epsilon_lower_bound")
	if broken := entries[115].ID; !slices.Contains(ids, broken) || len(ids) != 100 {
		t.Errorf("%d series, the violation's among them: %t", len(ids), slices.Contains(ids, broken))
	}
	for i := range 20 {
		r.Submit(infeasible(1000 + i))
	}
	r.decided(t)
	for _, id := range series(t, reg, "dpwatch_epsilon_lower_bound") {
		if !slices.ContainsFunc(r.Status().Audits, func(e view.Entry) bool { return e.ID == id }) {
			t.Errorf("a series of an audit that is forgotten: %s", id)
		}
	}
}

// TestViolationRecords: violations leave half of the places to others; each keeps a record with its series, and its
// query is not reported again when it is run again.
func TestViolationRecords(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := newRig(t, func(o *audit.Options) { o.MaxAudits, o.Metrics, o.Workers = 4, reg, 1 })
	broken := func(i int) capture.Query {
		return query(fmt.Sprintf("SELECT noisy(count(*), 0.1%d) FROM people /*dp_epsilon='0.5'*/", i))
	}
	for i := range 3 {
		r.Submit(broken(i))
	}
	r.run(t)
	var s view.Status
	eventually.True(t, "a violation is recorded", func() bool { s = r.Status(); return len(s.Records) > 0 })
	if len(s.Records) != 1 || len(s.Audits) != 2 || s.Evicted["recorded"] != 1 {
		t.Fatalf("%d records, %d audits, evicted %v", len(s.Records), len(s.Audits), s.Evicted)
	}
	for i := range 3 {
		r.Submit(broken(i))
	}
	s = r.Status()
	if c := s.Records[0]; c.Seen != 2 || !(c.Lower > c.Claimed) || c.Neighbour != "d1" || len(s.Audits) != 2 {
		t.Errorf("%+v, %d audits", c, len(s.Audits))
	}
	if ids := series(t, reg, "dpwatch_epsilon_lower_bound"); len(ids) != 3 || !slices.Contains(ids, s.Records[0].ID) {
		t.Errorf("series of %v", ids)
	}
	r.mu.Lock()
	if len(r.findings) != 3 {
		t.Errorf("%d findings, want 3", len(r.findings))
	}
	r.mu.Unlock()

	// Another version of the engine may be repaired: the recorded query is audited again when it is run again, and its
	// violation stays until then.
	recorded := s.Records[0]
	r.Deploy("v2")
	for i := range 3 {
		r.Submit(broken(i))
	}
	s = r.Status()
	i := slices.IndexFunc(s.Audits, func(e view.Entry) bool { return e.ID == recorded.ID })
	if i < 0 || len(s.Records) != 0 {
		t.Fatalf("%d records, %d audits after a deploy", len(s.Records), len(s.Audits))
	}
	if e := s.Audits[i]; e.Standing == nil || e.Standing.Lower != recorded.Lower || e.Seen != 3 || !e.FirstSeen.Equal(recorded.FirstSeen) || e.Verdict != "violation" {
		t.Errorf("the audit of the recorded query: %+v, before %+v", e, recorded)
	}
	eventually.True(t, "all are violations of the new version, too", func() bool {
		s = r.Status()
		return len(s.Records) == 1 && len(s.Audits) == 2 && s.Evicted["recorded"] == 2 && s.Audits[0].State == view.Decided && s.Audits[1].State == view.Decided
	})
}

// TestMemoryBudget: decided audits use little memory, and audits beyond the budget are dropped and counted.
func TestMemoryBudget(t *testing.T) {
	t.Parallel()
	const budget = 2_000_000
	r := newRig(t, func(o *audit.Options) { o.MaxAudits, o.Memory, o.Analysis.MaxTrials = 200, budget, 2000 })
	r.Submit(query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"))
	r.run(t)
	r.decided(t)
	if m := r.Status().Memory; m.Audits > 20_000 || m.Audits <= 0 || m.Budget != budget {
		t.Errorf("memory %+v after one decided audit", m)
	}
	for i := range 150 {
		r.Submit(query(fmt.Sprintf("SELECT noisy(count(*), 4)%s FROM people /*dp_epsilon='0.5'*/", strings.Repeat(" + 0", i))))
	}
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		s := r.Status()
		if s.Memory.Audits > budget {
			t.Fatalf("%+v", s.Memory)
		}
		if s.Evicted["memory"] > 0 {
			return
		}
	}
	t.Fatalf("nothing was dropped: %+v", r.Status().Memory)
}

// TestNoVerdictBeforeDecision: an audit that waits or runs shows its state instead of a verdict, also in the report.
func TestNoVerdictBeforeDecision(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.D1 = 1_000_000, []string{"d1", "d2"} })
	r.Submit(query("SELECT noisy(count(*), 8) FROM people /*dp_epsilon='0.5'*/"))
	check := func(want string, e view.Entry) {
		t.Helper()
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if e.Verdict != want || e.Report.Verdict != "" || !strings.HasPrefix(e.Report.Reason, want+": ") ||
			strings.Contains(string(text), "no_evidence") || strings.Contains(string(text), "inconclusive") {
			t.Errorf("want %s: %s", want, text)
		}
	}
	check("queued", r.Status().Audits[0])
	r.run(t)
	check("running", r.wait(t, "trials", func(e view.Entry) bool { return e.Report.Trials.D0 > 200 }))
}

// TestRepeatedTexts: a repeated statement is recognized without being parsed, whether it is audited, turned away or
// refused.
func TestRepeatedTexts(t *testing.T) {
	r := newRig(t, func(o *audit.Options) { o.MaxAudits = 1 })
	for name, q := range map[string]capture.Query{
		"audited":     query("SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"),
		"turned away": of("x", query("SELECT noisy(count(*), 4), id FROM people /*dp_epsilon='0.5'*/")),
		"refused":     query("SELECT no_such_function(count(*)) FROM people"),
	} {
		r.Submit(q)
		if n := testing.AllocsPerRun(100, func() { r.Submit(q) }); n > 40 { // parsing takes hundreds
			t.Errorf("%s: %.0f allocations, want no parse", name, n)
		}
	}
}

// TestRareTextInAFlood: few of the texts that look alike and are turned away are parsed; a repeated one is parsed, and
// gets a place.
func TestRareTextInAFlood(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *audit.Options) { o.PerShape = 2 })
	text := func(i int) capture.Query {
		return query(fmt.Sprintf("SELECT noisy(count(*), 4) AS c%d FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i, i))
	}
	for i := range 2000 {
		r.Submit(text(i))
	}
	s := r.Status()
	if s.Skipped["shape_sampled"] != 1998 || s.Coverage.Queries < 1700 || s.Coverage.Queries > 2300 {
		t.Errorf("skipped %v, coverage %+v", s.Skipped, s.Coverage)
	}
	for range 3 {
		r.Submit(text(10_000))
	}
	if s := r.Status(); !slices.ContainsFunc(s.Audits, func(e view.Entry) bool { return e.Seen >= 2 }) {
		t.Errorf("the query that comes again has no audit: %+v", s.Audits)
	}
}

// BenchmarkSubmit measures statements that are turned away: distinct ones, which are parsed, and repeated ones.
func BenchmarkSubmit(b *testing.B) {
	for _, repeated := range []bool{false, true} {
		b.Run(fmt.Sprintf("repeated=%t", repeated), func(b *testing.B) {
			r := newRig(b, func(o *audit.Options) { o.MaxAudits = 1000 })
			i := 0
			for b.Loop() {
				if !repeated {
					i++
				}
				r.Submit(query(fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i)))
			}
		})
	}
}
