package capture_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
)

func vocabulary() capture.Names {
	return capture.Names{
		Reaching: []string{"users", "vleak", "leak", "@~@", "Odd Name"},
		Known: []string{
			"users", "vleak", "leak", "@~@", "Odd Name", "stores", "count", "now", "lower", "int4", "money_t", "Mixed", `a"b`, "größe", "+", "=", "<>", "shops",
		},
	}
}

// TestSight: a statement is harmless only if every name is known and reaches nothing protected.
func TestSight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want capture.Sight
	}{
		{"SELECT count(*) FROM users", capture.Reaching},
		{"SELECT leak()", capture.Reaching},
		{`SELECT "leak"()`, capture.Reaching},
		{`SELECT U&"le\0061k"()`, capture.Reaching},
		{"SELECT * FROM vleak", capture.Reaching},
		{"SELECT 1 @~@ 2", capture.Reaching},
		{"SELECT 1 OPERATOR(public.@~@) 2", capture.Reaching},
		{"SELECT run('SELECT leak()')", capture.Reaching},
		{`SELECT * FROM "Odd Name"`, capture.Reaching},
		{"SELECT 1", capture.Nameless},
		{"BEGIN; SET x = leak2; COMMIT", capture.Nameless},
		{"SELECT count(*), now() FROM stores s WHERE s.id + 1 = 2 AND lower(name) <> 'x'", capture.Harmless},
		{"SELECT * FROM STORES, LATERAL shops(1) f(a)", capture.Harmless},
		{`SELECT "Mixed"(1), "größe"(2), "a""b"(3), 'x'::int4, money_t '1'`, capture.Harmless},
		{"SELECT Mixed(1)", capture.Unknown},
		{"SELECT * FROM vnew", capture.Unknown},
		{"SELECT * FROM stores, s.vnew", capture.Unknown},
		{"SELECT newfn(1) FROM stores", capture.Unknown},
		{"SELECT 1::newdomain", capture.Unknown},
		{"SELECT CAST(1 AS newdomain)", capture.Unknown},
		{"SELECT newdomain '1'", capture.Unknown},
		{"SELECT 1 @#@ 2", capture.Unknown},
		{"SELECT * FROM fnew()", capture.Unknown},
		{"SELECT pg_temp.lower('x')", capture.Unknown},
		{"INSERT INTO tnew DEFAULT VALUES", capture.Unknown},
		{"WITH vnew AS (SELECT 1) SELECT * FROM vnew, stores", capture.Harmless},
		{"CREATE TABLE stores (a int4)", capture.Unknown},
		{"ALTER TABLE stores ADD COLUMN a int4", capture.Unknown},
		{"DO $$ BEGIN NULL; END $$", capture.Unknown},
		{"SELECT 1; CREATE VIEW stores AS SELECT 1", capture.Unknown},
	} {
		if got := capture.NewFilter(vocabulary()).Sight(c.sql); got != c.want {
			t.Errorf("%s: %d, want %d", c.sql, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		names capture.Names
		want  capture.Sight
	}{
		"every statement may reach":  {capture.Names{Known: []string{"f"}}, capture.Reaching},
		"known names are not known":  {capture.Names{Reaching: []string{"users"}}, capture.Harmless},
		"nothing is protected there": {capture.Names{Reaching: []string{}, Known: []string{"f"}}, capture.Harmless},
	} {
		if got := capture.NewFilter(c.names).Sight("SELECT f(1)"); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	got := capture.NewFilter(vocabulary()).UnknownNames(`SELECT F(1), "G"(2), stores.a FROM stores, s.V, "x""y"`)
	if diff := cmp.Diff([]string{"f", "G", "v", `x"y`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSightAllocatesNothing(t *testing.T) {
	f := capture.NewFilter(vocabulary())
	if n := testing.AllocsPerRun(100, func() { f.Sight("SELECT count(*) FROM stores WHERE a = $1") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDefinitions: what was changed is unread until a reading of the catalogs that began after the transaction ended.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	var d capture.Definitions
	if (*capture.Definitions)(nil).Unread() || d.Unread() {
		t.Error("unread without a change")
	}
	before := time.Now()
	d.Begin()
	d.Read(time.Now().Add(time.Hour))
	if !d.Unread() {
		t.Error("read while the transaction is open")
	}
	d.End()
	d.Read(before)
	if !d.Unread() {
		t.Error("read by a reading that began before")
	}
	edition := d.Edition()
	d.Read(time.Now().Add(time.Second))
	d.Renamed()
	if d.Unread() || d.Edition() == edition {
		t.Error("unread after a reading")
	}
}

func BenchmarkSight(b *testing.B) {
	const sql = "SELECT count(*), bid, filler FROM stores WHERE aid = $1 AND bid IN (SELECT bid FROM shops)"
	f := capture.NewFilter(vocabulary())
	b.SetBytes(int64(len(sql)))
	for b.Loop() {
		f.Sight(sql)
	}
}
