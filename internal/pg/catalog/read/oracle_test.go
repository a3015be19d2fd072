package read_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// relationsOf creates the relations of the engine in schema s, and of every neighbour in its own: n people.
func relationsOf(s string, n int) string {
	return fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS %[1]s; SET search_path = %[1]s;
		CREATE TABLE people (id int, age int);
		INSERT INTO people SELECT i, 20 + i FROM generate_series(1, %[2]d) i;
		CREATE VIEW adults AS SELECT * FROM people WHERE age > 22;
		CREATE VIEW oldest AS SELECT max(age) AS age FROM adults;
		CREATE MATERIALIZED VIEW ages AS SELECT age, count(*) AS n FROM people GROUP BY age;
		CREATE TABLE visits (id int, at date) PARTITION BY RANGE (at);
		CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
		INSERT INTO visits SELECT i, '2020-01-01'::date + i FROM generate_series(1, %[2]d) i;
		CREATE TABLE members () INHERITS (people);
		INSERT INTO members VALUES (%[2]d, 90 + %[2]d);
		RESET search_path;`, s, n)
}

// TestOracle: on real databases, a query rewritten with the catalogs gives the engine's answer, and one that the
// neighbours cannot answer is refused.
func TestOracle(t *testing.T) {
	t.Parallel()
	shop := database(t, relationsOf("public", 7)+`
		CREATE VIEW unlisted AS SELECT id FROM people;
		CREATE TABLE visits_2 PARTITION OF visits FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
		CREATE SCHEMA other; CREATE VIEW other.people AS SELECT * FROM public.people;
		CREATE FUNCTION headcount() RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM people'`)
	shadow := database(t, relationsOf("d0", 7)+relationsOf("d1", 6))
	source, copies := contents(t, shop), contents(t, shadow)
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "people"}, {Schema: "public", Name: "visits"}},
		Source:    source, Shadow: copies, Neighbours: []string{"d0", "d1"}, AllowFunctions: []string{"headcount"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for sql, reason := range map[string]rewrite.Reason{
		"SELECT count(*), sum(age) FROM people":                                  "",
		"SELECT count(*), sum(age) FROM ONLY people":                             "",
		"SELECT adults.age, public.adults.id FROM public.adults ORDER BY 1":      "",
		"SELECT o.age FROM oldest o, (SELECT 1) x":                               "",
		"SELECT * FROM ages ORDER BY 1":                                          "",
		"SELECT count(*), max(at) FROM visits":                                   "",
		"SELECT count(*) FROM visits_1 v JOIN people p ON p.id = v.id":           "",
		"SELECT members.age FROM members":                                        "",
		"WITH adults AS (SELECT * FROM adults) SELECT count(*) FROM adults":      "",
		"SELECT (SELECT count(*) FROM ages a WHERE a.age = p.age) FROM people p": "",
		"SELECT * FROM unlisted":                                                 reasons.NoCopy,
		"SELECT count(*) FROM visits_2":                                          reasons.NoCopy,
		"SELECT count(*) FROM other.people":                                      reasons.NoCopy,
		"SELECT headcount() FROM people":                                         reasons.NoCopy,
	} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: sql, User: "nobody", Database: source.Database})
			var refusal *rewrite.UnsupportedError
			if errors.As(err, &refusal) != (reason != "") || refusal != nil && refusal.Reason != reason {
				t.Fatalf("%v; want %q", err, reason)
			}
			if reason != "" {
				return
			}
			compareAnswers(t, plan, sql, shop, shadow)
		})
	}
}

// compareAnswers checks that d0 gives the engine's answer, and d1 another one.
func compareAnswers(t *testing.T, plan *rewrite.Plan, sql, shop, shadow string) {
	t.Helper()
	answers := map[string][][]string{"shop": answer(t, shop, sql)}
	for _, schema := range []string{"d0", "d1"} {
		text, err := plan.For(schema)
		if err != nil {
			t.Fatal(err)
		}
		answers[schema] = answer(t, shadow, text)
	}
	if diff := cmp.Diff(answers["shop"], answers["d0"]); diff != "" {
		t.Errorf("d0 holds what the engine holds (-engine +d0):\n%s", diff)
	}
	if cmp.Equal(answers["d0"], answers["d1"]) {
		t.Errorf("d1 answers as d0: %v", answers["d1"])
	}
}

// answer returns the rows, each value in the server's text form.
func answer(t *testing.T, dsn, sql string) [][]string {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out [][]string
	for rows.Next() {
		var row []string
		for _, value := range rows.RawValues() {
			row = append(row, string(value))
		}
		out = append(out, row)
	}
	if rows.Err() != nil {
		t.Fatalf("%v\n%s", rows.Err(), sql)
	}
	return out
}
