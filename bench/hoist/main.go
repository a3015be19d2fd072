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
	fmt.Println("| query | pgbench, D0 alone, one connection: executions/s | whole: pairs/s | hoisted: pairs/s | gain | as audited: whole and hoisted pairs/s | 10,000 whole pairs, alone and as audited | 10,000 pairs of evidence, whole and as audited | tables | why not |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
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
		return fmt.Sprintf("| %s | %.0f | %.1f | - | - | - | - | - | - | %s |", name, floor, plain.perSecond, report.Reason), nil
	}
	before := audit / plain.perSecond
	whole, hoisted := float64(mixed.whole)/mixed.spent, float64(mixed.hoisted)/mixed.spent
	// Hoisted trials end with their budget; then all are whole.
	both := audit / hoisted
	all := mixed.first.Seconds() + both + max(0, audit-decided-whole*both)/plain.perSecond
	shown := mixed.first.Seconds() + min(both, (audit-decided)/whole)
	return fmt.Sprintf("| %s | %.0f | %.1f | %.0f | x%.1f | %.1f, %.0f | %.1f s, %.1f s | %.1f s, %.1f s | %d | |", name, floor, plain.perSecond,
		2*hoisted, 2*hoisted/plain.perSecond, whole, hoisted, before, all, before, shown, report.Pieces), nil
}

const (
	audit   = 10_000 // pairs of each kind
	decided = 100    // whole pairs before the decision to hoist
	batch   = 25     // minimal number of pairs per batch
)

// measured is the result of one way of replaying: the time of the first pairs, and the rate after them.
type measured struct {
	first          time.Duration
	perSecond      float64 // whole pairs
	spent          float64 // seconds, after the first pairs
	whole, hoisted int     // pairs in that time
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
	began, from := time.Now(), time.Time{}
	for taken, err := range r.Stream(ctx, batch) {
		if err != nil {
			return m, err
		}
		for _, p := range slices.Concat(taken.Rounds, taken.Hoisted) {
			if p[0].Failed() || p[1].Failed() {
				return m, fmt.Errorf("a trial failed: SQLSTATE %s%s", p[0].SQLState, p[1].SQLState)
			}
		}
		m.whole, m.hoisted = m.whole+len(taken.Rounds), m.hoisted+len(taken.Hoisted)
		if from.IsZero() {
			if m.whole >= skip && (skip == 0 || s.Hoist.Report().Reason != "" || m.hoisted > 0) {
				m.first, from, m.whole, m.hoisted = time.Since(began), time.Now(), 0, 0
			}
			continue
		}
		if m.spent = time.Since(from).Seconds(); m.spent >= b.span.Seconds() {
			m.perSecond = float64(m.whole) / m.spent
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
