package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// ledgerRig is a rig whose auditors keep a ledger.
type ledgerRig struct {
	*rig
	opt    audit.Options
	ledger ledger.Options
}

func newLedgerRig(t *testing.T, change func(*audit.Options)) *ledgerRig {
	t.Helper()
	return newLedgerRigOn(t, replay.Options{}, change)
}

// newLedgerRigOn is newLedgerRig with options for replays.
func newLedgerRigOn(t *testing.T, options replay.Options, change func(*audit.Options)) *ledgerRig {
	t.Helper()
	l := &ledgerRig{ledger: ledger.Options{DSN: pgtest.Database(t), Connections: 2}}
	l.rig = newRigOn(t, options, func(o *audit.Options) {
		o.Ledger = func(ctx context.Context) (*ledger.Engine, error) {
			if _, _, err := ledger.Migrate(ctx, l.ledger); err != nil {
				return nil, err
			}
			store, err := ledger.Open(ctx, l.ledger)
			if err != nil {
				return nil, err
			}
			return store.Acquire(ctx, "engine")
		}
		if change != nil {
			change(o)
		}
		l.opt = *o
	})
	return l
}

// begin runs an auditor until the returned function is called.
func (l *ledgerRig) begin(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// restart replaces the auditor by a new one with the same ledger, as a new process would.
func (l *ledgerRig) restart(t *testing.T, change func(*audit.Options)) {
	t.Helper()
	opt := l.opt
	opt.Metrics = prometheus.NewRegistry()
	opt.OnFinding = func(f alert.Finding) {
		l.mu.Lock()
		l.findings = append(l.findings, f)
		l.mu.Unlock()
	}
	if change != nil {
		change(&opt)
	}
	var err error
	if l.Auditor, err = audit.New(opt); err != nil {
		t.Fatal(err)
	}
}

func (l *ledgerRig) restored(t *testing.T) {
	t.Helper()
	eventually.True(t, "the audits are restored", func() bool { return l.Status().Ledger.Restored }, func() any { return l.Status() })
}

const (
	leakyQuery  = "SELECT noisy(count(*), 0.2) FROM people /*dp_epsilon='0.5'*/"
	honestQuery = "SELECT noisy(count(*), 4) FROM people /*dp_epsilon='0.5'*/"
	longQuery   = "SELECT noisy(count(*), 5) FROM people /*dp_epsilon='0.4'*/"
)

// TestRestart: a new process has the verdicts and bounds of the one before it, goes on with the evidence of the audit
// that was running and the seed of its order, and reports no violation twice.
func TestRestart(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Analysis.MaxTrials, o.TurnTrials = 1500, 1
		o.D1, o.Seed = []string{"d1", "d2"}, rand.Uint64
	})
	stop := l.begin(t)
	for _, sql := range []string{leakyQuery, honestQuery, "SELECT 1", leakyQuery} {
		l.Submit(query(sql))
	}
	before := l.decided(t)
	l.Submit(query(longQuery))
	eventually.True(t, "trials", func() bool { return l.Status().Audits[len(before)].Report.Trials.D0 > 100 }, func() any { return l.Status() })
	stop()
	before = l.Status().Audits
	seed := l.seed(t, before[len(before)-1].Key)
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	after := l.Status().Audits
	if len(after) != len(before) {
		t.Fatalf("%d audits after the restart, %d before", len(after), len(before))
	}
	for i := range before {
		b, a := before[i], after[i]
		if a.ID != b.ID || a.State != b.State && b.State == view.Decided || a.Seen != b.Seen || !a.FirstSeen.Equal(b.FirstSeen.Truncate(time.Microsecond)) {
			t.Errorf("audit %d: %s %s seen %d, before %s %s seen %d", i, a.ID, a.State, a.Seen, b.ID, b.State, b.Seen)
		}
		if b.State == view.Decided {
			if diff := cmp.Diff(jsonOf(t, b.Report), jsonOf(t, a.Report)); diff != "" {
				t.Errorf("audit %d: the report changed (-before +after):\n%s", i, diff)
			}
		} else if a.Report.Trials.D0 < b.Report.Trials.D0 {
			t.Errorf("audit %d has %d trials, before the restart it had %d", i, a.Report.Trials.D0, b.Report.Trials.D0)
		}
	}
	l.Submit(query(leakyQuery))
	l.decided(t)
	stop()
	if now := l.seed(t, before[len(before)-1].Key); now != seed || seed == 0 || seed >= 1<<53 {
		t.Errorf("the seed is %d, before the restart %d", now, seed)
	}
	if s := l.Status(); len(s.Audits) != len(before) || s.Audits[0].Seen != before[0].Seen+1 || s.Ledger.Unsaved != 0 || s.Ledger.Waiting != 0 {
		t.Errorf("%d audits, the first seen %d times, ledger %+v", len(s.Audits), s.Audits[0].Seen, s.Ledger)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]int{} // both neighbours may be convicted by the same round
	for _, f := range l.findings {
		if found[f.Neighbour]++; f.ID != before[0].ID || found[f.Neighbour] > 1 {
			t.Errorf("findings %+v; want one for each neighbour, of the first audit", l.findings)
		}
	}
	if len(found) == 0 {
		t.Error("no finding")
	}
	l.history(t, before[0].Key, "decided violation")
}

// seed returns the stored seed of an audit while no auditor runs.
func (l *ledgerRig) seed(t *testing.T, key string) uint64 {
	t.Helper()
	store, err := ledger.Open(t.Context(), l.ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	engine, err := store.Acquire(t.Context(), "engine")
	if err != nil {
		t.Fatal(err)
	}
	row, found, err := engine.Audits.Find(t.Context(), key)
	if err != nil || !found {
		t.Fatal(found, err)
	}
	figures, err := saved.ReadFigures(&row)
	if err != nil {
		t.Fatal(err)
	}
	return figures.Seed
}

func jsonOf(t *testing.T, r *analysis.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// history checks the last event of an audit in the ledger, and that the counts are those of the status.
func (l *ledgerRig) history(t *testing.T, key, want string) {
	t.Helper()
	conn := pgtest.Connect(t, l.ledger.DSN)
	var last string
	var executions int
	err := conn.QueryRow(t.Context(), `SELECT (SELECT state || ' ' || verdict FROM dpwatch_ledger.events WHERE query = q.id ORDER BY id DESC LIMIT 1),
		executions FROM dpwatch_ledger.queries q WHERE key = $1`, key).Scan(&last, &executions)
	if err != nil || last != want || executions != 3 {
		t.Errorf("last event %q, %d executions, %v; want %q and 3", last, executions, err, want)
	}
}

// TestErrorRateAcrossRestarts: every beginning of evidence counts, in whatever process.
func TestErrorRateAcrossRestarts(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Family = true })
	var rates []float64
	for i, sql := range []string{honestQuery, longQuery} {
		if i > 0 {
			l.restart(t, nil)
		}
		stop := l.begin(t)
		l.Submit(query(sql))
		l.restored(t)
		entries := l.decided(t)
		rates = append(rates, 1-entries[len(entries)-1].Report.Confidence)
		stop()
	}
	if !(rates[1] < 0.9*rates[0]) {
		t.Errorf("error rates %g: the second audit must count as the second of the fleet", rates)
	}
}

// TestDamagedProgress: a state that cannot be read is set aside and the audit starts again; the others go on.
func TestDamagedProgress(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, nil)
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	l.Submit(query(honestQuery))
	l.decided(t)
	stop()
	pgtest.Exec(t, l.ledger.DSN, `UPDATE dpwatch_ledger.audits SET progress = set_byte(progress, 40, get_byte(progress, 40) # 1) WHERE verdict = 'violation'`)
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	entries := l.decided(t)
	stop()
	if len(entries) != 2 || entries[0].Report.Verdict != analysis.Violation || entries[1].Report.Verdict != analysis.NoEvidence {
		t.Errorf("%+v; want a violation, found again, and no evidence", entries)
	}
	var reason string
	err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), `SELECT reason FROM dpwatch_ledger.set_aside`).Scan(&reason)
	if err != nil || !strings.Contains(reason, "checksum") {
		t.Errorf("set aside for %q, %v", reason, err)
	}
}

// TestLedgerAway: while the ledger is away, running audits go on and new ones wait; when it is back, everything is
// written.
func TestLedgerAway(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, nil)
	stop := l.begin(t)
	defer stop()
	l.Submit(query(leakyQuery))
	l.decided(t)
	rename := func(from, to string) {
		pgtest.Exec(t, l.ledger.DSN, "ALTER SCHEMA "+from+" RENAME TO "+to)
	}
	rename("dpwatch_ledger", "away")
	l.Submit(query(honestQuery))
	eventually.True(t, "the audit waits", func() bool {
		s := l.Status()
		return s.Audits[1].State == view.Waiting && strings.Contains(s.Ledger.Trouble, "SQLSTATE 42P01 (undefined_table)") && !strings.Contains(s.Ledger.Trouble, "engines")
	}, func() any { return l.Status() })
	rename("away", "dpwatch_ledger")
	l.decided(t)
	eventually.True(t, "everything is written", func() bool {
		s := l.Status().Ledger
		return s.Trouble == "" && s.Unsaved == 0 && s.Waiting == 0
	}, func() any { return l.Status() })
	l.counts(t, 2, 2)
}

// TestOneAuditorPerEngine: a second auditor of an engine is refused, and one that was replaced cannot write.
func TestOneAuditorPerEngine(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, nil)
	first, err := l.opt.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.opt.Ledger(t.Context()); !errors.Is(err, ledger.ErrInUse) {
		t.Errorf("a second auditor: %v, want ErrInUse", err)
	}
	pgtest.Exec(t, l.ledger.DSN, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	var second *ledger.Engine
	eventually.True(t, "the lock is free", func() bool {
		second, err = l.opt.Ledger(t.Context())
		return err == nil
	}, func() any { return err })
	if err := first.Record(t.Context(), ledger.Batch{Term: first.Term(), Seq: 1}); !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("a write of the first auditor: %v, want ErrReplaced", err)
	}
	if err := second.Record(t.Context(), ledger.Batch{Term: second.Term(), Seq: 1}); err != nil {
		t.Error(err)
	}
	first.Close()
	second.Close()
}

// TestRepeat: a decided query is audited again when it is run again after Options.Repeat, also in another process, and
// an engine that turned bad meanwhile is found. A violation is not repeated.
func TestRepeat(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	var later atomic.Int64
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Repeat = time.Hour
		o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	})
	stop := l.begin(t)
	l.Submit(query(honestQuery))
	l.Submit(query(leakyQuery))
	l.decided(t)
	pgtest.Exec(t, l.dsn, `CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
		AS 'SELECT round((value + scale / 20 * ln((1 - random()) / (1 - random()))) * 1024) / 1024'`)
	l.Submit(query(honestQuery))
	if e := l.Status().Audits[0]; e.State != view.Decided || e.Repeats != 0 {
		t.Errorf("%s after %d repeats: repeated before its time", e.State, e.Repeats)
	}
	stop()
	later.Store(int64(2 * time.Hour))
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	l.Submit(query(honestQuery))
	l.Submit(query(leakyQuery))
	entries := l.decided(t)
	stop()
	if e := entries[0]; e.Report.Verdict != analysis.Violation || e.Repeats != 1 || e.Previous != analysis.NoEvidence {
		t.Errorf("%s after %d repeats, before it was %q; want a violation in the first repeat, no evidence before", e.Report.Verdict, e.Repeats, e.Previous)
	}
	if e := entries[1]; e.Report.Verdict != analysis.Violation || e.Repeats != 0 {
		t.Errorf("%s after %d repeats; want the violation that was there", e.Report.Verdict, e.Repeats)
	}
	l.history(t, entries[0].Key, "decided violation")
}

// TestSuspected: late among many audits, evidence that would convict a single audit is a suspicion without a finding,
// and trials go on until it convicts among all. A suspicion is not missed: at an epsilon of three times the claim it
// takes hundreds of pairs more to a violation.
func TestSuspected(t *testing.T) {
	t.Parallel()
	gate := throttle.New(throttle.Options{}) // holds the trials while the test looks at the suspicion
	var hold sync.Once
	core, _ := observer.New(zap.InfoLevel)
	l := newLedgerRigOn(t, replay.Options{Pace: gate}, func(o *audit.Options) {
		o.Family, o.Analysis.Confidence, o.Analysis.MaxTrials, o.TurnTrials = true, 0.95, 100_000, 1
		o.Gate = gate
		o.Logger = zap.New(core, zap.Hooks(func(e zapcore.Entry) error {
			if strings.HasPrefix(e.Message, "a violation is suspected") {
				hold.Do(func() { gate.Pause(true) })
			}
			return nil
		}))
	})
	if _, _, err := ledger.Migrate(t.Context(), l.ledger); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, l.ledger.DSN, "UPDATE dpwatch_ledger.fleet SET begun = 1000")
	stop := l.begin(t)
	defer func() { stop() }()
	l.Submit(query("SELECT noisy(count(*), 0.7) FROM people /*dp_epsilon='0.5'*/"))
	e := l.wait(t, "a suspicion", func(e view.Entry) bool { return e.State == view.Unconfirmed || e.State == view.Decided })
	stop()
	if e.State != view.Unconfirmed || len(l.findings) > 0 {
		t.Fatalf("%s: %s, with %d findings; want a suspicion without a finding", e.State, e.Report.Reason, len(l.findings))
	}
	l.restart(t, nil)
	stop = l.begin(t)
	l.restored(t)
	if e := l.Status().Audits[0]; e.State != view.Unconfirmed {
		t.Errorf("%s in the next process, want a suspicion", e.State)
	}
	gate.Pause(false)
	if e := l.wait(t, "a verdict", func(e view.Entry) bool { return e.State == view.Decided }); e.Verdict != string(analysis.Violation) {
		t.Errorf("%s: %s, want a violation", e.Verdict, e.Report.Reason)
	}
}
