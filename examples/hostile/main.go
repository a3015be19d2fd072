// Command hostile sends statements of hostile clients through dpwatch, to check that traffic goes on and that the auditor
// keeps auditing other queries. It is for test systems: see README.md beside it.
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
	name, what string
	text       func(n int) string
}

// attacks use the tables of dpwatch demo.
var attacks = []attack{
	{"aliases", "one query under ever new column and table names", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(t%d.id, 0.5) AS c0_%d FROM users t%d", n, n, n)
	}},
	{"literals", "one query with ever new constants", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5) FROM users WHERE id <> %d", n)
	}},
	{"shapes", "ever new queries", func(n int) string {
		return "SELECT anon_count(id, 0.5) FROM users WHERE id > 0" + shape(n)
	}},
	{"claims", "one query with ever new claims in comments", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5) FROM users /*dp_epsilon='%d.5'*/", n)
	}},
	{"comments", "comments within comments, 10,000 levels", func(n int) string {
		return fmt.Sprintf("SELECT count(*) FROM users WHERE id <> %d ", n) + strings.Repeat("/*", 10_000) + strings.Repeat("*/", 10_000)
	}},
	{"operators", "a chain of 2,000 operators", func(n int) string {
		return fmt.Sprintf("SELECT count(*) FROM users WHERE id <> %d", n) + strings.Repeat(" + 1", 2000)
	}},
	{"wide", "1,000 wide columns in a row", func(n int) string {
		return fmt.Sprintf("SELECT anon_count(id, 0.5)%s FROM users WHERE id <> %d", strings.Repeat(", repeat('x', 1000)", 1000), n)
	}},
	{"rows", "many rows for each person", func(n int) string {
		return fmt.Sprintf("SELECT u.id, anon_count(u.id, 0.5), repeat('x', 500) FROM users u, generate_series(1, 80) g WHERE u.id <> %d GROUP BY u.id, g", n)
	}},
}

// shape encodes a number as conditions.
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
	dsn := flag.String("dsn", "", "how to connect to dpwatch's proxy")
	only := flag.String("attacks", "", "names, separated by commas; all when empty")
	clients := flag.Int("clients", 1, "clients per attack")
	rate := flag.Int("rate", 200, "statements a second per client at most")
	lasting := flag.Duration("for", time.Minute, "how long")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: hostile -dsn DSN [flags]")
		flag.PrintDefaults()
		for _, a := range attacks {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-10s %s\n", a.name, a.what)
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
			return fmt.Errorf("there is no attack %q; see -help", name)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *lasting)
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

// run sends the statements of all clients of an attack until ctx ends, and prints their number.
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
