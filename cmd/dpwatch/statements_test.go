package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// TestRunStatements: the query in every statement that runs one is audited as that query, and the ledger, the status
// and the pages show where its answers went. Replays write nothing.
func TestRunStatements(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER CATALOG, FEW TRIALS")
	s.until(t, "the ledger", func() bool { return strings.Contains(s.log.String(), "audits restored from the ledger") })
	conn := s.connect(t)
	exec0(t, conn, "CREATE TABLE marts.daily (grp int PRIMARY KEY, n float8)")
	simple := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const query = " SELECT 1 AS grp, noisy(count(*), 4) AS n FROM people"
	claim := func(n int) string { return fmt.Sprintf("/*dp_epsilon='0.%d'*/ ", n) }
	simple(`BEGIN; /* {"app": "dbt"} */ ` + claim(11) + `create table "marts"."m__dbt_tmp" as (` + query + `
  ); ALTER TABLE marts.m__dbt_tmp RENAME TO m; COMMIT`)
	simple(claim(12) + "CREATE TEMP TABLE private AS" + query)
	simple(claim(13) + "CREATE MATERIALIZED VIEW marts.v AS" + query)
	simple(claim(14) + "REFRESH MATERIALIZED VIEW marts.stored")
	exec0(t, conn, claim(15)+"INSERT INTO marts.daily (grp, n)"+query+" WHERE id > $1", 7)
	simple(claim(16) + "INSERT INTO marts.daily" + query + " ON CONFLICT (grp) DO UPDATE SET n = excluded.n RETURNING n")
	simple(claim(17) + "WITH p AS (SELECT * FROM people) INSERT INTO marts.daily SELECT 2, noisy(count(*), 4) FROM p")
	simple(claim(18) + "SELECT noisy(count(*), 4) AS n INTO marts.into FROM people")
	simple("BEGIN; " + claim(19) + "DECLARE c CURSOR FOR" + query + "; FETCH 1 FROM c; FETCH 1 FROM c; COMMIT")
	simple("BEGIN; " + claim(26) + "DECLARE c SCROLL CURSOR FOR" + query + "; FETCH c; FETCH FIRST c; FETCH RELATIVE 0 c; COMMIT") // each draws anew
	simple(claim(21) + "EXPLAIN (ANALYZE, VERBOSE)" + query)
	simple("PREPARE i (int) AS " + claim(22) + "INSERT INTO marts.daily SELECT $1, noisy(count(*), 4) FROM people; EXECUTE i (3)")
	simple("PREPARE q (int) AS " + claim(23) + "SELECT $1, noisy(count(*), 4) FROM people; EXPLAIN ANALYZE EXECUTE q (4)")
	simple("CREATE TABLE marts.executed AS EXECUTE q (4)") // the same query
	if _, err := conn.PgConn().CopyTo(t.Context(), io.Discard, "COPY ("+claim(24)+query+") TO STDOUT"); err != nil {
		t.Fatal(err)
	}
	simple(claim(25) + query)
	simple(claim(25) + "CREATE TABLE marts.both AS" + query)
	for _, nothing := range []string{
		"EXPLAIN" + query, "CREATE TABLE marts.empty AS" + query + " WITH NO DATA", "CREATE TABLE IF NOT EXISTS marts.both AS" + query, "CREATE VIEW marts.late AS" + query,
		"PREPARE unused AS" + query,
	} {
		simple(claim(99) + nothing)
	}

	want := map[float64]string{
		0.01: "to the client", 0.11: "into table marts.m__dbt_tmp", 0.12: "into a temporary table", 0.13: "into materialized view marts.v", 0.14: "into materialized view marts.stored",
		0.15: "into table marts.daily", 0.16: "into table marts.daily, and to the client", 0.17: "into table marts.daily", 0.18: "into table marts.into",
		0.19: "through a cursor", 0.26: "through a cursor", 0.21: "as row counts (EXPLAIN ANALYZE)", 0.22: "into table marts.daily",
		0.23: "as row counts (EXPLAIN ANALYZE); into table marts.executed", 0.24: "to the client", 0.25: "into table marts.both; to the client",
	}
	executions := map[float64]int{0.23: 2, 0.25: 2, 0.26: 3}
	db := pgtest.Connect(t, s.direct)
	s.until(t, "every query is in the ledger", func() bool {
		exec0(t, conn, "SELECT * FROM marts.fresh") // captured as soon as the relay knows the view
		rows, err := db.Query(t.Context(), "SELECT epsilon, executions, array_to_string(destinations, '; ') FROM dpwatch_ledger.queries")
		if err != nil {
			t.Fatal(err)
		}
		got, ran := map[float64]string{}, map[float64]int{}
		for rows.Next() {
			var epsilon float64
			var n int
			var to string
			if err := rows.Scan(&epsilon, &n, &to); err != nil {
				t.Fatal(err)
			}
			if got[epsilon] = to; n > 1 && epsilon != 0.01 {
				ran[epsilon] = n
			}
		}
		if len(got) > len(want) {
			t.Fatal(cmp.Diff(want, got))
		}
		return cmp.Equal(want, got) && cmp.Equal(executions, ran)
	})
	s.until(t, "the view without copies is named", func() bool {
		exec0(t, conn, "SELECT * FROM marts.alone")
		text := call(t, "", "coverage", "--config", s.config).stdout
		return strings.Contains(text, "no copy") && strings.Contains(text, "marts.alone") && strings.Contains(text, "calls a DP function, and schema d0 has no copy of it") && !strings.Contains(text, "marts.fresh")
	})
	var checks []preflight.Check
	if err := json.Unmarshal([]byte(call(t, "", "doctor", "-o", "json", "--config", s.config).stdout), &checks); err != nil {
		t.Fatal(err)
	}
	if alone, fresh := find(checks, "views that draw noise", "marts.alone: "), find(checks, "views that draw noise", "marts.fresh: "); alone.Status != preflight.Warning ||
		!strings.Contains(alone.Fix, "neighbours create --replace") || fresh.Status != preflight.OK {
		t.Errorf("doctor: %+v, %+v", alone, fresh)
	}
	type audit struct {
		ID           string
		Destinations []string
		Trouble      string
		Report       struct{ Trials struct{ D0 int } }
	}
	var audits []audit
	s.until(t, "every query is replayed", func() bool {
		var v struct{ Audit struct{ Audits []audit } }
		if _, body := s.get(t, "/api/status"); json.Unmarshal([]byte(body), &v) != nil {
			t.Fatal(body)
		}
		audits = v.Audit.Audits
		return len(audits) == len(want) && !slices.ContainsFunc(audits, func(a audit) bool { return a.Report.Trials.D0 == 0 || a.Trouble != "" })
	})
	for _, a := range audits {
		if len(a.Destinations) == 0 {
			t.Errorf("%+v", a)
		}
		if to := "into table marts.both"; slices.Contains(a.Destinations, to) {
			text := call(t, "", "explain", a.ID, "--config", s.config)
			_, page := s.get(t, "/queries/"+a.ID)
			_, list := s.get(t, "/queries")
			for _, shown := range []string{text.stdout, page, list} {
				if !strings.Contains(shown, to+"; to the client") {
					t.Errorf("%q is not in\n%s", to, shown)
				}
			}
		}
	}
	var rows int
	if err := db.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM marts.daily) + (SELECT count(*) FROM marts.m) + (SELECT count(*) FROM marts.both)").Scan(&rows); err != nil || rows != 5 {
		t.Errorf("the tables have %d rows, want 5: %v", rows, err)
	}
}
