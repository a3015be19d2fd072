const { Client } = require('pg');
(async () => {
  const note = (...v) => console.log(JSON.stringify(v));
  const c = new Client();
  c.on('notification', n => note('notification', n.channel, n.payload));
  c.on('notice', n => note('notice', n.message));
  await c.connect();
  // PostgreSQL only: several statements in a query
  note((await c.query('SELECT 1 AS a; SELECT 2 AS b')).map(r => r.rows));
  // end
  for (let i = 0; i < 3; i++) note((await c.query({ name: 'named', text: 'SELECT $1::int + 1 AS n, $2::text AS t', values: [i, null] })).rows);
  // PostgreSQL only: a parameter in binary of a type that the client neither declares nor asks for
  note((await c.query('SELECT $1::bytea AS b', [Buffer.from([0, 1, 255])])).rows[0].b.toString('hex'));
  // end
  for (const sql of ['SELECT 1/0', 'SELEC', 'SELECT $1::int']) {
    try { await c.query(sql, sql.includes('$') ? ['x'] : undefined); } catch (e) { note(e.code); }
  }
  note((await Promise.all([1, 2, 3, 4].map(i => c.query('SELECT $1::int * 10 AS n', [i])))).map(r => r.rows[0].n));
  // PostgreSQL only: LISTEN, notices, settings of any name
  await c.query('LISTEN news'); await c.query("NOTIFY news, 'hello'");
  await c.query("DO $$ BEGIN RAISE NOTICE 'a notice'; END $$");
  await c.query('BEGIN'); await c.query("SET LOCAL dp.epsilon = '0.5'"); note((await c.query('SHOW dp.epsilon')).rows); await c.query('ROLLBACK');
  // end
  await c.query('BEGIN'); await c.query('SAVEPOINT here'); await c.query('SELECT 1/0').catch(e => note(e.code)); await c.query('SELECT 1').catch(e => note(e.code));
  await c.query('ROLLBACK TO here'); note((await c.query('SELECT 2.50::numeric AS n')).rows); await c.query('SELEC').catch(e => note(e.code)); note((await c.query('COMMIT')).command);
  note((await c.query({ text: 'SELECT generate_series(1, 5) AS i', rowMode: 'array' })).rows);
  note((await c.query("SELECT length($1) AS n", ['x'.repeat(1 << 18)])).rows);
  await c.end();
})().catch(e => { console.error(e); process.exit(1); });
