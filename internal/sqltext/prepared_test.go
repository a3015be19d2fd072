package sqltext_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func TestPrepare(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in        string
		types     []uint32
		plain     bool
		statement string
	}{
		{"PREPARE p AS SELECT 1", nil, true, "SELECT 1"},
		{"PREPARE p(int, TEXT,double  precision) AS\n SELECT $1 -- why\n", []uint32{23, 25, 701}, true, "SELECT $1 -- why"},
		{"prepare p (varchar(10), numeric(5,2), character varying, timestamp(3) with time zone) as select", []uint32{1043, 1700, 1043, 1184}, true, "select"},
		{"PREPARE p (pg_catalog.int8) AS SELECT $1", []uint32{20}, true, "SELECT $1"},
		{"PREPARE p (unknown) AS SELECT $1", []uint32{705}, true, "SELECT $1"},
		{"PREPARE p (int[]) AS SELECT $1", nil, false, "SELECT $1"},
		{"PREPARE p (int, app.kind) AS SELECT $1", nil, false, "SELECT $1"},
		{`PREPARE p ("int") AS SELECT $1`, nil, false, "SELECT $1"},
		{"PREPARE p (float(3)) AS SELECT $1", nil, false, "SELECT $1"},
		{"PREPARE p (interval(3)) AS SELECT (1), $1", []uint32{1186}, true, "SELECT (1), $1"},
		{"PREPARE p (mine(1,(2)), int) AS SELECT $1", nil, false, "SELECT $1"},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			t.Parallel()
			want := sqltext.Effect{Action: sqltext.Prepare, Name: "p", Types: test.types, Plain: test.plain, Statement: test.statement}
			if diff := cmp.Diff(want, sqltext.Analyze(test.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestExecute checks the text of arguments for parameters of several types.
func TestExecute(t *testing.T) {
	t.Parallel()
	const inferred, int4, float8, text, numeric, boolean, date = 0, 23, 701, 25, 1700, 16, 1082
	tests := []struct {
		arg  string
		oid  uint32
		want string // "-" if the value is uncertain
	}{
		{"1", inferred, "1"},
		{"1", int4, "1"},
		{"1", float8, "1"},
		{"1", text, "1"},
		{"1", date, "-"},
		{"007", text, "7"},
		{"- 5", inferred, "-5"},
		{"+5", inferred, "5"},
		{"-0", text, "0"},
		{"0.5", inferred, "0.5"},
		{"0.50", text, "0.50"},
		{".5", numeric, "0.5"},
		{"5.", text, "5"},
		{"0.5", int4, "-"},
		{"1e-6", float8, "0.000001"},
		{"1.5e3", text, "1500"},
		{"-12.345e1", text, "-123.45"},
		{"1e999", inferred, "-"},
		{"0x10", inferred, "-"},
		{"1_000", inferred, "-"},
		{"'it''s'", text, "it's"},
		{"'x'", date, "x"},
		{"E'a\\nb'", text, "a\nb"},
		{"$$x$$", text, "x"},
		{"B'1'", inferred, "-"},
		{"NULL", int4, "NULL"},
		{"null::int", inferred, "NULL"},
		{"true", boolean, "true"},
		{"FALSE", inferred, "false"},
		{"true", int4, "-"},
		{"'1'::int", int4, "1"},
		{"' 1'::int", int4, " 1"},
		{"' 1'::int", inferred, "-"},
		{"1::float8", float8, "1"},
		{"0.5::double precision", inferred, "0.5"},
		{"0.50::float8", inferred, "-"},
		{"'0.1234567890123456'::float8", numeric, "-"},
		{"1.5::int", int4, "-"},
		{"CAST('2020-01-01' AS date)", date, "2020-01-01"},
		{"date '2020-01-01'", date, "2020-01-01"},
		{"DATE '2020-01-01'", inferred, "-"},
		{"'abc'::varchar(2)", text, "-"},
		{"'abc'::varchar", text, "abc"},
		{"'abc'::char", text, "-"},
		{"'t'::bool", inferred, "-"},
		{"'1'::int::text", text, "-"},
		{"1 + 1", int4, "-"},
		{"now()", inferred, "-"},
		{"x", inferred, "-"},
		{"$1", inferred, "-"},
		{"(1)", inferred, "1"},
		{"(('1'::int4))", int4, "1"},
		{"('1'::int)::text", text, "1"},
		{"(' 1'::int)::text", text, "-"},
		{"('t'::bool)::text", text, "-"},
		{"(1, 2)", inferred, "-"},
		{"(1", inferred, "-"},
		{"(SELECT 1)", inferred, "-"},
		{"ARRAY[1]", inferred, "-"},
		{"1, 2", inferred, "-"},
		{"", inferred, "-"},
	}
	for _, test := range tests {
		t.Run(test.arg, func(t *testing.T) {
			t.Parallel()
			e := sqltext.Analyze("EXECUTE p (" + test.arg + ")")
			if e.Action != sqltext.Execute || e.Name != "p" {
				t.Fatalf("%+v", e)
			}
			got := "-"
			if e.Plain && len(e.Args) == 1 {
				value, ok := e.Args[0].As(test.oid)
				switch {
				case ok && e.Args[0].Null:
					got = "NULL"
				case ok:
					got = value
				}
			}
			if got != test.want {
				t.Errorf("%q, want %q (%+v)", got, test.want, e)
			}
		})
	}
	if e := sqltext.Analyze("EXECUTE p"); !e.Plain || e.Args != nil {
		t.Errorf("without arguments: %+v", e)
	}
}

func TestTemporary(t *testing.T) {
	t.Parallel()
	made := func(name string) *sqltext.TempChange { return &sqltext.TempChange{Made: name} }
	unknown := &sqltext.TempChange{Made: "?"}
	for sql, want := range map[string]*sqltext.TempChange{
		"CREATE TEMP TABLE t (a int)": made("t"),
		"create /* x */ local temporary table if not exists T (a int) on commit preserve rows": made("t"),
		`CREATE TEMP TABLE "A b" (a int) ON COMMIT DROP`:                                       {Made: "A b", DropOnCommit: true},
		"CREATE TEMP TABLE t ON COMMIT DROP AS SELECT 1 AS on":                                 {Made: "t", DropOnCommit: true},
		"CREATE TEMP TABLE t ON COMMIT DELETE ROWS AS SELECT 1":                                made("t"),
		"CREATE OR REPLACE TEMP VIEW v AS SELECT 1":                                            {Made: "v", IsView: true},
		"CREATE OR REPLACE TEMP RECURSIVE VIEW v (a) AS SELECT 1":                              {Made: "v", IsView: true},
		"CREATE TEMPORARY SEQUENCE s":                                                          made("s"),
		"CREATE TABLE pg_temp.users (a int)":                                                   made("users"),
		`CREATE TABLE "pg_temp_3".users (a int)`:                                               made("users"),
		`CREATE TABLE U&"pg\005ftemp".users (a int)`:                                           unknown,
		`CREATE TEMP TABLE U&"us\0065rs" (a int)`:                                              unknown,
		"CREATE TYPE pg_temp.users AS (a int)":                                                 made("users"),
		"CREATE DOMAIN pg_temp.d AS int CHECK (VALUE > f())":                                   made("d"),
		"CREATE DOMAIN d AS pg_temp.e":                                                         unknown,
		"CREATE TABLE temp (a int)":                                                            nil,
		"CREATE TABLE t (temp int)":                                                            nil,
		"CREATE UNLOGGED TABLE t (a int)":                                                      nil,
		"CREATE OR REPLACE VIEW app.v AS SELECT 1":                                             {View: "v"},
		"CREATE VIEW v AS SELECT * FROM pg_temp.t":                                             unknown,
		"SELECT 1 INTO TEMP t":                                                                 made("t"),
		"SELECT 1 INTO LOCAL TEMPORARY TABLE t":                                                made("t"),
		"WITH x AS (SELECT 1) SELECT * INTO pg_temp.t FROM x":                                  made("t"),
		`SELECT 1 INTO U&"x" FROM temp`:                                                        unknown,
		"SELECT 1 INTO t":                                                                      nil,
		"SELECT temp FROM t":                                                                   nil,
		"SELECT 'into temp'":                                                                   nil,
		"SELECT * FROM pg_temp.users":                                                          nil,
		"EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1":                                      unknown,
		"DO $$ BEGIN CREATE TEMP TABLE t (a int) ON COMMIT DROP; END $$":                       made("t"),
		"DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE t (a int)'; END $$":                            made("t"),
		"DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE ' || t || ' (a int)'; END $$":                  unknown,
		"DO $$ BEGIN ALTER TABLE a RENAME TO users; END $$":                                    {View: "users"},
		"DO $$ BEGIN NULL; END $$":                                                             nil,
		"INSERT INTO temp VALUES (1)":                                                          nil,
		"SELECT 1 INTO":                                                                        nil,
		"CREATE":                                                                               nil,
		`DROP TABLE IF EXISTS a, pg_temp."B", public.c, d CASCADE`:                             {Dropped: []string{"a", "B", "d"}},
		"DROP VIEW v":                   {Dropped: []string{"v"}},
		"DROP TABLE public.a":           nil,
		"DROP FUNCTION a":               nil,
		"DROP TABLE":                    nil,
		"ALTER TABLE a RENAME TO users": {Old: "a", New: "users"},
		`ALTER TABLE IF EXISTS ONLY pg_temp.a RENAME TO "Users"`:                            {Old: "a", New: "Users"},
		"ALTER TABLE public.a RENAME TO users":                                              nil,
		"ALTER TABLE a RENAME COLUMN b TO c":                                                {Extended: "a"},
		"ALTER TABLE a ADD b int":                                                           {Extended: "a"},
		"ALTER VIEW public.a ALTER b SET DEFAULT 1":                                         nil,
		"CREATE CONSTRAINT TRIGGER x AFTER INSERT OR UPDATE OF b ON a EXECUTE FUNCTION f()": {Extended: "a"},
		"CREATE OR REPLACE RULE x AS ON INSERT TO pg_temp.a DO ALSO SELECT f()":             {Extended: "a"},
		"CREATE POLICY x ON a USING (f())":                                                  {Extended: "a"},
		"CREATE INDEX ON ONLY a (f(b))":                                                     {Extended: "a"},
		"CREATE TRIGGER x AFTER INSERT ON public.a EXECUTE FUNCTION f()":                    nil,
		"DO $$ BEGIN ALTER TABLE a ADD b int DEFAULT f(); END $$":                           {Extended: "a"},
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			got := withoutText(t, sql)
			if got.UnknownTemp != (want == unknown) {
				t.Errorf("unknown name: %v", got.UnknownTemp)
			}
			var changes []sqltext.TempChange
			if want != nil {
				changes = append(changes, *want)
			}
			if diff := cmp.Diff(changes, got.Temps); diff != "" && want != unknown {
				t.Error(diff)
			}
		})
	}
}

// FuzzAnalyze: no text panics, and the size of the result is bounded by the text.
func FuzzAnalyze(f *testing.F) {
	for _, sql := range []string{
		"PREPARE p (int, app.kind[]) AS SELECT $1", "EXECUTE p (1, 'x'::text, CAST(NULL AS int), date '1', -1e-5)",
		"SELECT set_config('a', 'b', true)", "CREATE TEMP TABLE t AS EXECUTE p", "SET LOCAL search_path = \"a\", b",
		"EXECUTE p (1e99, 0x1, .", "SELECT 1; /* /* */ SELECT $$;$$; CREATE FUNCTION f() BEGIN ATOMIC SELECT 1; END",
	} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		for _, statement := range sqltext.Split(sql) {
			if len(statement) == 0 || len(statement) > len(sql) {
				t.Fatalf("statement %q", statement)
			}
			e := sqltext.Analyze(statement)
			if len(e.Statement) > len(statement) || len(e.Args) > len(statement) || len(e.Types) > len(statement) {
				t.Errorf("%+v", e)
			}
			for _, a := range e.Args {
				for _, oid := range []uint32{0, 16, 20, 23, 25, 700, 701, 1700} {
					if v, ok := a.As(oid); !ok && v != "" && v != a.Value || len(v) > 4*len(statement)+200 {
						t.Errorf("%+v as %d is %q", a, oid, v)
					}
				}
			}
		}
	})
}
