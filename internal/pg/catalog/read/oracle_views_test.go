package read_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// viewsOf are views over people in schema {s}: they read only their own schema, and their other properties are not in
// the catalog's dependencies.
const viewsOf = `
	CREATE VIEW {s}.plain AS SELECT p.id, p AS whole, random() < 2 AS chance, CURRENT_DATE > '2020-01-01' AS late, current_setting('dp.mode', true) AS mode,
		lower('X') || extract(year FROM now()) AS text, CASE WHEN p.age IN (SELECT age FROM {s}.people) THEN 1 END AS one, "left"('ab', 1) AS l
		FROM {s}.people p JOIN (VALUES (1), (2)) AS v(x) ON v.x <= p.id WINDOW w AS (ORDER BY p.id);
	CREATE VIEW {s}.rows AS SELECT (SELECT p FROM {s}.people p WHERE p.id = 1) AS first, count(DISTINCT p.*) AS n FROM {s}.people p;
	CREATE VIEW {s}.mine AS SELECT id FROM {s}.people WHERE id = 1 OR current_user = 'postgres';
	CREATE VIEW {s}.ours AS SELECT id FROM {s}.people WHERE pg_has_role('pg_monitor', 'USAGE');
	CREATE VIEW {s}.inner_mine AS SELECT id, (SELECT max(id) FROM {s}.mine) AS m FROM {s}.people;
	CREATE VIEW {s}.here AS SELECT id, current_schema() AS c FROM {s}.people;
	CREATE VIEW {s}.slow AS SELECT id, pg_sleep(0) IS NULL AS c FROM {s}.people;
	CREATE VIEW {s}.locks AS SELECT id, pg_advisory_lock(7) IS NULL AS c FROM {s}.people;
	CREATE VIEW {s}.typed AS SELECT id, pg_typeof(p)::text AS c FROM {s}.people p;
	CREATE VIEW {s}.sized AS SELECT id, pg_relation_size('{s}.people') AS c FROM {s}.people;
	CREATE VIEW {s}.placed AS SELECT id, ctid::text AS c FROM {s}.people;
	CREATE VIEW {s}.described AS SELECT p.id, c.relname FROM {s}.people p, pg_class c WHERE c.relname = 'people';
	CREATE VIEW {s}.named AS SELECT id, '{s}.people'::regclass::text AS c FROM {s}.people;
	CREATE VIEW {s}.headcount AS SELECT id, age AS headcount FROM {s}.people;
	CREATE VIEW {s}.column_of_it AS SELECT h.headcount FROM {s}.headcount h;
	CREATE MATERIALIZED VIEW {s}.kept AS SELECT id, current_user AS c FROM {s}.people;
`

// TestOracleViews: a copy of a view that depends on the current user, reads a catalog or has side effects is refused;
// others give the engine's answer. The same applies to public views.
func TestOracleViews(t *testing.T) {
	t.Parallel()
	const public = `CREATE TABLE public.stores (id int); INSERT INTO public.stores VALUES (1);
		CREATE FUNCTION public.double(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN 2 * $1; END';
		CREATE FUNCTION public.bump() RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM pg_notify(''a'', ''b''); RETURN 1; END';
		CREATE VIEW public.store_list AS SELECT id, public.double(id) AS d FROM public.stores;
		CREATE VIEW public.my_stores AS SELECT id FROM public.stores WHERE current_user = 'postgres';
		CREATE VIEW public.loud_stores AS SELECT id, public.bump() AS d FROM public.stores;`
	in := func(s string) string { return strings.ReplaceAll(viewsOf, "{s}", s) }
	const headcount = "CREATE FUNCTION {s}.headcount() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM {s}.people';"
	count := func(s string) string { return strings.ReplaceAll(headcount, "{s}", s) }
	shop := database(t, relationsOf("public", 7)+in("public")+count("public")+public)
	shadow := database(t, relationsOf("d0", 7)+relationsOf("d1", 6)+in("d0")+in("d1")+count("d0")+count("d1")+public)
	source := contents(t, shop)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}},
		Public:    []rewrite.Table{{Schema: "public", Name: "stores"}, {Schema: "public", Name: "store_list"}, {Schema: "public", Name: "my_stores"}, {Schema: "public", Name: "loud_stores"}},
		Source:    source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"}, AllowFunctions: []string{"headcount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, refused := range map[string]string{ // "" = answered, otherwise text of the refusal
		"SELECT id, whole, chance, late, mode, text, one, l FROM plain": "",
		"SELECT first, n FROM rows":                                     "",
		"SELECT headcount FROM column_of_it ORDER BY 1":                 "",
		"SELECT * FROM kept":                                            "",
		"SELECT p.id, s.d FROM people p, store_list s":                  "",
		"SELECT * FROM mine":                                            "the view d0.mine, which contains a part that cannot be replayed: current_user",
		"SELECT * FROM inner_mine":                                      "the view d0.mine, which contains a part that cannot be replayed: current_user",
		"SELECT * FROM ours":                                            "function pg_has_role",
		"SELECT * FROM here":                                            "function current_schema",
		"SELECT * FROM slow":                                            "function pg_sleep",
		"SELECT * FROM locks":                                           "function pg_advisory_lock",
		"SELECT * FROM typed":                                           "function pg_typeof",
		"SELECT * FROM sized":                                           "function pg_relation_size",
		"SELECT * FROM placed":                                          "system column ctid",
		"SELECT * FROM described":                                       "relation pg_catalog.pg_class",
		"SELECT * FROM named":                                           "type regclass",
		"SELECT p.id FROM people p, my_stores s":                        "the view public.my_stores, which contains a part that cannot be replayed: current_user",
		"SELECT p.id FROM people p, loud_stores s":                      "the view public.loud_stores, which calls the function public.bump",
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: sql, User: "postgres", Database: source.Database})
			if refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || refusal.Reason != reasons.NoCopy || !strings.Contains(refusal.Detail, refused) || refusal.Offset < 7 || refusal.Hint == "" {
					t.Errorf("%v; want a refusal that says %q, where, and what to do", err, refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareAnswers(t, plan, sql, shop, shadow)
		})
	}
}
