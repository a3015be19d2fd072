// Package replay measures the trials per second of package replay, and of pgbench with the same prepared statements on
// the same server, and of a collector that requests one result at a time. The methods take turns, so that noise on the
// machine affects all alike. See docs/performance.md.
package replay

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// query is one of the measured queries; takes is the time of one execution on the machine of docs/performance.md.
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
