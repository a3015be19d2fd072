package proxy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dpwatch/dpwatch/internal/clienttest"
)

const nodeScript = `
const { Client } = require('pg');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const c = new Client({ user: 'ann', host: process.env.PGHOST, port: +process.env.PGPORT, database: process.env.PGDATABASE });
  c.on('notification', n => note('notification', n.channel, n.payload));
  c.on('notice', n => note('notice', n.message));
  await c.connect();
  note((await c.query('SELECT 1 AS a; SELECT 2 AS b')).map(r => r.rows));
  for (let i = 0; i < 3; i++) note((await c.query({ name: 'named', text: 'SELECT $1::int + 1 AS n, $2::text AS t', values: [i, null] })).rows);
  note((await c.query('SELECT $1::bytea AS b', [Buffer.from([0, 1, 255])])).rows[0].b.toString('hex'));
  for (const sql of ['SELECT 1/0', 'SELEC', 'SELECT $1::int']) {
    try { await c.query(sql, sql.includes('$') ? ['x'] : undefined); } catch (e) { note(e.code); }
  }
  note((await Promise.all([1, 2, 3, 4].map(i => c.query('SELECT $1::int * 10 AS n', [i])))).map(r => r.rows[0].n));
  await c.query('LISTEN news'); await c.query("NOTIFY news, 'hello'");
  await c.query("DO $$ BEGIN RAISE NOTICE 'a notice'; END $$");
  await c.query('BEGIN'); await c.query("SET LOCAL dp.epsilon = '0.5'"); note((await c.query('SHOW dp.epsilon')).rows); await c.query('ROLLBACK');
  note((await c.query({ text: 'SELECT generate_series(1, 5) AS i', rowMode: 'array' })).rows);
  note((await c.query("SELECT length($1) AS n", ['x'.repeat(1 << 18)])).rows);
  await c.end();
})().catch(e => { console.error(e); process.exit(1); });
`

func runNode(text string) func(t *testing.T, addr, database string) string {
	return func(t *testing.T, addr, database string) string {
		script := filepath.Join(t.TempDir(), "client.js")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return runTool(t, addr, database, "", "env", "NODE_PATH="+clienttest.Node(t), "node", "--no-deprecation", script)
	}
}

const psycopg2Script = `
import psycopg2, psycopg2.extras, io, os
c = psycopg2.connect(user="ann", host=os.environ["PGHOST"], port=os.environ["PGPORT"], dbname=os.environ["PGDATABASE"])
k = c.cursor()
k.execute("SELECT %s + 1, %s, %s", (41, "it's", None)); print(k.fetchall())
k.execute("CREATE TEMP TABLE t (a int, b text)")
k.copy_expert("COPY t FROM STDIN", io.StringIO("1\tone\n2\t\\N\n"))
out = io.StringIO(); k.copy_expert("COPY t TO STDOUT CSV", out); print(out.getvalue())
psycopg2.extras.execute_values(k, "INSERT INTO t VALUES %s", [(i, str(i)) for i in range(1000)])
n = c.cursor("server_side"); n.itersize = 100
n.execute("SELECT a FROM t ORDER BY a"); print(sum(r[0] for r in n)); n.close()
for sql in ("SELECT 1/0", "SELEC"):
    try:
        k.execute(sql)
    except psycopg2.Error as e:
        print(e.pgcode); c.rollback()
c.commit()
lo = c.lobject(0, "wb"); lo.write(b"large" * 1000); lo.close()
lo = c.lobject(lo.oid, "rb"); print(len(lo.read())); lo.unlink(); c.commit()
k.execute("SELECT 'done'"); print(k.fetchone()); c.close()
`

const psycopgScript = `
import psycopg, os, logging
logging.disable(logging.CRITICAL)
c = psycopg.connect(user="ann", host=os.environ["PGHOST"], port=os.environ["PGPORT"], dbname=os.environ["PGDATABASE"])
print(c.execute("SELECT %s::int + 1, %s::text, %s::bytea", (41, None, b"\x00\xff")).fetchall())
for i in range(8):
    print(c.execute("SELECT %s::int * 2", (i,), prepare=True).fetchone())
print(c.cursor(binary=True).execute("SELECT 1.5::float8, '2020-01-01'::date").fetchone())
try:
    with c.transaction():
        c.execute("SELECT 1/0")
except psycopg.Error as e:
    print(e.sqlstate)
k = c.cursor(); k.execute("CREATE TEMP TABLE t (a int, b text)")
with k.copy("COPY t FROM STDIN") as w:
    for i in range(500):
        w.write_row((i, "x" * i))
with k.copy("COPY (SELECT count(*), sum(length(b)) FROM t) TO STDOUT") as r:
    print(list(r.rows()))
try:
    with k.copy("COPY t FROM STDIN") as w:
        w.write_row((1, "a")); raise RuntimeError("client gives up")
except Exception as e:
    print(type(e).__name__)
c.rollback()
try:
    with c.pipeline() as p:
        a = c.execute("SELECT %s::int", (1,)); b = c.execute("SELECT %s::int", (2,)); p.sync(); print(a.fetchone(), b.fetchone())
        d = c.execute("SELECT 1/%s::int", (0,)); e = c.execute("SELECT 3"); p.sync()
except psycopg.Error as e:
    print(e.sqlstate)
c.rollback()
with c.cursor(name="server_side") as s:
    s.itersize = 50
    s.execute("SELECT generate_series(1, 500)"); print(sum(r[0] for r in s))
c.execute("SELECT 'done'"); c.close()
`

func runPython(script string) func(t *testing.T, addr, database string) string {
	return func(t *testing.T, addr, database string) string {
		return runTool(t, addr, database, script, clienttest.Python(t), "-")
	}
}
