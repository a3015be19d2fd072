package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// oracleSettings are the settings that TestSettingsOracle compares with the server's.
var oracleSettings = []string{"o.a", "o.b", "search_path", "role", "timezone"}

// oracleSetup creates what the statements of TestSettingsOracle call. The functions without "quiet" in their names
// change settings.
const oracleSetup = `
CREATE SCHEMA IF NOT EXISTS oracle;
CREATE OR REPLACE FUNCTION oracle.set_a(v text) RETURNS text LANGUAGE sql AS $$ SELECT set_config('o.a', v, false) $$;
CREATE OR REPLACE FUNCTION oracle.set_any(n text, v text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('SET %s = %L', n, v); END $$;
CREATE OR REPLACE FUNCTION oracle.quiet(v text) RETURNS text LANGUAGE plpgsql SET o.a = 'inside' AS $$ BEGIN RETURN v; END $$;
CREATE OR REPLACE PROCEDURE oracle.commits(fails bool) LANGUAGE plpgsql AS $$ BEGIN
	SET o.b = 'by a procedure'; COMMIT; IF fails THEN RAISE EXCEPTION 'after the commit'; END IF; END $$;
DO $$ BEGIN CREATE ROLE oracle_role; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT USAGE ON SCHEMA oracle TO oracle_role`

// oracleStatements are the statements of TestSettingsOracle; % is replaced by a number.
var oracleStatements = []string{
	"SET o.a = 'v%'", "SET o.a = 'v%'", "SET o.b = 'v%'", "SET LOCAL o.a = 'l%'", "SET LOCAL o.b = 'l%'", "RESET o.a", "SET o.b TO DEFAULT", "SET LOCAL o.a TO DEFAULT",
	"SET search_path = s%, public", "SET LOCAL search_path = s%", "RESET search_path",
	"SET ROLE oracle_role", "RESET ROLE", "SET LOCAL ROLE oracle_role", "SET SESSION AUTHORIZATION oracle_role", "RESET SESSION AUTHORIZATION", "SET LOCAL SESSION AUTHORIZATION oracle_role",
	"SET TIME ZONE INTERVAL '+00:%' HOUR TO MINUTE", "SET timezone = 'UTC'", "SET LOCAL timezone = 'UTC'", "RESET timezone",
	"SELECT set_config('o.a', 'c%', false), set_config('o.b', 'c%', true)", "SELECT set_config('o.b', NULL, false)", "SELECT set_config('o.' || 'b', 'h%', false)",
	"SELECT set_config('o.a', 'w%', false) WHERE false",
	"RESET ALL", "DISCARD ALL", "BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK AND CHAIN",
	"SAVEPOINT s", "SAVEPOINT s", "ROLLBACK TO s", "RELEASE s", "SELECT 1/0", "SELECT 1",
	"SELECT oracle.set_a('f%')", "SELECT oracle.set_any('o.b', 'f%')", "SELECT oracle.set_any('timezone', 'EST')", "SELECT oracle.quiet('f%')",
	"CALL oracle.commits(false)", "CALL oracle.commits(true)",
	"DO $$ BEGIN SET o.a = 'd%'; COMMIT; RAISE EXCEPTION 'x'; END $$", "DO $$ BEGIN SET o.b = 'd%'; END $$", "DO $$ BEGIN SET o.a = 'd%'; RAISE EXCEPTION 'x'; END $$",
	"DO $$ BEGIN EXECUTE 'SE' || 'T o.b = 2'; EXECUTE 'COM' || 'MIT'; PERFORM 1/0; END $$", "DO $$ BEGIN BEGIN SET o.a = 'i%'; PERFORM 1/0; EXCEPTION WHEN others THEN NULL; END; END $$",
	"VACUUM pg_class", "VACUUM no_such_table", "CREATE DATABASE bank", "PREPARE p AS SELECT set_config('o.a', $1, false)", "EXECUTE p('p%')", "DEALLOCATE ALL",
	"DECLARE c CURSOR WITH HOLD FOR SELECT oracle.set_a('k%')", "FETCH 1 FROM c", "CLOSE ALL",
}

// TestSettingsOracle runs random sequences of statements, as single queries, as several in one query and in pipelines,
// and then compares each setting that is certain with the server's.
func TestSettingsOracle(t *testing.T) {
	t.Parallel()
	upstream := postgres.upstream(t)
	if _, err := connect(t, upstream.Address, "default_query_exec_mode=simple_protocol").Exec(t.Context(), oracleSetup); err != nil {
		t.Fatal(err)
	}
	p := start(t, upstream, nil)
	certain, compared := 0, 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(31, seed))
		conn := connect(t, p.addr, "").PgConn()
		var ran []string
		for step := range 12 {
			for range 1 + rnd.IntN(3) {
				ran = append(ran, oracleStep(t, conn, rnd))
			}
			shown := showAll(t, conn, fmt.Sprintf("seed %d step %d", seed, step))
			if shown == nil {
				continue // in a failed transaction
			}
			q := p.sink.find(t, shown["sql"])
			for _, name := range oracleSettings {
				compared++
				if inDoubt(q.Doubt, name) {
					continue
				}
				certain++
				got, ok := q.Settings[name]
				if !ok {
					got = map[string]string{"search_path": `"$user", public`, "role": "none", "timezone": shown["initial timezone"]}[name]
				}
				if got != shown[name] {
					t.Fatalf("seed %d: %s is certainly %q for the tracker, the server shows %q after\n%s\nin doubt: %+v", seed, name, got, shown[name], strings.Join(ran, "\n"), q.Doubt)
				}
			}
		}
		_ = conn.Close(t.Context())
	}
	if certain < compared/3 {
		t.Errorf("%d of %d settings were certain", certain, compared)
	}
	if stats := p.Stats(); stats.UncapturedPairing+stats.UncapturedPanic+stats.UncapturedProtocol != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// inDoubt resolves the functions of oracleSetup, as an auditor with a catalog does.
func inDoubt(d capture.Doubt, name string) bool {
	changes := map[string][]string{"set_a": {"o.a"}, "set_any": oracleSettings, "commits": {"o.b"}, capture.UnlistedFunctions: oracleSettings}
	for _, c := range d.Calls {
		for _, f := range c.Functions {
			for _, changed := range changes[f] {
				if changed == name && c.Concerns(name) && !capture.IsReported(name) {
					return true
				}
			}
		}
	}
	return d.Has(name)
}

// oracleStep runs one to three statements in one of the ways, and returns them. Errors are part of the game.
func oracleStep(t *testing.T, conn *pgconn.PgConn, rnd *rand.Rand) string {
	t.Helper()
	var statements []string
	for range 1 + rnd.IntN(3) {
		s := oracleStatements[rnd.IntN(len(oracleStatements))]
		statements = append(statements, strings.ReplaceAll(s, "%", fmt.Sprint(10+rnd.IntN(40))))
	}
	switch rnd.IntN(4) {
	case 0:
		_, _ = conn.Exec(t.Context(), strings.Join(statements, "; ")).ReadAll()
		return "query: " + strings.Join(statements, "; ")
	case 1:
		batch := &pgconn.Batch{}
		for _, s := range statements {
			batch.ExecParams(s, nil, nil, nil, nil)
		}
		_, _ = conn.ExecBatch(t.Context(), batch).ReadAll()
		return "pipeline: " + strings.Join(statements, "; ")
	case 2:
		name, value := oracleSettings[rnd.IntN(2)], fmt.Sprintf("b%d", rnd.IntN(40))
		local := []byte{byte(rnd.IntN(2))}
		_ = conn.ExecParams(t.Context(), "SELECT set_config($1, $2, $3)", [][]byte{[]byte(name), []byte(value), local}, []uint32{25, 25, 16}, []int16{0, 1, 1}, nil).Read()
		return fmt.Sprintf("set_config(%s, %s, %d)", name, value, local[0])
	}
	_, _ = conn.Exec(t.Context(), statements[0]).ReadAll()
	return statements[0]
}

// showAll returns the settings, and under "sql" the statement that read them; nil in a failed transaction.
func showAll(t *testing.T, conn *pgconn.PgConn, comment string) map[string]string {
	t.Helper()
	if conn.TxStatus() == 'E' {
		return nil
	}
	var columns []string
	for _, name := range oracleSettings {
		columns = append(columns, "current_setting('"+name+"', true)")
	}
	sql := "SELECT " + strings.Join(columns, ", ") + ", (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'TimeZone') /* " + comment + " */"
	results, err := conn.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"sql": sql}
	for i, name := range append(oracleSettings[:len(oracleSettings):len(oracleSettings)], "initial timezone") {
		shown[name] = string(results[0].Rows[0][i])
	}
	return shown
}
