// Epsilons of a client's DP statements, and the lines that say what was sent.
let n = 0;
exports.epsilon = () => Math.round((+process.env.DP_BASE + ++n / 10000) * 10000) / 10000;
exports.sent = (epsilon, params = [], { source = 'argument', times = 1 } = {}) => console.log(JSON.stringify({ epsilon, source, params: params.map(String), times }));
exports.options = {
  host: process.env.PGHOST, port: +process.env.PGPORT, user: process.env.PGUSER, password: process.env.PGPASSWORD, database: process.env.PGDATABASE,
  application_name: process.env.PGAPPNAME,
};
exports.run = (main) => main().catch((e) => { console.error(e); process.exit(1); });
