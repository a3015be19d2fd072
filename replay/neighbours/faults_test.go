package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestFaults: errors name the remedy, and only empty records are left in the shadow database.
func TestFaults(t *testing.T) {
	t.Parallel()
	for i, tc := range []struct {
		name   string
		change func(t *testing.T, o *neighbours.Options)
		want   string
	}{
		{"no source", func(_ *testing.T, o *neighbours.Options) { o.Source = "" }, "set neighbours.source"},
		{"unit that does not exist", func(_ *testing.T, o *neighbours.Options) {
			o.Unit.Table = table("public.people")
			o.Protected = append(o.Protected, o.Unit.Table)
		}, "table public.people does not exist in the source database"},
		{"unit that is not protected", func(_ *testing.T, o *neighbours.Options) { o.Unit.Table = table("public.people") }, "list it in privacy.protected"},
		{"key that does not exist", func(_ *testing.T, o *neighbours.Options) { o.Unit.Key = []string{"nr"} }, `table public.users has no column "nr"`},
		{
			"table without a path", func(_ *testing.T, o *neighbours.Options) { o.Paths = o.Paths[1:] },
			"table public.visits belongs to no privacy unit: no foreign key leads from it to public.users; write under privacy.paths: - {table: public.visits, columns: [column], to: public.users, on: [id]}",
		},
		{"cyclic keys that lead nowhere", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "ALTER TABLE posts DROP CONSTRAINT posts_user_id_fkey")
		}, "table public.threads belongs to no privacy unit: its foreign keys lead only to tables without a path"},
		{"path from a column that does not exist", func(_ *testing.T, o *neighbours.Options) { o.Paths[0].Columns = []string{"x"} }, `privacy.paths[0]: table public.visits has no column "x"`},
		{"too many units", func(_ *testing.T, o *neighbours.Options) {
			o.Choose = []neighbours.Choice{{Rule: neighbours.Random, K: 21}}
			o.D1 = nil
			for i := range 21 {
				o.D1 = append(o.D1, "d1_"+string(rune('a'+i)))
			}
		}, "neighbours.choose requests 21 units, and table public.users holds 20"},
		{"rule on a column that does not exist", func(_ *testing.T, o *neighbours.Options) {
			o.Choose[1] = neighbours.Choice{Rule: neighbours.Largest, K: 1, Columns: []neighbours.Column{{Table: table("public.visits"), Name: "x"}}}
		}, `neighbours.choose[1]: table public.visits has no column "x"`},
		{"measure that is no number", func(_ *testing.T, o *neighbours.Options) {
			o.Choose[1] = neighbours.Choice{Rule: neighbours.Largest, K: 1, Columns: []neighbours.Column{{Table: table("public.visits"), Name: "page"}}}
		}, "column page of type text is not a number"},
		{"role of neighbours.grant that does not exist", func(_ *testing.T, o *neighbours.Options) { o.Grant = []string{"nbr_not_there"} }, "role nbr_not_there of neighbours.grant does not exist"},
		{"schema that is somebody's", func(t *testing.T, o *neighbours.Options) { run(t, o.Target, "CREATE SCHEMA d1_2") }, "schema d1_2 of the shadow database was not created by `dpwatch neighbours`"},
		{"one schema twice", func(_ *testing.T, o *neighbours.Options) { o.D1[1] = "d0" }, `the schema "d0" has two roles`},
		{"listed view that reads another table", func(_ *testing.T, o *neighbours.Options) {
			o.Protected = append(o.Protected, table("public.left_out"))
		}, "view left_out reads public.secrets, which is neither in privacy.protected nor in privacy.public"},
		{"two tables of one name", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE TABLE app.visits (id int REFERENCES public.users)")
			o.Protected = append(o.Protected, table("app.visits"))
		}, "have one name"},
		{"another type of the same name", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Target, "CREATE TYPE public.mood AS ENUM ('happy', 'sad')")
		}, "type public.mood of the shadow database differs from the source's"},
		{"extension that is missing", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE TYPE public.span", "CREATE FUNCTION span_in(cstring) RETURNS public.span LANGUAGE internal IMMUTABLE STRICT AS 'int4in'",
				"CREATE FUNCTION span_out(public.span) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'int4out'",
				"CREATE TYPE public.span (INPUT = span_in, OUTPUT = span_out, LIKE = int4)", "ALTER TABLE visits ADD span public.span")
		}, "create it in the shadow database first"},
		{"row security that hides rows", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "ALTER TABLE visits ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON visits USING (ms < 5)",
				"CREATE ROLE nbr_reader LOGIN PASSWORD 'x'", "GRANT SELECT ON ALL TABLES IN SCHEMA public, app TO nbr_reader",
				"GRANT SELECT ON ALL SEQUENCES IN SCHEMA public, app TO nbr_reader", "GRANT USAGE ON SCHEMA app TO nbr_reader")
			o.Source = as(t, o.Source, "nbr_reader")
		}, "row-level security"},
		{"no right to read", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE ROLE nbr_nobody LOGIN PASSWORD 'x'")
			o.Source = as(t, o.Source, "nbr_nobody")
		}, "run there: GRANT USAGE ON SCHEMA app TO nbr_nobody; GRANT SELECT ON app.\"Order Items\", app.orders,"},
		{"no right to create schemas", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE ROLE nbr_guest LOGIN PASSWORD 'x'")
			o.Target = as(t, o.Target, "nbr_guest")
		}, "run there: GRANT CREATE ON DATABASE"},
		{"records of another version", func(t *testing.T, o *neighbours.Options) {
			create(t, *o)
			run(t, o.Target, "UPDATE dpwatch.neighbour_version SET version = 99")
		}, "are of version 99, and this dpwatch supports version 1"},
		{"nothing to refresh", nil, "the shadow database holds no set to refresh: use create"},
		{"view method on a child with its own path", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "ALTER TABLE contracts ADD signer int REFERENCES users", "ALTER TABLE documents ADD FOREIGN KEY (user_id) REFERENCES users")
			o.Paths = o.Paths[:1]
			o.Method = neighbours.View
		}, "use neighbours.method copy"},
		{"extreme without bounds", func(_ *testing.T, o *neighbours.Options) { o.Relation = neighbours.Extreme }, "relation extreme needs neighbours.measures"},
		{"server that is not there", func(_ *testing.T, o *neighbours.Options) {
			o.Source = "postgres://u:hidden@127.0.0.1:1/shop?connect_timeout=2"
		}, "connect to neighbours.source (database shop at 127.0.0.1:1 as u)"},
		{"no connection string", func(_ *testing.T, o *neighbours.Options) { o.Target = "post gres://u:hidden@x" }, "neighbours.target is not a connection string"},
	} {
		if longtest.Omits(i, 3) {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			command := neighbours.Create
			if tc.change == nil {
				command = neighbours.Refresh
			} else {
				tc.change(t, &o)
			}
			_, err := command(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it to say %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("the error shows the password: %v", err)
			}
			if tc.name == "no connection string" || tc.name == "records of another version" || tc.name == "no right to create schemas" {
				return
			}
			if left := lines(t, o.Target, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^(dpwatch_|d0|d1_1|app)'"); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// as returns the connection string with another role, whose password is x.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	c := pgtest.Start(t)
	return c.UserDSN(dsn[strings.LastIndex(dsn, "/")+1:strings.Index(dsn, "?")], role, "x")
}

// TestVerifyFindsFaults damages neighbours in every relevant way.
func TestVerifyFindsFaults(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o := shop(t)
	create(t, o)
	for _, tc := range []struct{ name, spoil, fix, want string }{
		{"a row more", "INSERT INTO d1_1.visits VALUES ('x')", "DELETE FROM d1_1.visits WHERE mail = 'x'", "table visits: rows of other units differ (191 in D0, 192 here)"},
		{"a value of another", "UPDATE d1_1.visits SET page = page || '!' WHERE ms IN (SELECT min(ms) FROM d1_1.visits)", "UPDATE d1_1.visits SET page = rtrim(page, '!')", "table visits: rows of other units differ (191 in D0, 191 here)"},
		{"an index less", "DROP INDEX d1_1.users_lower", "CREATE INDEX users_lower ON d1_1.users (lower(email)) WHERE mood <> 'sad'", "D0 has, and it has not: index users_lower"},
		{"another type", "ALTER TABLE d1_1.visits ALTER ms TYPE float8", "", "D0 has, and it has not: column visits.ms is number 3, type real"},
	} {
		run(t, o.Target, tc.spoil)
		report, err := neighbours.Verify(t.Context(), o)
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		if !slices.ContainsFunc(report.Pairs[0].Faults, func(f string) bool { return strings.Contains(f, tc.want) }) {
			t.Errorf("%s: faults %v, want %q", tc.name, report.Pairs[0].Faults, tc.want)
		}
		if len(report.Pairs[1].Faults) > 0 {
			t.Errorf("%s: the other pair: %v", tc.name, report.Pairs[1].Faults)
		}
		if tc.fix != "" {
			run(t, o.Target, tc.fix)
		}
	}
	run(t, o.Target, "DROP TABLE d1_2.visits")
	if _, err := neighbours.Verify(t.Context(), o); err == nil || !strings.Contains(err.Error(), "schema d1_2 lacks visits: run `dpwatch neighbours create --replace`") {
		t.Errorf("a lost table: %v", err)
	}
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	verified(t, o)
	run(t, o.Target, "DROP SCHEMA d1_2 CASCADE; CREATE SCHEMA d1_2")
	if _, err := neighbours.Refresh(t.Context(), o); err != nil { // a schema that was emptied manually does not prevent it
		t.Fatal(err)
	}
	verified(t, o)
}

// TestReplayRole: the granted role can read the copies and nothing else.
func TestReplayRole(t *testing.T) {
	t.Parallel()
	o := shop(t)
	run(t, o.Target, "CREATE ROLE nbr_replay LOGIN PASSWORD 'x'")
	o.Grant = []string{"nbr_replay"}
	create(t, o)
	replay := as(t, o.Target, "nbr_replay")
	if got := lines(t, replay, "SELECT count(*)::text FROM d1_1.users UNION ALL SELECT count(*)::text FROM d0.rich_items UNION ALL SELECT count(*)::text FROM d0.per_mood"); got[0] != "19" || got[2] != "3" {
		t.Errorf("rows %v", got)
	}
	o.Target = replay
	if _, _, err := neighbours.List(t.Context(), o); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the replay role reads the units: %v", err)
	}
	if _, err := neighbours.Current(t.Context(), replay, o.Control); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("the replay role reads the record of the set: %v", err)
	}
}
