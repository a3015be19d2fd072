package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// TestDoctorRows: an empty copy or public table, and one whose number of rows is not the engine's, is a fault; what
// changed a little since is a warning.
func TestDoctorRows(t *testing.T) {
	t.Parallel()
	engine, shadow := pgtest.Database(t), copies(t)
	pgtest.Exec(t, engine, "CREATE TABLE people AS SELECT g AS id, g % 3 AS grp FROM generate_series(1, 50) g")
	for _, dsn := range []string{engine, shadow} {
		pgtest.Exec(t, dsn, `CREATE SCHEMA "My ref"; CREATE TABLE "My ref"."Shops" AS SELECT generate_series(1, 3) AS id`)
	}
	configuration := func(catalog string) string {
		return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people], public: [My ref.Shops], catalog: %q, unit: {table: public.people, key: id}}
ledger: {dsn: memory}
`, upstreamOf(t, engine), shadow, catalog))
	}
	with, without := configuration(engine), configuration("")
	const all = "INSERT INTO d0.people SELECT g, g % 3 FROM generate_series(1, 50) g; INSERT INTO d1.people SELECT g, g % 3 FROM generate_series(1, 49) g"
	for _, tc := range []struct {
		name, engine, shadow, path string
		status                     preflight.Status
		object, text, fix          string
	}{
		{"as many", "", "", with, preflight.OK, "d0.people", "has as many rows as public.people in the engine's database", ""},
		{"no public row", "", `TRUNCATE "My ref"."Shops"`, with, preflight.Fault, "My ref.Shops", "is empty, and My ref.Shops in the engine's database is not", `--table='"My ref"."Shops"'`},
		{"no public row, engine not known", "", "", without, preflight.Fault, "My ref.Shops", "whether the engine's table is empty is not known", "pg_dump"},
		{"no row anywhere", `TRUNCATE "My ref"."Shops"`, "", with, preflight.Warning, "My ref.Shops", "is empty, as is My ref.Shops", ""},
		{"fewer", "", "DELETE FROM d0.people WHERE id > 40", with, preflight.Fault, "d0.people", "has 20 % fewer rows than public.people", "copy the rows again"},
		{"empty", "", "TRUNCATE d0.people, d1.people", with, preflight.Fault, "d0.people", "is empty, and public.people in the engine's database is not", "copy the rows again"},
		{"empty, engine not known", "", "", without, preflight.Fault, "d0.people", "is empty, and whether", "set neighbours.source or privacy.catalog"},
		{"an empty neighbour", "", all + "; TRUNCATE d1.people", with, preflight.Fault, "d1.people", "is empty, and d0.people is not", ""},
		{"changed since", "INSERT INTO people SELECT g FROM generate_series(51, 1000) g", "INSERT INTO d0.people SELECT g FROM generate_series(51, 999) g", with, preflight.Warning, "d0.people", "has 0.1 % fewer rows", ""},
		{"none in the engine", "TRUNCATE people", "", with, preflight.Fault, "d0.people", "has rows, and public.people in the engine's database is empty", ""},
	} {
		pgtest.Exec(t, engine, tc.engine)
		pgtest.Exec(t, shadow, tc.shadow)
		r := call(t, "", "doctor", "-o", "json", "--config", tc.path)
		var checks []preflight.Check
		if err := json.Unmarshal([]byte(r.stdout), &checks); err != nil {
			t.Fatalf("%v\n%s", err, r.stdout)
		}
		if c := find(checks, "claims", "no source of claims"); c.Status != preflight.Fault || !strings.Contains(c.Fix, "claims.functions: ") {
			t.Errorf("no claim: %+v", c)
		}
		if c := find(checks, "rows", tc.object+": "); c.Status != tc.status || !strings.Contains(c.Message, tc.text) || !strings.Contains(c.Fix, tc.fix) {
			t.Errorf("%s: %+v", tc.name, c)
		}
	}
}

// TestDoctorEngines: doctor shows that each instance of an engine reads the copies of its world, and which one does not.
func TestDoctorEngines(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	engine := func(schema string) string { return dsn + "&search_path=" + schema }
	for _, tc := range []struct {
		name, first, second string
		code                int
		status              preflight.Status
		text                string
	}{
		{"each its copies", engine("d0"), engine("d1"), exitDone, preflight.OK, "read the copies of that world"},
		{"swapped", engine("d1"), engine("d0"), exitFailure, preflight.Fault, "d1.people"},
		{"without the table", engine("d0"), engine("public"), exitDone, preflight.Unchecked, "does not answer the statement that was tried: SQLSTATE 42P01"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q, twin: none, engine: {dsn: [%q, %q]}}
privacy: {protected: [public.people]}
claims: {default: {epsilon: 1}}
ledger: {dsn: memory}
`, upstreamOf(t, dsn), dsn, tc.first, tc.second))
			if c := find(checksOf(t, tc.code, path), "shadow.engine.dsn", "which copies it reads"); c.Status != tc.status || !strings.Contains(c.Message, tc.text) {
				t.Errorf("%+v", c)
			}
		})
	}
}
