package proxy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/clienttest"
)

// asyncpg has its own protocol implementation: binary format throughout, prepared statements, portals with a row limit,
// cancel requests.
const asyncpgScript = `
import asyncio, asyncpg, io, os
async def main():
    c = await asyncpg.connect(user="ann", host=os.environ["PGHOST"], port=int(os.environ["PGPORT"]), database=os.environ["PGDATABASE"], ssl=False)
    print([tuple(r) for r in await c.fetch("SELECT $1::int + 1, $2::text, $3::bytea, $4::float8[]", 41, None, b"\x00\xff", [1.5, None])])
    for i in range(3):
        print(await c.fetchval("SELECT $1::int * 2", i))
    await c.execute("CREATE TEMP TABLE t (a int, b text); INSERT INTO t VALUES (0, 'zero'); SELECT 1")
    await c.executemany("INSERT INTO t VALUES ($1, $2)", [(i, "x" * i) for i in range(1, 500)])
    print(await c.copy_records_to_table("t", records=[(i, str(i)) for i in range(1000)]))
    out = io.BytesIO()
    print(await c.copy_from_query("SELECT count(*), sum(length(b)) FROM t", output=out), out.getvalue())
    for sql in ("SELECT 1/0", "SELEC", "SELECT $1::int / 0"):
        try:
            await (c.fetch(sql, 1) if "$" in sql else c.execute(sql))
        except asyncpg.PostgresError as e:
            print(e.sqlstate)
    async with c.transaction():
        try:
            async with c.transaction():
                await c.execute("SELECT 1/0")
        except asyncpg.PostgresError as e:
            print("savepoint", e.sqlstate)
        total = 0
        async for r in c.cursor("SELECT generate_series(1, 500) AS i", prefetch=50):
            total += r["i"]
        print(total)
    try:
        await c.fetch("SELECT pg_sleep(600)", timeout=0.3)
    except asyncio.TimeoutError:
        print("cancelled")
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("news", lambda *a: heard.done() or heard.set_result(a[2:]))
    await c.execute("NOTIFY news, 'hello'")
    print(await heard)
    await c.execute("SELECT 'done'"); await c.close()
asyncio.run(main())
`

const javaSource = `
import java.io.*;
import java.sql.*;
import java.util.*;
import org.postgresql.*;
public class Client {
  static void note(Object... v) { System.out.println(Arrays.deepToString(v)); }
  public static void main(String[] args) throws Exception {
    Locale.setDefault(Locale.ROOT);
    for (String mode : new String[] {"simple", "extended"}) run(mode);
  }
  static void run(String mode) throws Exception {
    String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
    Properties p = new Properties();
    p.put("user", "ann"); p.put("sslmode", "disable"); p.put("preferQueryMode", mode); p.put("prepareThreshold", "2");
    try (Connection c = DriverManager.getConnection(url, p)) {
      note(mode);
      try (PreparedStatement s = c.prepareStatement("SELECT ?::int + 1, ?::text, ?::float8")) {
        for (int i = 0; i < 5; i++) { // at the second one it becomes a named statement, at the third binary
          s.setInt(1, i); s.setString(2, i % 2 == 0 ? null : "it's"); s.setDouble(3, i / 2.0);
          try (ResultSet r = s.executeQuery()) { r.next(); note(r.getInt(1), r.getString(2), r.getDouble(3)); }
        }
      }
      try (Statement s = c.createStatement()) {
        s.execute("CREATE TEMP TABLE t (a serial, b text); INSERT INTO t (b) VALUES ('one'), ('two')");
        note(s.getMoreResults(), s.getUpdateCount());
        for (String sql : new String[] {"SELECT 1/0", "SELEC"}) try { s.execute(sql); } catch (SQLException e) { note(e.getSQLState()); }
      }
      c.setAutoCommit(false);
      try (PreparedStatement s = c.prepareStatement("INSERT INTO t (b) VALUES (?)", Statement.RETURN_GENERATED_KEYS)) {
        for (int i = 0; i < 700; i++) { s.setString(1, "x".repeat(i)); s.addBatch(); }
        note(s.executeBatch().length);
      }
      c.commit();
      try (PreparedStatement s = c.prepareStatement("INSERT INTO t (a) VALUES (1 / ?)")) {
        for (int i = 3; i >= -1; i--) { s.setInt(1, i); s.addBatch(); }
        s.executeBatch();
      } catch (BatchUpdateException e) { note(e.getSQLState()); }
      c.rollback();
      try (PreparedStatement s = c.prepareStatement("SELECT a FROM t ORDER BY a")) {
        s.setFetchSize(100); // a portal that is suspended
        long sum = 0;
        try (ResultSet r = s.executeQuery()) { while (r.next()) sum += r.getInt(1); }
        note(sum);
      }
      Savepoint point = c.setSavepoint("here");
      try (Statement s = c.createStatement()) { s.execute("SELECT 1/0"); } catch (SQLException e) { c.rollback(point); note("savepoint"); }
      c.commit();
      var copy = c.unwrap(PGConnection.class).getCopyAPI();
      note(copy.copyIn("COPY t (a, b) FROM STDIN", new StringReader("1\tone\n2\t\\N\n")));
      try { copy.copyIn("COPY t (a, b) FROM STDIN", new StringReader("x\tbad\n")); } catch (SQLException e) { note(e.getSQLState()); c.rollback(); }
      StringWriter out = new StringWriter();
      copy.copyOut("COPY (SELECT count(*), sum(length(b)) FROM t) TO STDOUT", out); note(out.toString().trim());
      c.commit();
      try (Statement s = c.createStatement()) { s.setQueryTimeout(1); s.execute("SELECT pg_sleep(600)"); } catch (SQLException e) { note("timeout", e.getSQLState()); }
      c.rollback();
    }
  }
}
`

func runJDBC(t *testing.T, addr, database string) string {
	source := filepath.Join(t.TempDir(), "Client.java")
	if err := os.WriteFile(source, []byte(javaSource), 0o600); err != nil {
		t.Fatal(err)
	}
	return runTool(t, addr, database, "", "java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", clienttest.Java(t), source)
}

func runTokioPostgres(t *testing.T, addr, database string) string {
	return runTool(t, addr, database, "", filepath.Join(clienttest.Rust(t), "conformance"))
}

const cursorScript = `
const { Client } = require('pg');
const Cursor = require('pg-cursor'), QueryStream = require('pg-query-stream');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const c = new Client({ user: 'ann', host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE });
  await c.connect();
  const k = c.query(new Cursor('SELECT generate_series(1, $1) AS i', [25]));
  for (let rows; (rows = await k.read(10)).length; ) note(rows.length);
  await k.close();
  const early = c.query(new Cursor('SELECT generate_series(1, 1000) AS i'));
  note((await early.read(3)).length);
  await early.close(); // before its end
  const bad = c.query(new Cursor('SELECT 10 / (5 - i) AS n FROM generate_series(1, 10) i'));
  try { note((await bad.read(3)).length); note((await bad.read(3)).length); } catch (e) { note(e.code); }
  let sum = 0;
  for await (const r of c.query(new QueryStream('SELECT generate_series(1, 5000) AS i', [], { batchSize: 100 }))) sum += r.i;
  note(sum);
  note((await c.query("SELECT 'done' AS d")).rows);
  await c.end();
})().catch(e => { console.error(e); process.exit(1); });
`

const postgresJSScript = `
const postgres = require('postgres');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const sql = postgres({ user: 'ann', host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE, max: 1, fetch_types: false, onnotice: n => note('notice', n.message) });
  note(await sql` + "`SELECT ${41}::int + 1 AS n, ${null}::text AS t, ${Buffer.from([0, 255])}::bytea AS b`" + `);
  note((await Promise.all([1, 2, 3, 4, 5].map(i => sql` + "`SELECT ${i}::int * 10 AS n`" + `))).map(r => r[0].n)); // pipelined
  note((await sql.unsafe('SELECT 1 AS a; SELECT 2 AS b')).map(r => r[0]));
  await sql` + "`CREATE TABLE IF NOT EXISTS pj (a int, b text)`" + `;
  await sql` + "`INSERT INTO pj ${sql([{ a: 1, b: 'one' }, { a: 2, b: null }])}`" + `;
  for (const q of ['SELECT 1/0', 'SELEC']) { try { await sql.unsafe(q); } catch (e) { note(e.code); } }
  try {
    await sql.begin(async tx => { await tx` + "`INSERT INTO pj VALUES (3, 'x')`" + `; await tx.savepoint(s => s` + "`SELECT 1/0`" + `).catch(e => note('savepoint', e.code)); throw new Error('undo'); });
  } catch (e) { note(e.message); }
  note(await sql` + "`SELECT count(*)::int FROM pj`" + `);
  let sum = 0;
  await sql` + "`SELECT generate_series(1, 500) AS i`" + `.cursor(50, rows => { for (const r of rows) sum += r.i; });
  note(sum);
  const w = await sql` + "`COPY pj FROM STDIN`" + `.writable();
  await new Promise((done, fail) => { w.on('error', fail); w.on('finish', done); w.write('4\tfour\n'); w.end('5\t\\N\n'); });
  let out = '';
  for await (const chunk of await sql` + "`COPY (SELECT a, b FROM pj ORDER BY a) TO STDOUT`" + `.readable()) out += chunk;
  note(out);
  const slow = sql` + "`SELECT pg_sleep(600)`" + `; setTimeout(() => slow.cancel(), 300);
  try { await slow; } catch (e) { note(e.code); }
  await sql` + "`DROP TABLE pj`" + `;
  await sql.end();
})().catch(e => { console.error(e); process.exit(1); });
`

// psqlCommands uses psql's own protocol features: describing without executing, cursors, repetition.
const psqlCommands = `
\set FETCH_COUNT 7
SELECT generate_series(1, 20);
SELECT 1/(10 - i) FROM generate_series(1, 20) i;
\unset FETCH_COUNT
SELECT 1 AS one, 'x'::text AS two \gdesc
SELECT r, c, r * c FROM generate_series(1, 3) r, generate_series(1, 3) c \crosstabview
SELECT 'SELECT ' || i FROM generate_series(1, 3) i \gexec
SELECT 42 AS answer \gset
SELECT :answer;
CREATE SEQUENCE w;
\t on
SELECT 6 / (4 - nextval('w')) \watch 0.01
\t off
\set ON_ERROR_ROLLBACK on
BEGIN; SELECT 1; SELECT 1/0; SELECT 2; COMMIT;
SELECT 1 \; SELECT 2 \; SELECT 3;
BEGIN \; SELECT 4 \; ROLLBACK AND CHAIN \; SELECT 5; ROLLBACK;
\set SHOW_ALL_RESULTS off
SELECT 6 \; SELECT 7;
\encoding LATIN1
SELECT 'é';
\encoding UTF8
\d w
DROP SEQUENCE w;
`

func runPsqlCommands(t *testing.T, addr, database string) string {
	return runTool(t, addr, database, psqlCommands, postgres.tool("psql"), "-X", "-A")
}

// runPgRestore dumps and restores a database over several concurrent connections, and compares the result with the
// original.
func runPgRestore(t *testing.T, addr, database string) string {
	runTool(t, addr, database, `
		SET client_min_messages = warning; DROP SCHEMA IF EXISTS moved CASCADE; CREATE SCHEMA moved;
		CREATE TABLE moved.a AS SELECT i, repeat('x', i % 50) AS x FROM generate_series(1, 3000) i;
		CREATE TABLE moved.b (i int PRIMARY KEY, t text DEFAULT 'é;\n'); INSERT INTO moved.b SELECT generate_series(1, 100);
		CREATE INDEX ON moved.a (i); CREATE VIEW moved.v AS SELECT count(*) FROM moved.a JOIN moved.b USING (i);
		SELECT lo_from_bytea(0, '\x0001ff') \gset
		SELECT lo_unlink(:lo_from_bytea);`, postgres.tool("psql"), "-X", "-q")
	dump := func() string {
		out := runTool(t, addr, database, "", postgres.tool("pg_dump"), "-n", "moved")
		return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(out, "")
	}
	before := dump()
	for i, args := range [][]string{{"-Fd", "-j", "3"}, {"-Fc"}} {
		file := filepath.Join(t.TempDir(), "dump")
		runTool(t, addr, database, "", postgres.tool("pg_dump"), append(args, "-n", "moved", "-f", file)...)
		runTool(t, addr, database, "DROP SCHEMA moved CASCADE", postgres.tool("psql"), "-X", "-q")
		restore := [][]string{{"-j", "3"}, {"--single-transaction"}}[i]
		runTool(t, addr, database, "", postgres.tool("pg_restore"), append(restore, "-d", database, file)...)
		if after := dump(); after != before {
			t.Errorf("restored with %v: %d bytes of a dump, %d before", restore, len(after), len(before))
		}
	}
	return before
}

// runReceiveWAL uses the replication protocol with CopyBoth.
func runReceiveWAL(t *testing.T, addr, database string) string {
	lsn := runTool(t, addr, database, "SELECT pg_switch_wal() \\g /dev/null\nSELECT pg_logical_emit_message(false, 'x', repeat('y', 100000)) \\g /dev/null\nSELECT pg_current_wal_flush_lsn()",
		postgres.tool("psql"), "-X", "-A", "-t", "-q")
	dir := t.TempDir()
	runTool(t, addr, database, "", postgres.tool("pg_receivewal"), "-D", dir, "--no-loop", "--synchronous", "-E", strings.TrimSpace(lsn))
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	if err != nil || len(files) == 0 {
		t.Errorf("no segment was received: %v", err)
	}
	return "the log was received"
}
