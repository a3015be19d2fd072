// Package hoist measures the gain of hoisting: for every query of a directory the pairs of trials per second that
// replay runs unmodified and hoisted, and the rate of pgbench for the query on D0 with the same number of connections.
// The data are the showcase's, in a temporary cluster, unless -dsn names a database that has schemas d0 and d1. See
// docs/hoisting.md.
package hoist

import (
	"context"
	"errors"
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
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/hoisting"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Run measures with the arguments of the command line, and prints a table in markdown.
func Run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("hoist", flag.ContinueOnError)
	queries := fs.String("queries", "bench/hoist/queries", "directory of .sql files, one query each, on users and transactions")
	dsn := fs.String("dsn", "", "a database with schemas d0 and d1; empty = a temporary one with the showcase's data")
	seconds := fs.Float64("seconds", 3, "seconds per query and way")
	if err := fs.Parse(args); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(*queries, "*.sql"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no .sql file in %q: name a directory with -queries", *queries)
	}
	bindir, err := pgtemp.FindBinDir(ctx, pgtemp.Options{Getenv: os.Getenv})
	if err != nil {
		return err
	}
	if *dsn == "" {
		cluster, err := pgtemp.Start(ctx, pgtemp.Options{Getenv: os.Getenv})
		if err != nil {
			return err
		}
		defer cluster.Stop() //nolint:errcheck // nothing to be done about it
		*dsn = cluster.DSN("postgres")
		if err := load(ctx, *dsn); err != nil {
			return err
		}
	}
	b := bench{dsn: *dsn, span: time.Duration(*seconds * float64(time.Second)), pgbench: pgtemp.Tool(bindir, "pgbench")}
	fmt.Println("| query | pgbench, D0 alone, one connection: executions/s | unmodified: pairs/s | hoisted: pairs/s | gain | with the unmodified sample: pairs/s | 10,000 pairs, unmodified and hoisted | tables | why not |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	slices.Sort(files)
	for _, file := range files {
		line, err := b.query(ctx, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fmt.Println(line)
	}
	return nil
}

// load creates the two neighbours.
func load(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	data := showcase.Generate(showcase.Seed)
	if err := showcase.Load(ctx, conn, showcase.D0, data); err != nil {
		return err
	}
	return showcase.Load(ctx, conn, showcase.D1, data.Without(showcase.HeavyUser))
}

type bench struct {
	dsn, pgbench string
	span         time.Duration
}

// query measures one query and returns its row of the table.
func (b bench) query(ctx context.Context, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	d0, d1, err := worlds(strings.TrimRight(strings.TrimSpace(string(text)), ";"))
	if err != nil {
		return "", err
	}
	floor, err := b.runPgbench(ctx, d0)
	if err != nil {
		return "", err
	}
	plain, err := b.rate(ctx, replay.Statement{Worlds: []string{d0, d1}}, 0)
	if err != nil {
		return "", err
	}
	s := replay.Statement{Worlds: []string{d0, d1}, Hoist: replay.NewHoisting(nil)}
	mixed, err := b.rate(ctx, s, decided)
	if err != nil {
		return "", err
	}
	report := s.Hoist.Report()
	name := strings.TrimSuffix(filepath.Base(file), ".sql")
	if !report.Hoisted {
		return fmt.Sprintf("| %s | %.0f | %.1f | - | - | - | - | - | %s |", name, floor, plain.perSecond, report.Reason), nil
	}
	before := audit / plain.perSecond
	after := mixed.first.Seconds() + (audit-decided)/mixed.perSecond
	// The time of the hoisted rounds is the total without that of the unmodified ones.
	hoisted := float64(mixed.hoisted) / (mixed.spent - float64(mixed.unmodified)/plain.perSecond)
	return fmt.Sprintf("| %s | %.0f | %.1f | %.0f | x%.1f | %.0f | %.1f s, %.1f s | %d | |", name, floor, plain.perSecond,
		hoisted, hoisted/plain.perSecond, mixed.perSecond, before, after, report.Pieces), nil
}

const (
	audit   = 10_000 // pairs
	decided = 100    // pairs before the first decision to hoist
	batch   = 25     // minimal number of pairs per batch
)

// measured is the result of one way of replaying: the time of the first pairs, and the rate after them.
type measured struct {
	first               time.Duration
	perSecond           float64
	spent               float64 // seconds, after the first pairs
	hoisted, unmodified int     // pairs in that time
}

// rate replays a statement: first skip pairs, then for the measured time.
func (b bench) rate(ctx context.Context, s replay.Statement, skip int) (measured, error) {
	var m measured
	player, err := replay.New(replay.Options{
		DSN: b.dsn, SearchPath: []string{"public"}, StatementTimeout: time.Minute, ConnectTimeout: 10 * time.Second,
		MaxRows: 100_000, MaxBytes: 64 << 20,
	})
	if err != nil {
		return m, err
	}
	r, err := player.Start(s, 1)
	if err != nil {
		return m, err
	}
	defer r.Close()
	began, from, n := time.Now(), time.Time{}, 0
	var start hoisting.Report
	report := func() (now hoisting.Report) {
		if s.Hoist != nil {
			now = s.Hoist.Report()
		}
		return now
	}
	for taken, err := range r.Stream(ctx, batch) {
		if err != nil {
			return m, err
		}
		for _, p := range taken.Rounds {
			if p[0].Failed() || p[1].Failed() {
				return m, fmt.Errorf("a trial failed: SQLSTATE %s%s", p[0].SQLState, p[1].SQLState)
			}
		}
		n += len(taken.Rounds)
		if from.IsZero() {
			if n >= skip {
				m.first, from, n, start = time.Since(began), time.Now(), 0, report()
			}
			continue
		}
		if m.spent = time.Since(from).Seconds(); m.spent >= b.span.Seconds() {
			m.perSecond = float64(n) / m.spent
			end := report()
			m.hoisted, m.unmodified = end.HoistedRounds-start.HoistedRounds, end.UnmodifiedRounds-start.UnmodifiedRounds
			return m, nil
		}
	}
	return m, ctx.Err()
}

// runPgbench returns the executions per second of a prepared statement on one connection.
func (b bench) runPgbench(ctx context.Context, sql string) (float64, error) {
	file, err := os.CreateTemp("", "benchhoist")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(sql + ";\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	seconds := strconv.Itoa(max(1, int(b.span.Seconds())))
	return kit.Pgbench(ctx, b.pgbench, "-n", "-M", "prepared", "-c", "1", "-T", seconds, "-f", file.Name(), b.dsn)
}

func worlds(sql string) (d0, d1 string, err error) {
	r, err := rewrite.New(rewrite.Options{
		Protected:      []rewrite.Table{{Schema: "public", Name: "users"}, {Schema: "public", Name: "transactions"}},
		AllowFunctions: []string{rewrite.AnyFunction},
	})
	if err != nil {
		return "", "", err
	}
	plan, err := r.Analyze(capture.Query{SQL: sql})
	if err != nil {
		return "", "", err
	}
	if d0, err = plan.For(showcase.D0); err != nil {
		return "", "", err
	}
	d1, err = plan.For(showcase.D1)
	return d0, d1, err
}
