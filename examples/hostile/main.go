// Command hostile sends the statements of hostile clients through dpwatch, to check that traffic continues and that the
// auditor still audits other queries. It is for test systems; see README.md in this directory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// attack is one kind of hostile client: text returns its n-th statement.
type attack struct {
	name, description string
	text              func(n int) string
}

// attacks use the tables of dpwatch demo.
var attacks = []attack{
	{"aliases", "the same query, with new aliases of columns and tables in each statement", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(t%d.id, 0.5) AS c0_%d FROM users t%d", n, n, n)
	}},
	{"literals", "the same query, with a new constant in each statement", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5) FROM users WHERE id <> %d", n)
	}},
	{"shapes", "a new query in each statement", func(n int) string {
		return "SELECT anon_count(id, 0.5) FROM users WHERE id > 0" + shape(n)
	}},
	{"claims", "the same query, with a new claim in a comment in each statement", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5) FROM users /*dp_epsilon='%d.5'*/", n)
	}},
	{"comments", "10,000 nested comments", func(n int) string {
		return fmt.Sprintf("SELECT count(*) FROM users WHERE id <> %d ", n) + strings.Repeat("/*", 10_000) + strings.Repeat("*/", 10_000)
	}},
	{"operators", "an expression with 2,000 operators", func(n int) string {
		return fmt.Sprintf("SELECT count(*) FROM users WHERE id <> %d", n) + strings.Repeat(" + 1", 2000)
	}},
	{"wide", "a result with 1,000 columns of 1,000 characters", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5)%s FROM users WHERE id <> %d", strings.Repeat(", repeat('x', 1000)", 1000), n)
	}},
	{"rows", "a result with 80 rows for each person", func(n int) string {
		return fmt.Sprintf("SELECT u.id, anon_count(u.id, 0.5), repeat('x', 500) FROM users u, generate_series(1, 80) g WHERE u.id <> %d GROUP BY u.id, g", n)
	}},
}

// shape returns conditions that are different for each number.
func shape(n int) string {
	var b strings.Builder
	for ; n > 0; n /= 4 {
		b.WriteString([]string{" AND id IS NOT NULL", " OR id < 0", " AND id > -1", " AND NOT id < -1"}[n%4])
	}
	return b.String()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run() error {
	dsn := flag.String("dsn", "", "connection string of dpwatch's proxy (required)")
	only := flag.String("attacks", "", "names of attacks, separated by commas (default: all)")
	clients := flag.Int("clients", 1, "number of clients for each attack")
	rate := flag.Int("rate", 200, "maximum number of statements per second for each client")
	duration := flag.Duration("for", time.Minute, "duration of the attacks")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: hostile -dsn DSN [flags]")
		flag.PrintDefaults()
		fmt.Fprintln(flag.CommandLine.Output(), "attacks:")
		for _, a := range attacks {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-10s %s\n", a.name, a.description)
		}
	}
	flag.Parse()
	if *dsn == "" || *rate < 1 {
		return errors.New("-dsn is required, and -rate must be at least 1; see -help")
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	for _, name := range names {
		if !slices.ContainsFunc(attacks, func(a attack) bool { return a.name == name }) {
			return fmt.Errorf("-attacks: there is no attack %q; see -help", name)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *duration)
	defer cancel()
	var group sync.WaitGroup
	for _, a := range attacks {
		if len(names) > 0 && !slices.Contains(names, a.name) {
			continue
		}
		group.Go(func() { a.run(ctx, *dsn, *clients, *rate) })
	}
	group.Wait()
	return nil
}

// run sends the statements of an attack from all its clients until ctx ends. Then it prints how many were sent, how
// many failed, and the first error.
func (a attack) run(ctx context.Context, dsn string, clients, rate int) {
	var sent, failed atomic.Int64
	var next atomic.Int64
	var first atomic.Pointer[string]
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			conn, err := pgx.Connect(ctx, dsn)
			if err != nil {
				fmt.Fprintf(os.Stderr, "%s: %v\n", a.name, err)
				return
			}
			defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // the program ends
			tick := time.NewTicker(time.Second / time.Duration(rate))
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				_, err := conn.Exec(ctx, a.text(int(next.Add(1))), pgx.QueryExecModeSimpleProtocol)
				if ctx.Err() != nil {
					return
				}
				sent.Add(1)
				if err != nil {
					failed.Add(1)
					text := err.Error()
					first.CompareAndSwap(nil, &text)
				}
			}
		})
	}
	group.Wait()
	fmt.Printf("%-10s %7d statements, %d failed\n", a.name, sent.Load(), failed.Load())
	if text := first.Load(); text != nil {
		fmt.Printf("           first error: %s\n", *text)
	}
}
