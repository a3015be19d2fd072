const postgres = require('postgres');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const sql = postgres({ max: 1, fetch_types: false, onnotice: n => note('notice', n.message) });
  note(await sql`SELECT ${41}::int + 1 AS n, ${null}::text AS t, ${Buffer.from([0, 255])}::bytea AS b`);
  note((await Promise.all([1, 2, 3, 4, 5].map(i => sql`SELECT ${i}::int * 10 AS n`))).map(r => r[0].n)); // pipelined
  // PostgreSQL only: several statements in a query
  note((await sql.unsafe('SELECT 1 AS a; SELECT 2 AS b')).map(r => r[0]));
  // end
  // PostgreSQL only: types of parameters
  await sql`CREATE TABLE IF NOT EXISTS pj (a int, b text)`;
  await sql`INSERT INTO pj ${sql([{ a: 1, b: 'one' }, { a: 2, b: null }])}`;
  // end
  for (const q of ['SELECT 1/0', 'SELEC']) { try { await sql.unsafe(q); } catch (e) { note(e.code); } }
  // PostgreSQL only: changes
  try {
    await sql.begin(async tx => { await tx`INSERT INTO pj VALUES (3, 'x')`; await tx.savepoint(s => s`SELECT 1/0`).catch(e => note('savepoint', e.code)); throw new Error('undo'); });
  } catch (e) { note(e.message); }
  note(await sql`SELECT count(*)::int FROM pj`);
  // end
  await sql.begin(async tx => { await tx.savepoint(s => s`SELECT 1/0`).catch(e => note('savepoint', e.code)); note(await tx`SELECT 3 AS n`); });
  let sum = 0;
  await sql`SELECT generate_series(1, 500) AS i`.cursor(50, rows => { for (const r of rows) sum += r.i; });
  note(sum);
  // PostgreSQL only: COPY
  const w = await sql`COPY pj FROM STDIN`.writable();
  await new Promise((done, fail) => { w.on('error', fail); w.on('finish', done); w.write('4\tfour\n'); w.end('5\t\\N\n'); });
  let out = '';
  for await (const chunk of await sql`COPY (SELECT a, b FROM pj ORDER BY a) TO STDOUT`.readable()) out += chunk;
  note(out);
  await sql`DROP TABLE pj`;
  // end
  const slow = sql`SELECT pg_sleep(600)`; setTimeout(() => slow.cancel(), 300);
  try { await slow; } catch (e) { note(e.code); }
  await sql.end();
})().catch(e => { console.error(e); process.exit(1); });
