const { Client } = require('pg');
const Cursor = require('pg-cursor'), QueryStream = require('pg-query-stream');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const c = new Client();
  await c.connect();
  const k = c.query(new Cursor('SELECT generate_series(1, $1) AS i', [25]));
  for (let rows; (rows = await k.read(10)).length; ) note(rows.length);
  await k.close();
  const early = c.query(new Cursor('SELECT generate_series(1, 1000) AS i'));
  note((await early.read(3)).length);
  await early.close(); // before its end
  // PostgreSQL only: an error after the first rows
  const bad = c.query(new Cursor('SELECT 10 / (5 - i) AS n FROM generate_series(1, 10) i'));
  try { note((await bad.read(3)).length); note((await bad.read(3)).length); } catch (e) { note(e.code); }
  // end
  let sum = 0;
  for await (const r of c.query(new QueryStream('SELECT generate_series(1, 5000) AS i', [], { batchSize: 100 }))) sum += r.i;
  note(sum);
  note((await c.query("SELECT 'done' AS d")).rows);
  await c.end();
})().catch(e => { console.error(e); process.exit(1); });
