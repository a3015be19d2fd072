package read_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// namesakes are tables whose names are also parameters, aliases, columns, keywords and schemas in harmless functions.
const namesakes = `CREATE SCHEMA IF NOT EXISTS {s}; CREATE SCHEMA IF NOT EXISTS util; CREATE SCHEMA IF NOT EXISTS u;
	CREATE TABLE {s}.b (id int, x int); INSERT INTO {s}.b SELECT i, i FROM generate_series(1, {n}) i;
	CREATE TABLE {s}.u (id int, x int); INSERT INTO {s}.u SELECT i, i FROM generate_series(1, {n}) i;
	CREATE TABLE {s}."order" (id int, total int); INSERT INTO {s}."order" SELECT i, 10 * i FROM generate_series(1, {n}) i;
`

// harmless functions contain the tables' names, and read none of them.
const harmless = `
	CREATE FUNCTION util.laplace(b float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT $1 + b';
	CREATE FUNCTION util.aliased(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT max(u.v) FROM (SELECT n AS v) AS u ORDER BY 1';
	CREATE FUNCTION util.ordered(n int) RETURNS int LANGUAGE plpgsql VOLATILE AS $$
		DECLARE b int := n; u record; "order" int[] := ARRAY[1, 2]; BEGIN
			<<again>> FOR u IN SELECT v AS x FROM generate_series(1, 3) AS b(v) ORDER BY v LOOP "order"[1] := u.x; EXIT again WHEN u.x > b; END LOOP;
			RAISE NOTICE 'the order of u is %', b USING HINT = 'u and b';
			RETURN "order"[1]; END $$;
	CREATE FUNCTION util.with_cte() RETURNS int LANGUAGE sql VOLATILE AS 'WITH b AS (SELECT 4 AS n), u AS (SELECT n FROM b) SELECT n FROM u';
	CREATE TABLE u.settings (factor int); INSERT INTO u.settings VALUES (3);
	CREATE FUNCTION util.factor() RETURNS int LANGUAGE sql STABLE AS 'SELECT factor FROM u.settings /* not b */';
	CREATE FUNCTION util.label(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT upper($1)';
`

// everyStatement has each statement of PL/pgSQL at least once; it reads from the schema {s}.
const everyStatement = `
	CREATE FUNCTION {s}.every_statement(n int) RETURNS SETOF int LANGUAGE plpgsql STABLE AS $$
		#variable_conflict use_column
		<<outer_block>>
		DECLARE
			total CONSTANT int NOT NULL DEFAULT 0; copied ALIAS FOR n; t text COLLATE "C" := 'x'; r {s}.b%ROWTYPE; x {s}.b.x%TYPE = 1; y x%TYPE;
			bound CURSOR (low int, high int) FOR SELECT id FROM {s}.b q WHERE q.id BETWEEN low AND high ORDER BY 1;
			plain NO SCROLL CURSOR IS SELECT max(id) FROM {s}.u; free refcursor; row record; list int[] := '{1,2,3}'; got int; also int; rows int;
		BEGIN
			x := (SELECT max(id) FROM {s}.b); list[2 + 0] = x + total; y := list[2];
			IF x > 100 THEN NULL; ELSIF x > 50 OR EXISTS (SELECT FROM {s}.u WHERE id > 1000) THEN RETURN NEXT -1; ELSE RETURN NEXT x; END IF;
			CASE x WHEN 1, 2 THEN RETURN NEXT 1; WHEN (SELECT count(*)::int FROM {s}.u) THEN RETURN NEXT 2; ELSE RETURN NEXT 3; END CASE;
			CASE WHEN x = 3 THEN RETURN NEXT 4; ELSE NULL; END CASE;
			LOOP x := x - 1; EXIT WHEN x < 3; CONTINUE WHEN x > 4; END LOOP;
			WHILE x > 0 LOOP x := x - 1; END LOOP;
			FOR i IN REVERSE 6 .. copied BY 2 LOOP RETURN NEXT i; END LOOP;
			FOR i IN 1..(SELECT count(*) FROM {s}.u)::int LOOP y := i; END LOOP;
			<<over_rows>> FOR r IN SELECT * FROM {s}.b ORDER BY id LOOP RETURN NEXT r.id; END LOOP over_rows;
			FOR row IN bound(1, high := 3) LOOP RETURN NEXT row.id; END LOOP;
			FOR row IN EXECUTE 'SELECT id FROM {s}.u WHERE id <= $1 ORDER BY 1' USING 2 LOOP RETURN NEXT row.id; END LOOP;
			FOREACH y IN ARRAY list LOOP RETURN NEXT y; END LOOP;
			RETURN QUERY SELECT u.x FROM {s}.u ORDER BY 1;
			RETURN QUERY EXECUTE 'SELECT total FROM {s}."order" ORDER BY 1';
			EXECUTE 'SELECT sum(id), 7 FROM {s}.b' INTO STRICT got, also; RETURN NEXT got;
			EXECUTE 'SELECT $1 + count(*) FROM {s}.b' USING 5 INTO got; RETURN NEXT got;
			SELECT min(id), max(id) INTO got, also FROM {s}.b; RETURN NEXT also;
			SELECT INTO STRICT r b.* FROM {s}.b WHERE id = 1; RETURN NEXT r.x;
			GET DIAGNOSTICS rows = ROW_COUNT; RETURN NEXT rows;
			PERFORM count(*) FROM {s}."order";
			OPEN bound(1, 2); FETCH NEXT FROM bound INTO got; MOVE bound; CLOSE bound; RETURN NEXT got;
			OPEN plain; FETCH plain INTO got; CLOSE plain; RETURN NEXT got;
			OPEN free SCROLL FOR SELECT id + 100 FROM {s}.b ORDER BY 1; FETCH free INTO got; CLOSE free; RETURN NEXT got;
			OPEN free FOR EXECUTE 'SELECT count(*)::int FROM {s}.u WHERE id > $1' USING 1; FETCH free INTO got; CLOSE free; RETURN NEXT got;
			ASSERT (SELECT count(*) FROM {s}.b) > 0, 'no rows in b';
			DECLARE inner_one int := 1; BEGIN RETURN NEXT inner_one / (inner_one - 1); EXCEPTION WHEN division_by_zero OR SQLSTATE '22003' THEN RETURN NEXT (SELECT 50 + count(*) FROM {s}.b); WHEN OTHERS THEN RAISE; END;
			RAISE DEBUG 'now % and %', x, (SELECT count(*) FROM {s}.b) USING DETAIL = 'u', HINT = 'b';
			RETURN;
		END outer_block $$;
`

// TestOracleBodies: a function reads what its body reads, whatever words it contains; a declared function that reads
// nothing protected is called in place, and one that does needs copies.
func TestOracleBodies(t *testing.T) {
	t.Parallel()
	in := func(script, s, n string) string { return strings.NewReplacer("{s}", s, "{n}", n).Replace(script) }
	const dynamic = `CREATE FUNCTION util.counted(name text) RETURNS bigint LANGUAGE plpgsql STABLE AS
			'DECLARE n bigint; BEGIN EXECUTE format(''SELECT count(*) FROM pg_catalog.%I'', name) INTO n; RETURN n; END';
		CREATE FUNCTION util.calls_it() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT util.counted(''pg_am'')';
		CREATE FUNCTION util.built() RETURNS bigint LANGUAGE plpgsql STABLE AS
			'DECLARE q text := ''SELECT count(*) FROM ''; BEGIN q := q || ''public.b''; EXECUTE q INTO q; RETURN q; END';`
	shop := database(t, in(namesakes+everyStatement, "public", "7")+harmless+dynamic)
	shadow := database(t, in(namesakes+everyStatement, "d0", "7")+in(namesakes+everyStatement, "d1", "6")+harmless+dynamic)
	source := contents(t, shop)
	o := rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "b"}, {Schema: "public", Name: "u"}, {Schema: "public", Name: "order"}},
		Source:    source, Shadow: contents(t, shadow), Neighbours: []string{"d0", "d1"},
		AllowFunctions: []string{"laplace", "aliased", "ordered", "with_cte", "factor", "label", "every_statement", "counted", "calls_it", "built"},
	}
	r, err := rewrite.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]struct{ refused, assumed string }{
		"SELECT count(*) + util.laplace(0.5) FROM b":                      {},
		"SELECT sum(util.aliased(x)) FROM u":                              {},
		"SELECT sum(util.ordered(total)) + count(*) FROM \"order\"":       {},
		"SELECT sum(util.with_cte()) FROM b":                              {},
		"SELECT sum(util.factor() * x) FROM b":                            {},
		"SELECT util.label('total'), count(*) FROM b":                     {},
		"SELECT every_statement(2)":                                       {},
		"SELECT sum(util.counted('pg_am')) FROM b":                        {assumed: rewrite.AssumedFunction("util.counted")},
		"SELECT sum(util.calls_it()) FROM b":                              {assumed: rewrite.AssumedFunction("util.calls_it")},
		"SELECT util.built(), count(*) FROM b":                            {refused: "function util.built (stable, plpgsql) reads a protected table"},
		"SELECT util.label('b of u'), count(*) FROM b":                    {},
		"SELECT util.counted('b'), count(*) FROM b":                       {refused: "a string in the arguments of a function contains the name of a protected table"},
		"SELECT count(*) FROM b, LATERAL (SELECT util.laplace(b.x)) AS l": {},
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: sql, User: "nobody", Database: source.Database, Settings: map[string]string{"search_path": "public"}})
			if want.refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || !strings.Contains(refusal.Detail, want.refused) {
					t.Errorf("%v; want a refusal that says %q", err, want.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var assumed string
			for _, a := range plan.Assumed {
				if strings.HasPrefix(a, "function ") {
					assumed += a
				}
			}
			if assumed != want.assumed {
				t.Errorf("assumed %q; want %q", assumed, want.assumed)
			}
			compareAnswers(t, plan, sql, shop, shadow)
		})
	}
}
