const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor'), QueryStream = require('pg-query-stream');
const { epsilon, sent, options, run } = require('./dp');

const BOUND = 'SELECT dp_count(count(*), $1) FROM people WHERE grp = $2';
const SETTING = 'SELECT noisy(count(*), 4) FROM people';
const GROUPS = 'SELECT grp, dp_count(count(*), $1) FROM people GROUP BY grp';

async function queries(c) {
  let e = epsilon();
  await c.query(`SELECT dp_count(count(*), ${e}) FROM people`);
  sent(e);
  for (const group of [0, 1, 2]) {
    e = epsilon();
    await c.query(BOUND, [e, group]);
    sent(e, [e, group]);
  }
  for (let i = 0; i < 3; i++) {
    e = epsilon();
    await c.query({ name: 'by group', text: BOUND, values: [e, i] });
    sent(e, [e, i]);
  }
  e = epsilon();
  for (let i = 0; i < 3; i++) await c.query({ name: 'by group', text: BOUND, values: [e, 1], rowMode: 'array' });
  sent(e, [e, 1], { times: 3 });
  e = epsilon();
  await c.query('SELECT dp_count(count(*), $1) FROM people WHERE grp = ANY($2)', [e, [0, 1]]);
  sent(e, [e, '{"0","1"}']);
  const [first, second] = [epsilon(), epsilon()];
  await c.query(`SELECT dp_count(count(*), ${first}) FROM people; SELECT 1; SELECT dp_count(count(*), ${second}) FROM people`);
  sent(first);
  sent(second);
  await Promise.all([0, 1, 2].map((group) => { const e = epsilon(); sent(e, [e, group]); return c.query(BOUND, [e, group]); }));
}

async function cursors(c) {
  let e = epsilon();
  const k = c.query(new Cursor(GROUPS, [e]));
  while ((await k.read(1)).length);
  await k.close();
  sent(e, [e]);
  e = epsilon();
  const early = c.query(new Cursor(GROUPS, [e]));
  await early.read(1);
  await early.close(); // before its end
  sent(e, [e]);
  e = epsilon();
  for await (const _ of c.query(new QueryStream(GROUPS, [e], { batchSize: 1 })));
  sent(e, [e]);
}

async function transactions(c) {
  await c.query('BEGIN');
  let e = epsilon();
  await c.query(BOUND, [e, 1]);
  sent(e, [e, 1]);
  await c.query('SAVEPOINT a');
  e = epsilon();
  await c.query('SELECT dp_count(count(*), $1) / (count(*) - 50) FROM people', [e]).catch(() => sent(e, [e]));
  await c.query(BOUND, [0.5, 1]).catch(() => {}); // not run
  await c.query('ROLLBACK TO a');
  const local = epsilon();
  await c.query("SELECT set_config('dp.epsilon', $1, true)", [String(local)]);
  await c.query(SETTING);
  sent(local, [], { source: 'setting' });
  await c.query('COMMIT');
  e = epsilon();
  await c.query(`SET dp.epsilon = '${e}'`);
  await c.query(SETTING);
  sent(e, [], { source: 'setting' });
  await c.query(SETTING + ' WHERE grp = $1', [1]);
  sent(e, [1], { source: 'setting' });
  await c.query('RESET dp.epsilon');
  for (const sql of ['SELEC', 'SELECT dp_count(count(*), 0.5) FROM nothing']) await c.query(sql).catch(() => {});
}

run(async () => {
  const pool = new Pool({ ...options, max: 3 });
  const c = await pool.connect();
  for (const step of [queries, cursors, transactions]) await step(c);
  c.release();
  await Promise.all(Array.from({ length: 12 }, (_, i) => { const e = epsilon(); sent(e, [e, i % 3]); return pool.query(BOUND, [e, i % 3]); }));
  await pool.end();
  const e = epsilon();
  const alone = new Client({ ...options, options: `-c dp.epsilon=${e}` });
  await alone.connect();
  await alone.query(SETTING);
  sent(e, [], { source: 'setting' });
  await alone.end();
});
