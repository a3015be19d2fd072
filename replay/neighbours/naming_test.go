package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestSameNames: views, partitions, sequences, statistics and functions that have one name in several schemas are
// copied under different names, and references to them stay correct.
func TestSameNames(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "a.orders", "b.invoices", "a.listed")
	run(t, o.Source, "CREATE SCHEMA a; CREATE SCHEMA b", "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 9)",
		"CREATE SEQUENCE a.number START 100; CREATE SEQUENCE b.number START 900",
		`CREATE TABLE a.orders (uid int REFERENCES u, n int DEFAULT nextval('a.number')) PARTITION BY LIST (n);
		CREATE TABLE b.invoices (uid int REFERENCES u, n int DEFAULT nextval('b.number')) PARTITION BY LIST (n);
		CREATE TABLE a.rest PARTITION OF a.orders DEFAULT; CREATE TABLE b.rest PARTITION OF b.invoices DEFAULT;
		CREATE STATISTICS a.stat ON uid, n FROM a.orders; CREATE STATISTICS b.stat ON uid, n FROM b.invoices;
		INSERT INTO a.orders (uid) SELECT id FROM u; INSERT INTO b.invoices (uid) SELECT id FROM u, generate_series(1, 2);`,
		`CREATE FUNCTION a.total(who int) RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC SELECT sum(n) FROM a.orders WHERE uid = who; END;
		CREATE FUNCTION b.total(who int) RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC SELECT sum(n) FROM b.rest WHERE uid = who; END`,
		`CREATE VIEW b.listed AS SELECT rest.uid, rest.n, b.total(rest.uid) AS t FROM b.rest JOIN public.u ON u.id = rest.uid;
		CREATE VIEW a.listed AS SELECT uid, n, a.total(uid) AS t FROM a.rest;
		CREATE VIEW a.monthly AS SELECT uid, count(*) AS c FROM a.rest GROUP BY uid; CREATE VIEW b.monthly AS SELECT listed.uid, sum(listed.n) AS s FROM b.listed GROUP BY listed.uid;
		CREATE VIEW b.both_of AS SELECT monthly.uid, monthly.c, m.s, listed.t FROM a.monthly JOIN b.monthly m USING (uid) JOIN b.listed ON listed.uid = m.uid, a.rest WHERE rest.uid = m.uid;
		CREATE MATERIALIZED VIEW b.kept AS SELECT monthly.*, monthly.uid::text AS x FROM b.monthly`)
	notes := &[]string{}
	o.Note = func(s string) { *notes = append(*notes, s) }
	create(t, o)
	verified(t, o)
	for source, copied := range map[string]string{
		"a.rest": "rest", "b.rest": "rest_2", "a.listed": "listed", "b.listed": "listed_2", "a.monthly": "monthly", "b.monthly": "monthly_2", "b.both_of": "both_of", "b.kept": "kept",
	} {
		query := func(name string) string { return "SELECT x::text FROM " + name + " x ORDER BY 1" }
		if want, got := lines(t, o.Source, query(source)), lines(t, o.Target, query("d0."+copied)); !slices.Equal(want, got) && source != "b.kept" || len(got) == 0 {
			t.Errorf("%s is copied as %s: got %q, want %q", source, copied, got, want)
		}
	}
	if got := lines(t, o.Target, "SELECT last_value::text FROM d0.number UNION ALL SELECT last_value::text FROM d1.number_2"); !slices.Equal(got, []string{"108", "917"}) {
		t.Errorf("sequences are at %v", got)
	}
	for _, want := range []string{
		"view b.listed is named listed_2 in the copies, where a.listed has its name", "table b.rest is named rest_2", "sequence b.number is named number_2", "function b.total is named total_2",
	} {
		if !slices.ContainsFunc(*notes, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("notes %q do not hold %q", *notes, want)
		}
	}
	o.Protected = append(o.Protected, table("b.listed"))
	if _, err := neighbours.Refresh(t.Context(), o); err == nil || !strings.Contains(err.Error(), "b.listed and a.listed have one name, and a neighbour schema holds one relation of a name: rename one, or leave one out of privacy.protected") {
		t.Errorf("two listed views of one name: %v", err)
	}
}
