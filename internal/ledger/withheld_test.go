package ledger_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestWithheldStatements: a withheld statement is not in the table, and one that was stored is removed with the next
// write.
func TestWithheldStatements(t *testing.T) {
	t.Parallel()
	const secret = "SELECT 'secret literal'"
	_, o := open(t)
	a := ledger.Audit{Query: query(), State: "running", DataEpoch: "1", Progress: []byte("progress")}
	a.Query.Statement = []byte(secret)
	for _, withhold := range []bool{false, true} {
		o.Withhold = withhold
		e := acquire(t, o, "e")
		if err := e.Audits.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		row, ok, err := e.Audits.Find(t.Context(), a.Query.Key)
		e.Close()
		if err != nil || !ok || string(row.Progress) != "progress" {
			t.Fatalf("%v, %v, progress %q", ok, err, row.Progress)
		}
		if withheld := errors.Is(row.Query.Unreadable, ledger.ErrWithheld); withheld != withhold || (string(row.Query.Statement) == secret) == withhold {
			t.Errorf("withhold %t: %q, %v", withhold, row.Query.Statement, row.Query.Unreadable)
		}
		var found int
		if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), "SELECT count(*) FROM "+ident.Quote(o.Schema)+".queries WHERE position($1::bytea IN statement) > 0", []byte("secret")).Scan(&found); err != nil {
			t.Fatal(err)
		}
		if (found == 0) != withhold {
			t.Errorf("withhold %t: the text is in %d rows", withhold, found)
		}
	}
}

// TestWithheldInSpool: withheld queries are not written to a spool, counts are.
func TestWithheldInSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/spool"
	s, err := ledger.OpenSpool(dir, 1<<20, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Put(ledger.SpooledQueries, []byte("queries")); !errors.Is(err, ledger.ErrWithheld) {
		t.Errorf("%v, want ErrWithheld", err)
	}
	if err := s.PutBatch(ledger.Batch{Queries: []byte("queries"), Statements: 1}); !errors.Is(err, ledger.ErrWithheld) {
		t.Errorf("%v, want ErrWithheld", err)
	}
	if files, err := filepath.Glob(dir + "/*.*"); err != nil || len(files) > 0 {
		t.Errorf("files %v, %v", files, err)
	}
	if err := s.PutBatch(ledger.Batch{Term: 1, Seq: 1}); err != nil {
		t.Error(err)
	}
}
