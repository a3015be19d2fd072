package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRecorder: what a process records for another one is stored once though it is written twice, and removed with the
// record of its observations, once; a query during which the process ended is left out at the second end.
func TestRecorder(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	if err := e.SetProcess(t.Context(), ledger.Process{Host: "one", Configuration: "c1"}); err != nil {
		t.Fatal(err)
	}
	r, err := l.Recorder(t.Context(), "e", ledger.Process{Host: "two", Configuration: "c2"})
	if err != nil {
		t.Fatal(err)
	}
	if holder, err := r.Holder(t.Context()); err != nil || holder.Host != "one" || holder.Configuration != "c1" || r.Term() <= e.Term() {
		t.Errorf("holder %+v, term %d after %d, %v", holder, r.Term(), e.Term(), err)
	}
	if all, err := e.Recorders(t.Context(), time.Hour); err != nil || len(all) != 1 || all[0].Host != "two" {
		t.Errorf("recorders %+v, %v", all, err)
	}
	sent := ledger.Batch{Term: r.Term(), Seq: 1, Queries: []byte("queries"), Statements: 5, Skips: []ledger.Skip{{Reason: "r", Hour: time.Now(), Statements: 3}}}
	for range 2 {
		if err := r.Record(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
	}
	next := func(again bool, leftOut ...int32) ledger.Capture {
		t.Helper()
		c, found, err := e.NextCapture(t.Context())
		if err != nil || !found || string(c.Queries) != "queries" || c.Statements != 5 || c.Again != again || !slices.Equal(c.LeftOut, leftOut) {
			t.Fatalf("capture %+v, %v, %v; want again %v, left out %v", c, found, err, again, leftOut)
		}
		return c
	}
	next(false)
	c := next(true)
	if err := e.Part(t.Context(), c.ID, 3); err != nil {
		t.Fatal(err)
	}
	next(true, 3)
	for seq := range int64(2) {
		b := batch(1)
		b.Term, b.Seq, b.Captured = e.Term(), seq+1, c.ID
		if err := e.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if _, found, err := e.NextCapture(t.Context()); found || err != nil {
		t.Errorf("another capture: %v, %v", found, err)
	}
	var executions, skipped int
	if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), `SELECT (SELECT sum(executions) FROM "the ""ledger""".queries), (SELECT sum(statements) FROM "the ""ledger""".skipped WHERE reason = 'r')`).Scan(&executions, &skipped); err != nil || executions != 3 || skipped != 3 {
		t.Errorf("%d executions, %d skipped, %v; want 3 and 3", executions, skipped, err)
	}
	replaced, err := ledger.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replaced.Acquire(t.Context(), "e"); !errors.Is(err, ledger.ErrInUse) {
		t.Errorf("Acquire beside the holder: %v, want ErrInUse", err)
	}
	replaced.Close()
	e.Close()
	if replaced, err = ledger.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	second, err := replaced.Acquire(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Term() <= r.Term() {
		t.Errorf("term %d of the next holder, %d of a recorder before", second.Term(), r.Term())
	}
}

// TestCapturesFull: captured queries are bounded while nobody reads them, and what is refused can be recorded later.
func TestCapturesFull(t *testing.T) {
	t.Parallel()
	l, o := open(t)
	e := acquire(t, o, "e")
	r, err := l.Recorder(t.Context(), "e", ledger.Process{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, o.DSN, `INSERT INTO "the ""ledger""".captures (engine, content, statements) SELECT 'e', convert_to(repeat('x', 64 << 20), 'UTF8'), 7`)
	b := ledger.Batch{Term: r.Term(), Seq: 1, Queries: []byte("queries"), Statements: 1}
	if err := r.Record(t.Context(), b); !errors.Is(err, ledger.ErrCapturesFull) {
		t.Errorf("%v, want ErrCapturesFull", err)
	}
	c, found, err := e.NextCapture(t.Context())
	if err != nil || !found || c.Queries != nil || c.Statements != 7 {
		t.Fatalf("a damaged capture: %d bytes, %d statements, %v, %v", len(c.Queries), c.Statements, found, err)
	}
	if err := e.Record(t.Context(), ledger.Batch{Term: e.Term(), Seq: 1, Captured: c.ID}); err != nil {
		t.Fatal(err)
	}
	if err := r.Record(t.Context(), b); err != nil {
		t.Error(err)
	}
	if c, found, err = e.NextCapture(t.Context()); err != nil || !found || string(c.Queries) != "queries" {
		t.Errorf("capture %+v, %v, %v", c, found, err)
	}
}
