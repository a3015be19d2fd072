const { Sequelize, DataTypes, QueryTypes, Transaction, fn, col, literal } = require('sequelize');
const { epsilon, sent, options, run } = require('./dp');

run(async () => {
  const db = new Sequelize(options.database, options.user, options.password, {
    dialect: 'postgres', host: options.host, port: options.port, logging: false, pool: { max: 2, acquire: 600000 }, dialectOptions: { application_name: options.application_name },
  });
  await db.authenticate();
  const Person = db.define('Person', { id: { type: DataTypes.INTEGER, primaryKey: true }, grp: DataTypes.INTEGER }, { tableName: 'people', timestamps: false });
  const noised = (e) => [fn('dp_count', fn('count', col('id')), e), 'n'];
  await Person.findByPk(1);
  let e = epsilon();
  await Person.findAll({ attributes: [noised(e)], raw: true });
  sent(e);
  for (const grp of [0, 1, 2]) {
    e = epsilon();
    await Person.findOne({ attributes: [noised(e)], where: { grp }, raw: true });
    sent(e);
  }
  e = epsilon();
  for (let i = 0; i < 3; i++) await Person.findAll({ attributes: ['grp', noised(e)], where: { grp: [1, 2] }, group: 'grp', order: ['grp'], raw: true });
  sent(e, [], { times: 3 });
  e = epsilon();
  await Person.findAll({ attributes: ['grp', [literal(`dp_count(count(*), ${e})`), 'n']], group: 'grp', having: literal('count(*) > 1'), raw: true });
  sent(e);
  e = epsilon();
  await db.query('SELECT dp_count(count(*), :e) FROM people WHERE grp = :grp', { replacements: { e, grp: 1 }, type: QueryTypes.SELECT });
  sent(e);
  e = epsilon();
  await db.query('SELECT dp_count(count(*), $1) FROM people WHERE grp = $2', { bind: [e, 1], type: QueryTypes.SELECT });
  sent(e, [e, 1]);
  e = epsilon();
  await db.query('SELECT dp_count(count(*), $e) FROM people WHERE grp = $grp', { bind: { e, grp: 2 }, type: QueryTypes.SELECT });
  sent(e, [e, 2]);

  await db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ }, async (transaction) => {
    e = epsilon();
    await db.query("SELECT set_config('dp.epsilon', $1, true)", { bind: [String(e)], transaction });
    await Person.findAll({ attributes: [[fn('noisy', fn('count', col('id')), 4), 'n']], raw: true, transaction });
    sent(e, [], { source: 'setting' });
  });
  await db.transaction(async (transaction) => {
    e = epsilon();
    await Person.findAll({ attributes: [noised(e)], raw: true, transaction });
    sent(e);
    e = epsilon();
    await db.query('SELECT dp_count(count(*), $1) / (count(*) - 50) FROM people', { bind: [e], transaction });
  }).catch(() => sent(e, [e]));
  await Promise.all([0, 1, 2, 3, 4, 5].map((i) => {
    const e = epsilon();
    sent(e);
    return Person.findAll({ attributes: [noised(e)], where: { grp: i % 3 }, raw: true });
  }));
  await db.close();
});
