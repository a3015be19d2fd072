package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func protection(t *testing.T, form ledger.Form, keys ...byte) *ledger.Protection {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, bytes.Repeat([]byte{k}, ledger.KeySize))
	}
	p, err := ledger.NewProtection(form, all...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProtection: an encrypted statement is not in the table, and is read with any of the keys, with another one not. A
// statement that was stored as it is can still be read, and one that is withheld is removed with the next write.
func TestProtection(t *testing.T) {
	t.Parallel()
	const secret = "SELECT 'secret literal'"
	_, o := open(t)
	a := ledger.Audit{Query: query(), State: "running", DataEpoch: "1", Progress: []byte("progress")}
	a.Query.Statement = []byte(secret)
	for _, step := range []struct {
		name        string
		write, read *ledger.Protection
		plain       bool // the table has the text
		err         error
	}{
		{"plain", nil, protection(t, ledger.Encrypted, 1), true, nil},
		{"encrypted", protection(t, ledger.Encrypted, 1), protection(t, ledger.Encrypted, 1), false, nil},
		{"a new key", protection(t, ledger.Encrypted, 1), protection(t, ledger.Encrypted, 2, 1), false, nil},
		{"plain again", protection(t, ledger.Encrypted, 1), protection(t, ledger.Plain, 1), false, nil},
		{"another key", protection(t, ledger.Encrypted, 1), protection(t, ledger.Encrypted, 2), false, ledger.ErrNoKey},
		{"no key", protection(t, ledger.Encrypted, 1), nil, false, ledger.ErrNoKey},
		{"withheld", protection(t, ledger.Withheld), protection(t, ledger.Withheld), false, ledger.ErrWithheld},
	} {
		o.Statements = step.write
		e := acquire(t, o, "e")
		if err := e.Save(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		e.Close()
		var found int
		if err := pgtest.Connect(t, o.DSN).QueryRow(t.Context(), "SELECT count(*) FROM "+ident.Quote(o.Schema)+".queries WHERE position($1::bytea IN statement) > 0", []byte("secret")).Scan(&found); err != nil {
			t.Fatal(err)
		}
		if (found == 1) != step.plain {
			t.Errorf("%s: the text is in %d rows", step.name, found)
		}
		o.Statements = step.read
		l, err := ledger.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		row, ok, err := l.Find(t.Context(), "e", a.Query.Key)
		l.Close()
		if err != nil || !ok || !errors.Is(row.Query.Unreadable, step.err) || (row.Query.Statement != nil) != (step.err == nil) {
			t.Fatalf("%s: %q, %v, %v, %v", step.name, row.Query.Statement, row.Query.Unreadable, ok, err)
		}
		if step.err == nil && string(row.Query.Statement) != secret {
			t.Errorf("%s: %q", step.name, row.Query.Statement)
		}
		if string(row.Progress) != "progress" {
			t.Errorf("%s: progress %q", step.name, row.Progress)
		}
	}
}

// TestProtectionMoved: an encrypted statement can only be read where it was written, and not after a change.
func TestProtectionMoved(t *testing.T) {
	t.Parallel()
	_, o := open(t)
	o.Statements = protection(t, ledger.Encrypted, 1)
	e := acquire(t, o, "e")
	for _, k := range []string{"k1", "k2"} {
		q := query()
		q.Key, q.Statement = k, []byte("statement of "+k)
		if err := e.Save(t.Context(), ledger.Audit{Query: q, State: "running", DataEpoch: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	table := ident.Quote(o.Schema) + ".queries"
	pgtest.Exec(t, o.DSN, "UPDATE "+table+" SET statement = (SELECT statement FROM "+table+" WHERE key = 'k1') WHERE key = 'k2'; "+
		"UPDATE "+table+" SET statement = set_byte(statement, length(statement) - 1, 255 - get_byte(statement, length(statement) - 1)) WHERE key = 'k1'")
	for _, k := range []string{"k1", "k2"} {
		row, ok, err := e.Find(t.Context(), k)
		if err != nil || !ok || !errors.Is(row.Query.Unreadable, ledger.ErrState) || row.Query.Statement != nil {
			t.Errorf("%s: %q, %v, %v, %v; want an error", k, row.Query.Statement, row.Query.Unreadable, ok, err)
		}
	}
}

// TestProtectionOfSpool: captured queries are encrypted on disk, or not written; counts are written.
func TestProtectionOfSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/spool"
	s, err := ledger.OpenSpool(dir, 1<<20, protection(t, ledger.Encrypted, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(ledger.SpooledQueries, []byte("queries")); err != nil {
		t.Fatal(err)
	}
	if _, content, err := s.First(ledger.SpooledQueries); err != nil || string(content) != "queries" {
		t.Errorf("%q, %v", content, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = ledger.OpenSpool(dir, 1<<20, protection(t, ledger.Withheld)); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, _, err := s.First(ledger.SpooledQueries); !errors.Is(err, ledger.ErrNoKey) || !strings.Contains(err.Error(), ".damaged") {
		t.Errorf("%v, want ErrNoKey and the new name", err)
	}
	if err := s.Put(ledger.SpooledQueries, []byte("queries")); !errors.Is(err, ledger.ErrWithheld) {
		t.Errorf("%v, want ErrWithheld", err)
	}
	if err := s.PutBatch(ledger.Batch{Term: 1, Seq: 1}); err != nil {
		t.Error(err)
	}
}

// TestProtectionOfSpooledBatch: captured queries in a batch, which a process that does not audit the engine spools, are
// encrypted on disk, or not written.
func TestProtectionOfSpooledBatch(t *testing.T) {
	t.Parallel()
	batch := ledger.Batch{Queries: []byte("queries"), Statements: 1}
	for _, c := range []struct {
		form ledger.Form
		err  error
	}{{ledger.Encrypted, nil}, {ledger.Withheld, ledger.ErrWithheld}} {
		dir := t.TempDir() + "/spool"
		s, err := ledger.OpenSpool(dir, 1<<20, protection(t, c.form, 1))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.PutBatch(batch); !errors.Is(err, c.err) {
			t.Fatalf("%v, want %v", err, c.err)
		}
		files, err := filepath.Glob(dir + "/*.batch")
		if err != nil || (len(files) == 1) != (c.err == nil) {
			t.Fatalf("%d files, %v", len(files), err)
		}
		if c.err != nil {
			continue
		}
		stored, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := ledger.Unseal(stored); err == nil {
			t.Errorf("without the key, the file holds %s", plain)
		}
		if _, b, err := s.FirstBatch(); err != nil || string(b.Queries) != "queries" {
			t.Errorf("%q, %v", b.Queries, err)
		}
	}
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	if _, err := ledger.NewProtection(ledger.Encrypted); err == nil {
		t.Error("encrypted without a key")
	}
	if _, err := ledger.NewProtection(ledger.Plain, make([]byte, 16)); err == nil {
		t.Error("a key of 16 bytes")
	}
}
