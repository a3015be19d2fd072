package neighbours_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestPlanReportsAll: the plan and create report all that is missing at once, before anything is written.
func TestPlanReportsAll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, o *neighbours.Options)
		want   []string
	}{
		{"rights", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE ROLE nbr_plan LOGIN PASSWORD 'x'", "GRANT USAGE ON SCHEMA public TO nbr_plan", "GRANT SELECT ON users, accounts TO nbr_plan")
			o.Source, o.Target = as(t, o.Source, "nbr_plan"), as(t, o.Target, "nbr_plan")
			o.Grant = []string{"nbr_plan_none", "nbr_plan_nobody"}
		}, []string{
			"GRANT USAGE ON SCHEMA app TO nbr_plan; GRANT SELECT ON app.\"Order Items\", app.orders, public.\"we\"\"ird.Table\", public.comments,",
			"; GRANT SELECT ON SEQUENCE app.orders_seq_seq, public.accounts_id_seq, public.numbers TO nbr_plan", "GRANT CREATE ON DATABASE",
			"role nbr_plan_none of neighbours.grant does not exist", "role nbr_plan_nobody of neighbours.grant does not exist",
		}},
		{"names", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Target, "CREATE SCHEMA d0", "CREATE SCHEMA d1_2")
			o.Protected = append(o.Protected, table("public.none"), table("public.nothing"))
		}, []string{"schema d0 of the shadow", "schema d1_2 of the shadow", "table public.none does not exist", "table public.nothing does not exist"}},
		{"paths, measures and choices", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE TABLE logs (x int, d int) PARTITION BY LIST (d)", "CREATE TABLE logs_1 PARTITION OF logs FOR VALUES IN (1)", "CREATE TABLE logs_2 PARTITION OF logs FOR VALUES IN (2)")
			o.Protected = append(o.Protected, table("public.logs"))
			o.Paths = nil
			o.Choose = []neighbours.Choice{{Rule: neighbours.Largest, K: 1, Columns: []neighbours.Column{{Table: table("public.visits"), Name: "x"}}}, {Rule: "worst", K: 1}}
			o.Measures = []neighbours.Measure{{Column: neighbours.Column{Table: table("public.users"), Name: "email"}, Low: "0", High: "1"}}
		}, []string{
			"table public.visits belongs to no privacy unit", "table public.documents belongs to no privacy unit", "table public.logs belongs to no privacy unit",
			`neighbours.choose[0]: table public.visits has no column "x"`, "neighbours.choose[1]: rule worst needs columns", "neighbours.measures[0]: column email of type text is not a number",
		}},
		{"definitions that the shadow database does not take", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Source, "CREATE FUNCTION here(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1; END'", "CREATE FUNCTION there(text) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN true; END'",
				"CREATE INDEX i1 ON comments (here(id))", "CREATE INDEX i2 ON users (there(email))")
		}, []string{"index i1: ERROR: function public.here(integer) does not exist", "index i2: ERROR: function public.there(text) does not exist"}},
		{"types", func(t *testing.T, o *neighbours.Options) {
			run(t, o.Target, "CREATE SCHEMA app", "CREATE TYPE public.mood AS ENUM ('a')", "CREATE TYPE app.place AS (x int)")
		}, []string{"type public.mood of the shadow database differs", "type app.place of the shadow database differs"}},
		{"servers that are not there", func(_ *testing.T, o *neighbours.Options) {
			o.Source, o.Target = "postgres://u@127.0.0.1:1/x?connect_timeout=2", "postgres://u@127.0.0.1:1/y?connect_timeout=2"
		}, []string{"connect to neighbours.source (database x", "connect to neighbours.target (database y"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := shop(t)
			target := o.Target
			tc.change(t, &o)
			before := state(t, target)
			p, err := neighbours.MakePlan(t.Context(), o, false)
			if err != nil {
				t.Fatal(err)
			}
			_, err = neighbours.Create(t.Context(), o)
			for what, got := range map[string]error{"plan": p.Err(), "create": err} {
				if got == nil {
					t.Fatalf("%s: no fault", what)
				}
				for _, want := range tc.want {
					if n := strings.Count(got.Error(), want); n != 1 {
						t.Errorf("%s: %q is there %d times in\n%v", what, want, n, got)
					}
				}
			}
			if after := state(t, target); !slices.Equal(before, after) {
				t.Errorf("wrote %v", after)
			}
		})
	}
}

// TestPlanExtensions: the extensions that the definitions need are listed by schema, with the statements that create
// them.
func TestPlanExtensions(t *testing.T) {
	t.Parallel()
	o := bare(pgtest.Database(t), pgtest.Database(t), "public.people", "public.mails")
	if lines(t, o.Source, "SELECT count(*)::text FROM pg_available_extensions WHERE name IN ('citext', 'btree_gist', 'pg_trgm')")[0] != "3" {
		t.Skip("SKIPPED: the server has no citext, btree_gist and pg_trgm (Debian: postgresql-contrib)")
	}
	run(t, o.Source, "CREATE SCHEMA ext", "CREATE EXTENSION citext SCHEMA ext", "CREATE EXTENSION btree_gist SCHEMA ext", "CREATE EXTENSION pg_trgm SCHEMA ext",
		"CREATE DOMAIN mail AS ext.citext[]", "CREATE TABLE people (id int PRIMARY KEY, mails mail, room int, EXCLUDE USING gist (room WITH =))",
		"CREATE TABLE mails (id int REFERENCES people, body text)", "CREATE INDEX ON mails USING gin (body ext.gin_trgm_ops)", "INSERT INTO people VALUES (1), (2)")
	run(t, o.Target, "CREATE EXTENSION pg_trgm")
	_, err := neighbours.Create(t.Context(), o)
	for _, want := range []string{
		`CREATE EXTENSION "citext" SCHEMA "ext"`, `CREATE EXTENSION "btree_gist" SCHEMA "ext"`, `ALTER EXTENSION "pg_trgm" SET SCHEMA "ext"`,
	} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("got %v, want %q once", err, want)
		}
	}
	run(t, o.Target, "CREATE SCHEMA ext", "CREATE EXTENSION citext SCHEMA ext", "CREATE EXTENSION btree_gist SCHEMA ext", "ALTER EXTENSION pg_trgm SET SCHEMA ext")
	create(t, o)
	verified(t, o)
}

// TestPlan: the plan of a set that can be created.
func TestPlan(t *testing.T) {
	t.Parallel()
	o := shop(t)
	run(t, o.Source, "ANALYZE")
	before := state(t, o.Target)
	p, err := neighbours.MakePlan(t.Context(), o, false)
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	if after := state(t, o.Target); !slices.Equal(before, after) {
		t.Errorf("wrote %v", after)
	}
	if p.Method != neighbours.Copy || p.Bytes <= 0 || p.Seconds <= 0 || len(p.Neighbours) != 2 || p.Neighbours[0].Rule != "most_rows" || p.Neighbours[1].Schema != "d1_2" {
		t.Errorf("plan %+v", p)
	}
	for name, want := range map[string]string{
		"users": "key (id); act (manager_id) -> public.users (id): NULL instead of the unit", "accounts": "(user_id) -> public.users (id)", "visits": "(mail) -> public.users (email), declared", "events": "(user_id) -> public.users (id)", "rich": "",
	} {
		i := slices.IndexFunc(p.Tables, func(x neighbours.PlannedTable) bool { return x.Name == name })
		if i < 0 || strings.Join(p.Tables[i].Paths, "; ") != want || name == "events" && (p.Tables[i].Parts != 4 || *p.Tables[i].Rows != 400) {
			t.Errorf("%s: %d in %+v", name, i, p.Tables)
		}
	}
	if !slices.ContainsFunc(p.Notes, func(s string) bool { return strings.HasPrefix(s, "view left_out is not copied") }) {
		t.Errorf("notes %q", p.Notes)
	}
	create(t, o)
	if p, err = neighbours.MakePlan(t.Context(), o, false); err != nil || p.Err() == nil || !strings.Contains(p.Err().Error(), "the shadow database already holds a set") {
		t.Errorf("a second create: %v, %v", err, p.Err())
	}
	if p, err = neighbours.MakePlan(t.Context(), o, true); err != nil || p.Err() != nil {
		t.Errorf("refresh: %v, %v", err, p.Err())
	}
}
