package neighbours_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestPathOfPartitionedTable: a declared path applies to partitions, sub-partitions and children with foreign keys of
// their own.
func TestPathOfPartitionedTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, tables string }{
		{"partitions", `CREATE TABLE p (id int, uid int, rid int, d int) PARTITION BY LIST (d);
			CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
			ALTER TABLE p1 ADD FOREIGN KEY (rid) REFERENCES r; ALTER TABLE p2 ADD FOREIGN KEY (rid) REFERENCES r;
			INSERT INTO p SELECT g, 1 + g % 3, 1 + g % 2, 1 + g % 2 FROM generate_series(1, 12) g`},
		{"sub-partitions", `CREATE TABLE p (id int, uid int, rid int, d int) PARTITION BY LIST (d);
			CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2) PARTITION BY LIST (id);
			CREATE TABLE p20 PARTITION OF p2 DEFAULT; ALTER TABLE p20 ADD FOREIGN KEY (rid) REFERENCES r NOT VALID;
			ALTER TABLE p1 ADD FOREIGN KEY (rid) REFERENCES r DEFERRABLE INITIALLY DEFERRED;
			INSERT INTO p SELECT g, 1 + g % 3, 1 + g % 2, 1 + g % 2 FROM generate_series(1, 12) g`},
		{"inheritance", `CREATE TABLE p (id int, uid int, rid int, d int); CREATE TABLE p1 () INHERITS (p); CREATE TABLE p2 () INHERITS (p1);
			ALTER TABLE p1 ADD FOREIGN KEY (rid) REFERENCES r; ALTER TABLE p2 ADD FOREIGN KEY (rid) REFERENCES r;
			INSERT INTO p1 SELECT g, 1 + g % 3, 1 + g % 2, 1 FROM generate_series(1, 6) g;
			INSERT INTO p2 SELECT g, 1 + g % 3, 1 + g % 2, 2 FROM generate_series(7, 12) g`},
		{"a key of the whole table", `CREATE TABLE p (id int, uid int, rid int REFERENCES r, d int) PARTITION BY LIST (d);
			CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
			INSERT INTO p SELECT g, 1 + g % 3, 1 + g % 2, 1 + g % 2 FROM generate_series(1, 12) g`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.r", "public.p")
			run(t, o.Source, "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 3)",
				"CREATE TABLE r (id int PRIMARY KEY, uid int REFERENCES u); INSERT INTO r VALUES (1, 1), (2, 2), (3, 3)", tc.tables)
			o.Paths = []neighbours.Path{{Table: table("public.p"), Columns: []string{"uid"}, To: table("public.u")}}
			notes := &[]string{}
			o.Note = func(s string) { *notes = append(*notes, s) }
			create(t, o)
			verified(t, o)
			_, members, err := neighbours.List(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			want := lines(t, o.Source, "SELECT p::text FROM p WHERE uid <> $1::text::int ORDER BY id", members[0].Key[0])
			if got := lines(t, o.Target, "SELECT p::text FROM d1.p ORDER BY id"); !slices.Equal(got, want) {
				t.Errorf("unit %s: got %q, want %q", members[0].Key[0], got, want)
			}
			told := slices.ContainsFunc(*notes, func(s string) bool { return strings.Contains(s, "foreign key p1_rid_fkey of public.p1 is no path") })
			if told != (tc.name != "a key of the whole table") {
				t.Errorf("notes %q", *notes)
			}
		})
	}
}

// TestPathOfPartition: a path declared for one partition applies only to its rows; the keys of the table apply to the
// others.
func TestPathOfPartition(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.p")
	run(t, o.Source, "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 3)",
		`CREATE TABLE p (id int, uid int REFERENCES u, other int, d int) PARTITION BY LIST (d);
		CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
		INSERT INTO p SELECT g, 1 + g % 3, 1 + (g + 1) % 3, 1 + g % 2 FROM generate_series(1, 12) g`)
	o.Paths = []neighbours.Path{{Table: table("public.p2"), Columns: []string{"other"}, To: table("public.u")}, {Table: table("public.p2"), Columns: []string{"uid"}, Ignore: "tested"}}
	create(t, o)
	verified(t, o)
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := lines(t, o.Source, "SELECT p::text FROM p WHERE CASE d WHEN 1 THEN uid ELSE other END <> $1::text::int ORDER BY id", members[0].Key[0])
	if got := lines(t, o.Target, "SELECT p::text FROM d1.p ORDER BY id"); !slices.Equal(got, want) {
		t.Errorf("unit %s: got %q, want %q", members[0].Key[0], got, want)
	}
}

// TestUnitBelowAnother: the unit's table may be a child, or a partition, of a table whose foreign keys are paths for
// other rows.
func TestUnitBelowAnother(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.base")
	run(t, o.Source, "CREATE TABLE base (id int PRIMARY KEY, boss int)", "CREATE TABLE u (PRIMARY KEY (id)) INHERITS (base)",
		"ALTER TABLE base ADD FOREIGN KEY (boss) REFERENCES u", "INSERT INTO u SELECT g, 1 FROM generate_series(1, 3) g",
		"INSERT INTO base SELECT g, 1 + g % 3 FROM generate_series(4, 9) g")
	o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}}
	create(t, o)
	if d := verified(t, o)[0]; d.Removed["u"] != 1 || d.Removed["base"] != 2 {
		t.Errorf("removed %v", d.Removed)
	}
}

// TestPartitionAlone: a partition that is listed without its parent has the parent's foreign keys.
func TestPartitionAlone(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.p1")
	run(t, o.Source, "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 3)",
		`CREATE TABLE p (uid int REFERENCES u, d int) PARTITION BY LIST (d); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
		INSERT INTO p SELECT 1 + g % 3, 1 FROM generate_series(1, 12) g`)
	create(t, o)
	if d := verified(t, o)[0]; d.Removed["p1"] != 4 {
		t.Errorf("removed %v", d.Removed)
	}
}

// TestPrunedPartition: rows are found in a DEFAULT partition that the server wrongly prunes for any condition on a
// table above it.
func TestPrunedPartition(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.p")
	run(t, o.Source, "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 3)",
		`CREATE TABLE p (a int, d int, uid int REFERENCES u, other int) PARTITION BY LIST (a);
		CREATE TABLE p_a PARTITION OF p FOR VALUES IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) PARTITION BY LIST (d);
		CREATE TABLE p_a_a PARTITION OF p_a FOR VALUES IN (0); CREATE TABLE p_a_b PARTITION OF p_a DEFAULT PARTITION BY RANGE (a);
		CREATE TABLE p_a_b_a PARTITION OF p_a_b FOR VALUES FROM (4) TO (8); CREATE TABLE p_a_b_b PARTITION OF p_a_b DEFAULT;
		INSERT INTO p SELECT g, g / 4, 1 + g % 3, NULL FROM generate_series(0, 11) g`)
	// The foreign key applies to all rows except those of p_a_a: a condition on the table.
	o.Paths = []neighbours.Path{{Table: table("public.p_a_a"), Columns: []string{"other"}, To: table("public.u")}, {Table: table("public.p_a_a"), Columns: []string{"uid"}, Ignore: "tested"}}
	create(t, o)
	d := verified(t, o)[0]
	if got := lines(t, o.Target, "SELECT count(*)::text FROM d1.p_a_b_b")[0]; d.Removed["p_a_b_b"] < 1 || got != strconv.FormatInt(4-d.Removed["p_a_b_b"], 10) || d.Removed["p_a_a"] != 0 {
		t.Errorf("removed %v, left %s", d.Removed, got)
	}
}

// TestPrunedUnits: units in such a partition are counted, and if neighbours are views, in which replays would miss its
// rows, verify reports it. A server that does not prune the partition misses no rows.
func TestPrunedUnits(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u")
	run(t, o.Source, `CREATE TABLE u (id int, d int) PARTITION BY LIST (id);
		CREATE TABLE u_a PARTITION OF u FOR VALUES IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) PARTITION BY LIST (d);
		CREATE TABLE u_a_b PARTITION OF u_a DEFAULT PARTITION BY RANGE (id);
		CREATE TABLE u_a_b_a PARTITION OF u_a_b FOR VALUES FROM (4) TO (8); CREATE TABLE u_a_b_b PARTITION OF u_a_b DEFAULT;
		INSERT INTO u SELECT g, 1 FROM generate_series(8, 11) g`)
	create(t, o)
	if d := verified(t, o)[0]; d.Removed["u_a_b_b"] != 1 {
		t.Errorf("removed %v", d.Removed)
	}
	o.Method = neighbours.View
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	misses := lines(t, o.Target, "SELECT ((SELECT count(*) FROM d1.u) < (SELECT count(*) FROM d1.u_a_b_b))::text")[0] == "true"
	if found := slices.Contains(report.Pairs[0].Faults, "table u: its view has other rows than those of its partitions"); found != misses || report.OK() == misses {
		t.Errorf("the server misses rows: %t; faults %q and %q", misses, report.Faults, report.Pairs[0].Faults)
	}
}

// TestVerifyViewsOfParents: in a neighbour of views, each table has a view of its own, and verify checks all of them.
func TestVerifyViewsOfParents(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.u", "public.p", "public.c")
	run(t, o.Source, "CREATE TABLE u (id int PRIMARY KEY); INSERT INTO u SELECT generate_series(1, 3)",
		`CREATE TABLE p (id int, uid int REFERENCES u, x json) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (7);
		CREATE TABLE p2 PARTITION OF p DEFAULT; INSERT INTO p SELECT g, 1 + g % 3, '{}' FROM generate_series(1, 12) g`,
		`CREATE TABLE c (id int, uid int REFERENCES u, x json); CREATE TABLE c1 (y int) INHERITS (c);
		INSERT INTO c SELECT g, 1 + g % 3, '{}' FROM generate_series(1, 6) g; INSERT INTO c1 SELECT g, 1 + g % 3, '{}', g FROM generate_series(7, 12) g`)
	o.Method = neighbours.View
	create(t, o)
	verified(t, o)
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p", "p2", "c", "c1"} {
		view := strings.TrimSuffix(lines(t, o.Target, "SELECT pg_get_viewdef($1::text::regclass)", "d1."+name)[0], ";")
		for _, changed := range []string{
			"SELECT * FROM (" + view + ") AS q WHERE id <> (SELECT max(id) FROM (" + view + ") AS m)",
			"SELECT * FROM (" + view + ") AS q UNION ALL (SELECT * FROM d0." + name + " WHERE uid = " + members[0].Key[0] + " LIMIT 1)",
		} {
			run(t, o.Target, "CREATE OR REPLACE VIEW d1."+name+" AS "+changed)
			report, err := neighbours.Verify(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Pairs[0].Faults, func(f string) bool { return strings.HasPrefix(f, "table "+name+":") }) {
				t.Errorf("%s: faults %q", changed, report.Pairs[0].Faults)
			}
			run(t, o.Target, "CREATE OR REPLACE VIEW d1."+name+" AS "+view)
		}
	}
	verified(t, o)
}
