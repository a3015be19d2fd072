package audit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestLedgerFaults: while a ledger is full, read-only or lacks a right, the status says so, audits that run go on, and
// new ones wait; afterwards everything is written.
func TestLedgerFaults(t *testing.T) {
	t.Parallel()
	for code, name := range map[string]string{"53100": "disk_full", "25006": "read_only_sql_transaction", "42501": "insufficient_privilege"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedgerRig(t, nil)
			defer l.begin(t)()
			l.Submit(query(leakyQuery))
			l.decided(t)
			pgtest.Exec(t, l.ledger.DSN, `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'secret' USING ERRCODE = '`+code+`'; END $$;
				CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON dpwatch_ledger.queries EXECUTE FUNCTION fail()`)
			l.Submit(query(honestQuery))
			eventually.True(t, "the audit waits", func() bool {
				s := l.Status()
				return len(s.Audits) == 2 && s.Audits[1].State == view.Waiting && strings.Contains(s.Ledger.Trouble, "SQLSTATE "+code+" ("+name+")")
			}, func() any { return l.Status() })
			if s := l.Status(); strings.Contains(s.Ledger.Trouble, "secret") || s.Audits[0].State != view.Decided {
				t.Errorf("trouble %q, the audit before is %s", s.Ledger.Trouble, s.Audits[0].State)
			}
			pgtest.Exec(t, l.ledger.DSN, "DROP TRIGGER fail ON dpwatch_ledger.queries")
			l.decided(t)
			eventually.True(t, "everything is written", func() bool {
				s := l.Status().Ledger
				return s.Trouble == "" && s.Unsaved == 0 && s.Waiting == 0
			}, func() any { return l.Status() })
			l.counts(t, 2, 2)
		})
	}
}

// counts checks the number of audits with a verdict and that of executions in the ledger.
func (l *ledgerRig) counts(t *testing.T, decided, executions int) {
	t.Helper()
	var gotDecided, gotExecutions int
	err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), `SELECT (SELECT count(*) FROM dpwatch_ledger.audits WHERE state = 'decided'),
		(SELECT sum(executions) FROM dpwatch_ledger.query_users)`).Scan(&gotDecided, &gotExecutions)
	if err != nil || gotDecided != decided || gotExecutions != executions {
		t.Errorf("%d audits, %d executions, %v; want %d and %d", gotDecided, gotExecutions, err, decided, executions)
	}
}

// TestOneLineOfLog: that the ledger is away is one line of the log, however many audits wait for it, and that it is
// back is one.
func TestOneLineOfLog(t *testing.T) {
	t.Parallel()
	const queries = 30
	core, logs := observer.New(zap.InfoLevel)
	l := newLedgerRig(t, func(o *audit.Options) {
		o.Analysis.MaxTrials, o.MaxAudits, o.PerShape, o.RetryAfter = 60, queries, queries, 50*time.Millisecond
	})
	l.restart(t, func(o *audit.Options) { o.Logger = zap.New(core) })
	defer l.begin(t)()
	l.restored(t)
	logs.TakeAll() // first: the ledger may be used at any time
	pgtest.Exec(t, l.ledger.DSN, "ALTER SCHEMA dpwatch_ledger RENAME TO away")
	for i := range queries {
		l.Submit(query(fmt.Sprintf("SELECT noisy(count(*), 4) FROM people WHERE id <> %d /*dp_epsilon='0.5'*/", i)))
	}
	retried := time.Now().Add(time.Second) // many attempts
	eventually.True(t, "every audit waits", func() bool {
		audits := l.Status().Audits
		for _, a := range audits {
			if a.State != view.Waiting {
				return false
			}
		}
		return len(audits) == queries && time.Now().After(retried)
	}, func() any { return l.Status() })
	pgtest.Exec(t, l.ledger.DSN, "ALTER SCHEMA away RENAME TO dpwatch_ledger")
	l.decided(t)
	said := map[string]int{}
	for _, line := range logs.All() {
		said[line.Message]++
	}
	if len(said) != 2 || said["the ledger cannot be written: evidence is kept in memory and written later, new audits wait"] != 1 || said["the ledger can be written again"] != 1 {
		t.Errorf("the log has %v", said)
	}
}

// TestStatementOfAnotherVersion: an audit whose statement cannot be read any more is not restored, with a reason in the
// log, and goes on with its evidence when its query is captured again.
func TestStatementOfAnotherVersion(t *testing.T) {
	t.Parallel()
	l := newLedgerRig(t, func(o *audit.Options) { o.Analysis.MaxTrials, o.TurnTrials = 600, 1 })
	stop := l.begin(t)
	l.Submit(query(longQuery))
	eventually.True(t, "trials", func() bool { return l.Status().Audits[0].Report.Trials.D0 > 50 }, func() any { return l.Status() })
	stop()
	pgtest.Exec(t, l.ledger.DSN, `UPDATE dpwatch_ledger.queries SET statement = '\xff00'`)
	core, logs := observer.New(zap.WarnLevel)
	l.restart(t, func(o *audit.Options) { o.Logger = zap.New(core) })
	defer l.begin(t)()
	l.restored(t)
	if n, said := len(l.Status().Audits), logs.FilterMessageSnippet("an audit is not restored").Len(); n != 0 || said != 1 {
		t.Errorf("%d audits, the log says it %d times; want none, and once", n, said)
	}
	l.Submit(query(longQuery))
	l.whole(t, 600)
}

// whole checks that the only audit is decided without evidence against the claim, after the given number of pairs of
// all processes together.
func (l *ledgerRig) whole(t *testing.T, pairs int) {
	t.Helper()
	if e := l.decided(t)[0]; e.Report.Verdict != analysis.NoEvidence || e.Report.Trials.D0 != pairs || e.Restarts != 0 {
		t.Errorf("%s after %d pairs and %d restarts", e.Report.Verdict, e.Report.Trials.D0, e.Restarts)
	}
	var begun int
	if err := pgtest.Connect(t, l.ledger.DSN).QueryRow(t.Context(), "SELECT processes FROM dpwatch_ledger.audits").Scan(&begun); err != nil || begun != 1 {
		t.Errorf("the evidence began %d times, %v; want once", begun, err)
	}
}

// TestClockSet: an audit goes on although the clock is set back or ahead by days between two processes.
func TestClockSet(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]time.Duration{"back": 300 * time.Hour, "ahead": -300 * time.Hour} { // of the clock of the first process
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var set time.Duration
			l := newLedgerRig(t, func(o *audit.Options) {
				o.Analysis.MaxTrials, o.TurnTrials, o.Repeat = 600, 1, 1000*time.Hour
				o.Now = func() time.Time { return time.Now().Round(0).Add(set) }
			})
			set = offset
			stop := l.begin(t)
			q := query(longQuery)
			q.Completed = time.Now().Add(set)
			l.Submit(q)
			eventually.True(t, "trials", func() bool { return l.Status().Audits[0].Report.Trials.D0 > 50 }, func() any { return l.Status() })
			stop()
			set = 0
			l.restart(t, nil)
			defer l.begin(t)()
			l.restored(t)
			l.Submit(query(longQuery))
			l.whole(t, 600)
			eventually.True(t, "everything is written", func() bool { s := l.Status().Ledger; return s.Trouble == "" && s.Unsaved == 0 && s.Waiting == 0 }, func() any { return l.Status() })
			l.counts(t, 1, 2)
		})
	}
}
