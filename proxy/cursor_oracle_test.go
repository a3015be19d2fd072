package proxy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// cursorSetup creates a function of which each result is new and shows the setting that it read.
const cursorSetup = `
CREATE SEQUENCE draws; CREATE TABLE four AS SELECT k FROM generate_series(1, 4) k; CREATE TABLE sink (v text);
CREATE FUNCTION draw() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN coalesce(current_setting('o.eps', true), '') || '/' || nextval('draws'); END $$`

// cursorStatements are the statements of TestCursorOracle; # is replaced by a number that names the cursor's query.
var cursorStatements = []string{
	"BEGIN", "COMMIT", "ROLLBACK", "SET o.eps = 'v%'", "SET o.eps = 'v%'", "SET LOCAL o.eps = 'l%'", "RESET o.eps", "CLOSE c", "SELECT 1/0",
	"DECLARE c CURSOR FOR SELECT '#', k, draw() FROM four", "DECLARE c SCROLL CURSOR FOR SELECT '#', k, draw() FROM four", "DECLARE c NO SCROLL CURSOR FOR SELECT '#', k, draw() FROM four",
	"DECLARE c CURSOR WITH HOLD FOR SELECT '#', k, draw() FROM four", "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT '#', k, draw() FROM four",
	"DECLARE c SCROLL CURSOR FOR SELECT '#', k, draw() FROM four ORDER BY k DESC",
	"FETCH c", "FETCH NEXT c", "FETCH 2 FROM c", "FETCH ALL c", "FETCH FORWARD ALL c", "FETCH FIRST c", "FETCH LAST c", "FETCH PRIOR c", "FETCH ABSOLUTE 2 c", "FETCH ABSOLUTE -1 c",
	"FETCH ABSOLUTE 0 c", "FETCH RELATIVE 0 c", "FETCH RELATIVE 2 c", "FETCH RELATIVE -1 c", "FETCH 0 c", "FETCH FORWARD 0 IN c", "FETCH BACKWARD 2 c", "FETCH BACKWARD ALL IN c", "FETCH -1 c",
	"MOVE c", "MOVE ABSOLUTE 0 c", "MOVE BACKWARD ALL c", "MOVE FORWARD ALL c", "MOVE 0 c",
}

// TestCursorOracle reads cursors in random ways while a setting changes. Of a row that a client received in several
// versions, which the server drew with some value of the setting, at least as many answers are captured with this value.
func TestCursorOracle(t *testing.T) {
	t.Parallel()
	upstream := postgres.upstream(t)
	direct := connect(t, upstream.Address, "default_query_exec_mode=simple_protocol")
	if _, err := direct.Exec(t.Context(), cursorSetup); err != nil {
		t.Fatal(err)
	}
	p := start(t, upstream, nil)
	drawn := map[string]map[string]map[string]bool{} // versions by query and setting, by row
	number := 1000
	for seed := range uint64(25) {
		rnd := rand.New(rand.NewPCG(48, seed))
		conn := connect(t, p.addr, "").PgConn()
		for step := range 60 {
			var texts []string
			switch {
			case conn.TxStatus() == 'E':
				texts = append(texts, "ROLLBACK")
			case conn.TxStatus() == 'I' && step%2 == 0:
				texts = append(texts, "BEGIN", "DECLARE c SCROLL CURSOR FOR SELECT '#', k, draw() FROM four")
			}
			for range 1 + rnd.IntN(3)*rnd.IntN(2) {
				texts = append(texts, cursorStatements[rnd.IntN(len(cursorStatements))])
			}
			for i := range texts {
				number++
				texts[i] = strings.NewReplacer("#", fmt.Sprint(number), "%", fmt.Sprint(rnd.IntN(3))).Replace(texts[i])
			}
			for _, row := range cursorRows(conn, texts, rnd.IntN(2) == 0) {
				value, _, _ := strings.Cut(row[2], "/")
				key := row[0] + " " + value
				if drawn[key] == nil {
					drawn[key] = map[string]map[string]bool{}
				}
				if drawn[key][row[1]] == nil {
					drawn[key][row[1]] = map[string]bool{}
				}
				drawn[key][row[1]][row[2]] = true
			}
		}
		_ = conn.Close(t.Context())
	}
	probe(t, p)
	answers, unclear := map[string]int{}, map[string]int{}
	for _, q := range p.sink.all() {
		if _, text, ok := strings.Cut(q.SQL, "SELECT '"); ok && strings.HasPrefix(q.SQL, "DECLARE") {
			name, _, _ := strings.Cut(text, "'")
			if q.Doubt.Has("o.eps") {
				unclear[name]++
			}
			answers[name+" "+q.Settings["o.eps"]]++
		}
	}
	versions := 0
	for key, rows := range drawn {
		name, _, _ := strings.Cut(key, " ")
		for row, v := range rows {
			if versions += len(v); answers[key]+unclear[name] < len(v) {
				t.Errorf("row %s of query and setting %s was received in %d versions, %d answers are captured", row, key, len(v), answers[key])
			}
		}
	}
	if versions < 500 || len(unclear) > 0 {
		t.Errorf("%d versions, unclear: %v", versions, unclear)
	}
	if stats := p.Stats(); stats.UncapturedPairing+stats.UncapturedPanic+stats.UncapturedProtocol+stats.SkippedUnknownStatement != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// probe waits until everything before it is captured.
func probe(t *testing.T, p *running) {
	t.Helper()
	if _, err := connect(t, p.addr, "").PgConn().Exec(t.Context(), "SELECT 'probe'").ReadAll(); err != nil {
		t.Fatal(err)
	}
	p.sink.find(t, "SELECT 'probe'")
}

// cursorRows runs statements and returns the rows of three columns. Errors are part of the game.
func cursorRows(conn *pgconn.PgConn, texts []string, simple bool) (rows [][3]string) {
	var results *pgconn.MultiResultReader
	if simple {
		results = conn.Exec(context.Background(), strings.Join(texts, "; "))
	} else {
		batch := &pgconn.Batch{}
		for _, s := range texts {
			batch.ExecParams(s, nil, nil, nil, nil)
		}
		results = conn.ExecBatch(context.Background(), batch)
	}
	for results.NextResult() {
		r := results.ResultReader()
		for r.NextRow() {
			if v := r.Values(); len(v) == 3 {
				rows = append(rows, [3]string{string(v[0]), string(v[1]), string(v[2])})
			}
		}
		_, _ = r.Close()
	}
	_ = results.Close()
	return rows
}

// TestErrors: an error that a statement can meet when it runs is captured, whatever its code; one of parsing and
// analysis is not.
func TestErrors(t *testing.T) {
	t.Parallel()
	p := start(t, postgres.upstream(t), nil)
	conn := connect(t, p.addr, "").PgConn()
	run := func(sql string) { _, _ = conn.Exec(t.Context(), sql).ReadAll() }
	run(`CREATE SCHEMA errors; SET search_path = errors; CREATE TABLE people AS SELECT k FROM generate_series(1, 9) k; CREATE TABLE sink (v text);
		CREATE FUNCTION folded() RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'nine' USING ERRCODE = '42P01'; END $$;
		CREATE FUNCTION raises(state text, n bigint) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE '%', n USING ERRCODE = state; END $$;
		CREATE FUNCTION runs(text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN EXECUTE $1; RETURN 1; END $$;
		PREPARE p AS INSERT INTO sink SELECT current_setting(count(*)::text) FROM people`)
	const leak = "current_setting(count(*)::text) FROM people"
	for _, sql := range []string{
		"SELECT " + leak, "INSERT INTO sink SELECT " + leak, "CREATE TABLE made AS SELECT " + leak, "SELECT 1; INSERT INTO sink SELECT " + leak, "BEGIN; INSERT INTO sink SELECT " + leak,
		"INSERT INTO sink SELECT raises('42601', count(*)) FROM people", "INSERT INTO sink SELECT raises('26000', count(*)) FROM people", "INSERT INTO sink SELECT raises('25P02', count(*)) FROM people",
		"INSERT INTO sink SELECT raises('08P01', count(*)) FROM people", "INSERT INTO sink SELECT raises('22021', count(*)) FROM people", "INSERT INTO sink SELECT raises('0A000', count(*)) FROM people",
		"INSERT INTO sink SELECT runs('SELECT ' || count(*) || ' SYNTAX ERROR') FROM people", "INSERT INTO sink SELECT runs('SELECT nothing' || count(*)) FROM people",
		"DO $$ BEGIN PERFORM " + leak + "; END $$", "EXPLAIN SELECT folded()", "DECLARE c CURSOR WITH HOLD FOR SELECT " + leak, "BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT " + leak + "; COMMIT",
		"UPDATE sink SET v = (SELECT " + leak + ") WHERE v IS NULL RETURNING v",
	} {
		run("ROLLBACK")
		run("INSERT INTO sink VALUES (NULL)")
		number := len(p.sink.all())
		run(sql)
		last := sql[strings.LastIndex(sql, "; ")+1:]
		if strings.HasPrefix(sql, "DO") {
			last = sql
		}
		t.Run(sql, func(t *testing.T) { wantFailed(t, p, number, strings.TrimSpace(last)) })
	}
	run("ROLLBACK")
	run("EXECUTE p")
	t.Run("EXECUTE", func(t *testing.T) { wantFailed(t, p, 0, "INSERT INTO sink SELECT "+leak) })
	quiet := []string{"SELEC", "SELECT nothing FROM people", "SELECT nofunction()", "SELECT 'x'::int", "SELECT * FROM nowhere", "SELECT 1; SELECT * FROM nowhere", "INSERT INTO sink (w) VALUES (1)", "SELECT '" + strings.Repeat("long", 100) + "'::int", "FETCH nothing", "EXECUTE nothing"}
	for _, sql := range quiet {
		run(sql)
	}
	probe(t, p)
	for _, q := range p.sink.all() {
		for _, sql := range quiet {
			if q.Outcome != capture.Complete && strings.HasSuffix(sql, q.SQL) {
				t.Errorf("captured: %s %s", q.SQL, q.SQLState)
			}
		}
	}
}

// wantFailed waits for a failed statement after the first queries; of a cursor that COMMIT runs, that of DECLARE.
func wantFailed(t *testing.T, p *running, after int, sql string) {
	t.Helper()
	probe(t, p)
	for _, q := range p.sink.all()[after:] {
		if q.Outcome != capture.Complete && (q.SQL == sql || sql == "COMMIT" && strings.HasPrefix(q.SQL, "DECLARE")) {
			return
		}
	}
	t.Errorf("not captured as failed: %s", sql)
}
