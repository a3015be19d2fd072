package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// shopEngine is the noise function of an engine inside the database, on a grid.
const shopEngine = `CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
	AS 'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024';
	CREATE TABLE products (id int PRIMARY KEY, price float8); INSERT INTO products SELECT i, i FROM generate_series(1, 10) i;`

// shopTables are four levels of foreign keys below a person; person 1 buys far more than the others.
const shopTables = `
	CREATE TABLE users (id int PRIMARY KEY, region text);
	CREATE TABLE accounts (id int PRIMARY KEY, user_id int NOT NULL REFERENCES users);
	CREATE TABLE orders (id int PRIMARY KEY, account_id int NOT NULL REFERENCES accounts);
	CREATE TABLE items (order_id int REFERENCES orders, line int, product_id int REFERENCES products, quantity int, PRIMARY KEY (order_id, line));
	INSERT INTO users SELECT i, 'r' || i % 3 FROM generate_series(1, 50) i;
	INSERT INTO accounts SELECT i, 1 + i % 50 FROM generate_series(1, 100) i;
	INSERT INTO orders SELECT i, 1 + i % 100 FROM generate_series(1, 300) i;
	INSERT INTO orders SELECT 1000 + i, (SELECT min(id) FROM accounts WHERE user_id = 1) FROM generate_series(1, 200) i;
	INSERT INTO items SELECT o.id, l, 1 + (o.id + l) % 10, 1 FROM orders o, generate_series(1, 3) l;`

// The whole procedure of a user: neighbours of a production database by foreign keys, a proxy in front of it, and live
// queries that join five tables. One query clips each person's contribution, the other does not.
func TestFiveTableJoin(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := &sidecar{direct: pgtest.Database(t)}
	shadow := pgtest.Database(t)
	pgtest.Exec(t, s.direct, shopEngine+shopTables)
	pgtest.Exec(t, shadow, shopEngine)
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, twin: none} # a control blocks a right violation with probability up to 1/20
privacy:
  protected: [public.users, public.accounts, public.orders, public.items]
  public: [public.products]
  unit: {table: public.users, key: id}
  catalog: %q
neighbours: {source: %q, choose: [{rule: most_rows}, {rule: random, seed: 7}]}
claims: {safe_functions: [noisy], trust: [comment]}
audit: {measure_trials: 0, max_trials: 500, confidence: 0.999999, share: 1, sequences: false}
`, cfg.Host, cfg.Port, shadow, s.direct, s.direct))
	for _, command := range []string{"create", "verify"} {
		var out bytes.Buffer
		code := run(t.Context(), []string{"neighbours", command, "--config", path},
			environment{Getenv: func(string) string { return "" }, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
		if code != exitDone {
			t.Fatalf("neighbours %s: exit code %d\n%s", command, code, &out)
		}
	}
	s.run(t, path)

	const join = `SELECT u.id, sum(i.quantity * p.price) AS spent FROM users u JOIN accounts a ON a.user_id = u.id
		JOIN orders o ON o.account_id = a.id JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id GROUP BY u.id`
	conn := s.connect(t)
	// No person counts for more than 150, so with this noise the true epsilon of the first query is half of its claim.
	exec0(t, conn, "SELECT noisy(sum(least(spent, 150)), 300) FROM ("+join+") x /*dp_epsilon='1'*/")
	exec0(t, conn, "SELECT noisy(sum(spent), 300) FROM ("+join+") x /*dp_epsilon='1'*/")
	s.until(t, "both audits are decided", func() bool {
		audits := s.status(t).Audit.Audits
		return len(audits) == 2 && audits[0].State == "decided" && audits[1].State == "decided"
	})
	for i, want := range []string{"no_evidence", "violation"} {
		if e := s.status(t).Audit.Audits[i]; e.Report.Verdict != want || strings.Contains(strings.Join(e.Assumed, " "), "no catalog") {
			t.Errorf("audit %d: %s (%s), assumed %q; want %s", i, e.Report.Verdict, e.Report.Reason, e.Assumed, want)
		}
	}
	if e := s.status(t).Audit.Audits[1]; e.Neighbour != "d1_1" {
		t.Errorf("the violation shows on %s, want d1_1, without the person with most rows", e.Neighbour)
	}
}
