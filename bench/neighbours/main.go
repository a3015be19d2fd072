// Package neighbours measures the cost of neighbours for each way of storing them: the time to create and to verify a
// set, its disk space, and the times of the same queries on D0 and on a neighbour. It writes markdown. See
// docs/neighbours.md.
package neighbours

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/bench/kit"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// Run measures with the arguments of the command line, and prints tables in markdown.
func Run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("neighbours", flag.ContinueOnError)
	rows := fs.Int("rows", 10_000_000, "rows of the larger table; the smaller has one for every 100")
	k := fs.Int("neighbours", 8, "neighbours")
	if err := fs.Parse(args); err != nil {
		return err
	}
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "8GB"}})
	if err != nil {
		return err
	}
	defer cluster.Stop() //nolint:errcheck // says so itself
	for _, name := range []string{"source", "shadow"} {
		if err := cluster.CreateDatabase(ctx, name); err != nil {
			return err
		}
	}
	b := &bench{source: cluster.DSN("source"), shadow: cluster.DSN("shadow"), rows: *rows, k: *k}
	return b.all(ctx)
}

type bench struct {
	source, shadow string
	rows, k        int
}

// generate creates users and transactions; user 1 has one in 200 of all, the others about 100 each.
const generate = `
CREATE TABLE users (id int PRIMARY KEY, region int NOT NULL, income double precision);
CREATE TABLE tx (id bigint PRIMARY KEY, user_id int REFERENCES users (id), store int NOT NULL, spent double precision, at timestamptz NOT NULL);
INSERT INTO users SELECT i, i %% 50, 1000 + i %% 977 FROM generate_series(1, %[1]d / 100) i;
INSERT INTO tx SELECT i, CASE WHEN i %% 200 = 0 THEN 1 ELSE 1 + (hashint8(i) & 2147483647) %% (%[1]d / 100) END, i %% 1000, (i * 7) %% 503, timestamptz '2024-01-01 UTC' + i * interval '1 second'
  FROM generate_series(1, %[1]d) i;
CREATE INDEX ON tx (user_id);
CREATE INDEX ON tx (store, at);
VACUUM ANALYZE`

func (b *bench) all(ctx context.Context) error {
	source, err := pgx.Connect(ctx, b.source)
	if err != nil {
		return err
	}
	defer source.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read from here on
	for sql := range strings.SplitSeq(fmt.Sprintf(generate, b.rows), ";") {
		if _, err := source.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	size, err := databaseSize(ctx, source)
	if err != nil {
		return err
	}
	fmt.Printf("%d rows, %d neighbours; the source takes %.2f GB.\n\n", b.rows+b.rows/100, b.k, float64(size)/1e9)
	fmt.Println("| | create, s | verify, s | disk, GB | query on | point, ms | group, ms | sum, ms | join, ms |\n|---|---|---|---|---|---|---|---|---|")
	for _, method := range []neighbours.Method{neighbours.Copy, neighbours.View} {
		if err := b.method(ctx, method); err != nil {
			return fmt.Errorf("method %s: %w", method, err)
		}
	}
	return b.parts(ctx)
}

func (b *bench) options(method neighbours.Method) neighbours.Options {
	users, tx := neighbours.Table{Schema: "public", Name: "users"}, neighbours.Table{Schema: "public", Name: "tx"}
	o := neighbours.Options{
		Source: b.source, Target: b.shadow, Control: "dpwatch", D0: "d0", Protected: []neighbours.Table{users, tx},
		Unit: neighbours.Unit{Table: users, Key: []string{"id"}}, SearchPath: []string{"public"}, FunctionPath: []string{"public"},
		Relation: neighbours.Remove, Method: method, Workers: 2,
		Choose: []neighbours.Choice{{Rule: neighbours.MostRows, K: 1}},
	}
	if b.k > 1 {
		o.Choose = append(o.Choose, neighbours.Choice{Rule: neighbours.Random, K: b.k - 1, Seed: 1})
	}
	for i := range b.k {
		o.D1 = append(o.D1, fmt.Sprintf("d1_%d", i+1))
	}
	return o
}

func (b *bench) method(ctx context.Context, method neighbours.Method) error {
	o := b.options(method)
	conn, err := pgx.Connect(ctx, b.shadow)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // only read
	before, err := databaseSize(ctx, conn)
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := neighbours.Create(ctx, o); err != nil {
		return err
	}
	created := time.Since(began)
	after, err := databaseSize(ctx, conn)
	if err != nil {
		return err
	}
	began = time.Now()
	report, err := neighbours.Verify(ctx, o)
	if err != nil {
		return err
	}
	if len(report.Faults) > 0 {
		return fmt.Errorf("d0: %s", report.Faults[0])
	}
	for _, p := range report.Pairs {
		if len(p.Faults) > 0 {
			return fmt.Errorf("%s: %s", p.Schema, p.Faults[0])
		}
	}
	head := fmt.Sprintf("| %s | %.0f | %.0f | %.2f |", method, created.Seconds(), time.Since(began).Seconds(), float64(after-before)/1e9)
	if err := worlds(ctx, conn, head); err != nil {
		return err
	}
	return neighbours.Drop(ctx, o)
}

// worlds times the queries in d0, in the neighbour of the heavy unit and in that of another one.
func worlds(ctx context.Context, conn *pgx.Conn, head string) error {
	for _, schema := range []string{"d0", "d1_1", "d1_2"} {
		line, err := queries(ctx, conn, schema)
		if err != nil {
			return err
		}
		fmt.Printf("%s %s |%s\n", head, schema, line)
		head = "| | | | |"
	}
	return nil
}

// queries returns the times of four queries in a schema as cells of a table, each the median of several runs.
func queries(ctx context.Context, conn *pgx.Conn, schema string) (string, error) {
	line := ""
	for _, sql := range []string{
		"SELECT spent FROM " + schema + ".tx WHERE id = 12345",
		"SELECT user_id, sum(spent) FROM " + schema + ".tx WHERE user_id BETWEEN 1000 AND 1100 GROUP BY user_id",
		"SELECT sum(spent) FROM " + schema + ".tx",
		"SELECT u.region, sum(t.spent) FROM " + schema + ".tx t JOIN " + schema + ".users u ON u.id = t.user_id GROUP BY u.region",
	} {
		var times []float64
		for range 7 {
			began := time.Now()
			if _, err := conn.Exec(ctx, sql); err != nil {
				return "", err
			}
			times = append(times, float64(time.Since(began).Microseconds())/1000)
		}
		line += fmt.Sprintf(" %.2f |", kit.Median(times))
	}
	return line, nil
}

func databaseSize(ctx context.Context, conn *pgx.Conn) (size int64, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, err
}
