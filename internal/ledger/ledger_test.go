package ledger_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// open returns a new ledger and its database.
func open(t testing.TB) (*ledger.Ledger, ledger.Options) {
	t.Helper()
	o := ledger.Options{DSN: pgtest.Database(t), Schema: `the "ledger"`, Connections: 4}
	if _, err := ledger.Open(t.Context(), o); !errors.Is(err, ledger.ErrNotMigrated) {
		t.Fatalf("Open before Migrate: %v, want ErrNotMigrated", err)
	}
	var all sync.WaitGroup
	for range 3 { // several processes start at once
		all.Go(func() {
			if _, to, err := ledger.Migrate(t.Context(), o); err != nil || to == 0 {
				t.Errorf("Migrate: version %d, %v", to, err)
			}
		})
	}
	all.Wait()
	l, err := ledger.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, o
}

func TestNewerLedger(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	pgtest.Exec(t, o.DSN, `INSERT INTO "the ""ledger""".migrations (version_id, is_applied) VALUES (999, true)`)
	if _, err := ledger.Open(t.Context(), o); !errors.Is(err, ledger.ErrNewer) {
		t.Errorf("Open: %v, want ErrNewer", err)
	}
	if _, _, err := ledger.Migrate(t.Context(), o); !errors.Is(err, ledger.ErrNewer) {
		t.Errorf("Migrate: %v, want ErrNewer", err)
	}
}

// acquire returns an engine of a ledger of its own, which is closed with the test.
func acquire(t testing.TB, o ledger.Options, name string) *ledger.Engine {
	t.Helper()
	l, err := ledger.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.Acquire(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func query() ledger.Query {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return ledger.Query{
		Key: "k", Shape: "s", Fingerprint: "f", Summary: "SELECT noisy(?)", Statement: []byte{0, 1}, Claim: &ledger.Claim{Epsilon: .5, Source: "rule"},
		FirstSeen: at, LastSeen: at.Add(time.Minute),
	}
}

func batch(seq int64) ledger.Batch {
	return ledger.Batch{
		Term: 1, Seq: seq,
		Sightings: []ledger.Sighting{{Query: query(), User: "ann", Database: "db", Application: "psql", Executions: 3}},
		Skips:     []ledger.Skip{{Reason: "side_effects", Hour: query().FirstSeen, Statements: 7}},
	}
}

// A batch that arrives twice, or late, is counted once; engines have numbers of their own.
func TestRecordCountsOnce(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	first, other := acquire(t, o, "e"), acquire(t, o, "another")
	for _, b := range []ledger.Batch{batch(1), batch(1), batch(2), batch(1)} {
		if err := first.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Record(t.Context(), batch(1)); err != nil {
		t.Fatal(err)
	}
	var got [4]int
	err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT (SELECT executions FROM "the ""ledger""".queries WHERE engine = 'e'), (SELECT sum(executions) FROM "the ""ledger""".query_users),
		(SELECT sum(executions) FROM "the ""ledger""".query_hours), (SELECT sum(statements) FROM "the ""ledger""".skipped)`).Scan(&got[0], &got[1], &got[2], &got[3])
	if want := [4]int{6, 9, 9, 21}; err != nil || got != want {
		t.Errorf("executions and skipped statements %v, want %v (%v)", got, want, err)
	}
}

// Names that PostgreSQL cannot store do not keep a batch from being stored: clients choose the name of their
// application.
func TestRecordInvalidNames(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	b := batch(1)
	b.Term = e.Term()
	b.Sightings[0].Application, b.Sightings[0].User = "latin1 \xe9", "a\x00b"
	if err := e.Record(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var names string
	if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT username || application FROM "the ""ledger""".query_users`).Scan(&names); err != nil || names != "a\uFFFDblatin1 \uFFFD" {
		t.Errorf("%q, %v", names, err)
	}
}

// A batch of a process that never had the ledger is identified by its file.
func TestRecordOfFile(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	for _, file := range []string{"1", "1", "2"} {
		b := batch(1)
		b.Term, b.File = 0, file
		if err := e.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT sum(executions) FROM "the ""ledger""".query_hours`).Scan(&n); err != nil || n != 6 {
		t.Errorf("%d executions of two files, want 6 (%v)", n, err)
	}
}

// TestResolved: a violation stays with its audit when the evidence begins again, and the event "resolved" is written
// once, when it is gone. The label of a deploy is kept.
func TestResolved(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e := acquire(t, o, "e")
	a := ledger.Audit{Query: query(), State: "decided", Verdict: "violation", EngineEpoch: "one", Violation: []byte(`{"engine_epoch": "one"}`), Progress: []byte{1}}
	again := a
	again.Verdict, again.EngineEpoch = "", "two"
	good := ledger.Audit{Query: query(), State: "decided", Verdict: "no_evidence", Processes: 1, EngineEpoch: "two", Resolution: "resolved by two"}
	if err := e.Save(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Begin(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if found, ok, err := e.Find(t.Context(), "k"); err != nil || !ok || string(found.Violation) != string(a.Violation) || found.EngineEpoch != "two" || found.Progress != nil {
		t.Errorf("%+v, %v, %v after the beginning", found, ok, err)
	}
	for range 2 {
		if err := e.Save(t.Context(), good); err != nil {
			t.Fatal(err)
		}
	}
	var history string
	err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', state, verdict, reason), ', ' ORDER BY id) FROM "the ""ledger""".events`).Scan(&history)
	if want := "decided violation , decided no_evidence , resolved no_evidence resolved by two"; err != nil || history != want {
		t.Errorf("history %q, want %q (%v)", history, want, err)
	}
	if err := e.SetLabel(t.Context(), "v2"); err != nil {
		t.Fatal(err)
	}
	if label, err := e.Label(t.Context()); label != "v2" || err != nil {
		t.Errorf("label %q, %v", label, err)
	}
}

// TestAudits: what is saved is found; the beginnings of evidence are counted for each audit and for the fleet; every
// change of state is in the history once; an audit whose restore did not complete twice is left out.
func TestAudits(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	e, other := acquire(t, o, "e"), acquire(t, o, "another")
	a := ledger.Audit{Query: query(), State: "running", DataEpoch: "1"}
	for i, e := range []*ledger.Engine{e, other, e} {
		processes, fleet, err := e.Begin(t.Context(), a)
		if err != nil || processes != 1+i/2 || fleet != (ledger.Fleet{Begun: i + 1}) {
			t.Errorf("beginning %d: %d of the audit, fleet %+v, %v", i, processes, fleet, err)
		}
	}
	lower := 0.7
	a.Verdict, a.State, a.Trials, a.Lower, a.Processes, a.Progress, a.Reason = "violation", "decided", 60, &lower, 2, []byte("progress"), "epsilon is above"
	for range 2 {
		if err := e.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	found, ok, err := e.Find(t.Context(), "k")
	want := a
	want.Reason, want.Query.Claim = "", nil // not read
	if diff := cmp.Diff(want, found); !ok || err != nil || diff != "" {
		t.Errorf("found %t, %v: %s", ok, err, diff)
	}
	if _, ok, err := e.Find(t.Context(), "another key"); ok || err != nil {
		t.Errorf("an audit that does not exist: %t, %v", ok, err)
	}
	var events int
	if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT count(*) FROM "the ""ledger""".events`).Scan(&events); err != nil || events != 1 {
		t.Errorf("%d events, %v; want 1", events, err)
	}
	for i := range 3 {
		if keys, poisoned, err := e.Keys(t.Context(), 10); err != nil || len(keys) != b2i(i < 2) || len(poisoned) != b2i(i == 2) {
			t.Errorf("after %d attempts: keys %v, poisoned %v, %v", i, keys, poisoned, err)
		}
		if err := e.Parsing(t.Context(), "k", false); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.SetAside(t.Context(), "k", "damaged"); err != nil {
		t.Fatal(err)
	}
	if found, _, err := e.Find(t.Context(), "k"); found.Progress != nil || err != nil {
		t.Errorf("progress that was set aside: %q, %v", found.Progress, err)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestCheckHidden(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	pgtest.Exec(t, o.DSN, `CREATE ROLE ledger_replay`)
	t.Cleanup(func() { pgtest.Exec(t, o.DSN, `DROP OWNED BY ledger_replay; DROP ROLE ledger_replay`) })
	if err := l.CheckHidden(t.Context(), "ledger_replay"); err != nil {
		t.Errorf("a role without rights: %v", err)
	}
	pgtest.Exec(t, o.DSN, `GRANT USAGE ON SCHEMA "the ""ledger""" TO ledger_replay`)
	if err := l.CheckHidden(t.Context(), "ledger_replay"); err == nil || !strings.Contains(err.Error(), `REVOKE USAGE ON SCHEMA "the ""ledger"""`) {
		t.Errorf("a role with USAGE: %v", err)
	}
}

func TestSealed(t *testing.T) {
	t.Parallel()
	state := bytes.Repeat([]byte("state "), 1000)
	sealed := ledger.Seal(state)
	if got, err := ledger.Unseal(sealed); err != nil || !bytes.Equal(got, state) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	for i := range sealed {
		damaged := bytes.Clone(sealed)
		damaged[i] ^= 1
		if _, err := ledger.Unseal(damaged); !errors.Is(err, ledger.ErrState) {
			t.Errorf("byte %d is wrong: %v, want ErrState", i, err)
		}
		if _, err := ledger.Unseal(sealed[:i]); !errors.Is(err, ledger.ErrState) {
			t.Errorf("the first %d bytes: %v, want ErrState", i, err)
		}
	}
}
