// Package replay measures the trials per second of package replay, and of pgbench with the same prepared statements on
// the same server, and of a collector that requests one result at a time. The methods take turns, so that noise on the
// machine affects all alike. See docs/measured/performance.md.
package replay

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/bench/kit"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// query is one of the measured queries; takes is the time of one execution on the machine of docs/measured/performance.md.
type query struct {
	name  string
	takes time.Duration
	rows  int // of the table that it reads
}

var queries = []query{
	{"0.2 ms", 200 * time.Microsecond, 5_000}, {"2 ms", 2 * time.Millisecond, 60_000}, {"50 ms", 50 * time.Millisecond, 1_300_000},
}

// sql returns the query on one world: a noisy count without a parameter, as rewriters write it.
func (q query) sql(schema string) string {
	return fmt.Sprintf("SELECT count(*) + 2 * ln(random() / random()) AS n FROM %s.rows%d WHERE value < 0.5", schema, q.rows)
}

// Run measures with the arguments of the command line, and prints tables in markdown.
func Run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("replay", flag.ContinueOnError)
	seconds := fs.Float64("seconds", 0.3, "seconds that a method has at a time, at least")
	turns := fs.Int("turns", 11, "times that each method has; the table shows medians")
	only := fs.String("queries", "0.2 ms,2 ms,50 ms", "queries, by comma")
	if err := fs.Parse(args); err != nil {
		return err
	}
	// One backend per session: the gain of parallel workers is not that of replay.
	settings := map[string]string{"max_parallel_workers_per_gather": "0", "jit": "off", "shared_buffers": "256MB", "autovacuum": "off"}
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{Settings: settings})
	if err != nil {
		return err
	}
	defer cluster.Stop() //nolint:errcheck // told by the directory that stays
	b := &bench{cluster: cluster, dsn: cluster.DSN("postgres"), least: time.Duration(*seconds * float64(time.Second)), turns: *turns}
	if err := b.load(ctx); err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(queries), func(q query) bool {
		return !slices.Contains(strings.Split(*only, ","), q.name)
	})
	if len(chosen) == 0 {
		return fmt.Errorf("--queries %q: none of 0.2 ms, 2 ms, 50 ms", *only)
	}
	return b.tables(ctx, chosen)
}

type bench struct {
	cluster *pgtemp.Cluster
	dsn     string
	least   time.Duration // time of a method per turn
	turns   int
}

// method runs trials for a while and returns their number per second.
type method struct {
	name        string
	connections int
	measure     func(ctx context.Context, q query) (perSecond float64, err error)
}

// load creates D0 and D1; D1 lacks one row of each table.
func (b *bench) load(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i, schema := range []string{"d0", "d1"} {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
			return err
		}
		for _, q := range queries {
			table := fmt.Sprintf("%s.rows%d", schema, q.rows)
			sql := fmt.Sprintf("CREATE TABLE %s AS SELECT g AS id, (g %% 1000) / 1000.0::float8 AS value FROM generate_series(%d, %d) g", table, i, q.rows-1)
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, "VACUUM ANALYZE "+table); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables prints one table per group of methods.
func (b *bench) tables(ctx context.Context, chosen []query) error {
	fmt.Println("Trials a second, by query and connections:")
	fmt.Println()
	fmt.Println("| query | connections | method | trials/s | of pgbench |")
	fmt.Println("|---|---|---|---|---|")
	if err := b.table(ctx, chosen, b.methods()); err != nil {
		return err
	}
	fmt.Println()
	fmt.Println("What is done between two trials of one session:")
	fmt.Println()
	fmt.Println("| query | connections | between trials | trials/s | of kept plans |")
	fmt.Println("|---|---|---|---|---|")
	return b.table(ctx, chosen, b.sessions())
}

// table compares methods with the first one with the same number of connections, turn by turn: noise on the machine
// changes more slowly than the turns. It prints medians.
func (b *bench) table(ctx context.Context, chosen []query, methods []method) error {
	for _, q := range chosen {
		rates, ratios := make([][]float64, len(methods)), make([][]float64, len(methods))
		for range b.turns {
			base := map[int]float64{}
			for i, m := range methods {
				rate, err := m.measure(ctx, q)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", m.name, q.name, err)
				}
				if base[m.connections] == 0 {
					base[m.connections] = rate
				}
				rates[i] = append(rates[i], rate)
				ratios[i] = append(ratios[i], rate/base[m.connections])
			}
		}
		for i, m := range methods {
			fmt.Printf("| %s | %d | %s | %.4g | %.2f |\n", q.name, m.connections, m.name, kit.Median(rates[i]), kit.Median(ratios[i]))
		}
	}
	return nil
}

// slice returns the time of one method: b.least, or 20 times the time of the query.
func (b *bench) slice(q query) time.Duration { return max(b.least, 20*q.takes) }

// pgbench runs the statements of both worlds in random order; mode prepared prepares them once per connection.
func (b *bench) pgbench(ctx context.Context, q query, connections int, mode string) (float64, error) {
	dir, err := os.MkdirTemp("", "benchreplay")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	threads, transactions := strconv.Itoa(connections), strconv.Itoa(int(b.slice(q)/q.takes))
	args := []string{"-n", "-M", mode, "-c", threads, "-j", threads, "-t", transactions}
	for _, schema := range []string{"d0", "d1"} {
		file := filepath.Join(dir, schema+".sql")
		if err := os.WriteFile(file, []byte(q.sql(schema)+";\n"), 0o600); err != nil {
			return 0, err
		}
		args = append(args, "-f", file)
	}
	return kit.Pgbench(ctx, pgtemp.Tool(b.cluster.BinDir(), "pgbench"), append(args, b.dsn)...)
}
