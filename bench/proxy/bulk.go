package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/bench/kit"
)

// bulkRounds is how often each bulk transfer is repeated; the table shows medians.
const bulkRounds = 7

// bulk prints a table of bulk transfers on one connection, with targets in turn.
func bulk(ctx context.Context, targets []*target, _ options) error {
	jobs := []struct {
		name string
		run  func(context.Context, *pgx.Conn) (int64, error)
	}{
		{"SELECT of 1,000,000 rows", selectAll},
		{"COPY OUT of 1,000,000 rows", copyOut},
		{"COPY OUT of 300 MB in rows of 1 KB", copyWide},
	}
	fmt.Println("\n| transfer | target | MB/s | of direct | CPU s/GB |")
	fmt.Println("|---|---|---|---|---|")
	for _, job := range jobs {
		rates, cpus := map[string][]float64{}, map[string][]float64{}
		for range bulkRounds {
			for _, t := range targets {
				conn, err := pgx.Connect(ctx, t.dsn)
				if err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
				cpu, began := t.cpu(), time.Now()
				n, err := job.run(ctx, conn)
				took, used := time.Since(began), t.cpu()-cpu
				_ = conn.Close(ctx)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", t.name, job.name, err)
				}
				rates[t.name] = append(rates[t.name], float64(n)/1e6/took.Seconds())
				cpus[t.name] = append(cpus[t.name], used.Seconds()/(float64(n)/1e9))
			}
		}
		for _, t := range targets {
			rate := kit.Median(rates[t.name])
			fmt.Printf("| %s | %s | %.0f | %.2f | %.2f |\n", job.name, t.name, rate, rate/kit.Median(rates["direct"]), kit.Median(cpus[t.name]))
		}
	}
	return nil
}

func selectAll(ctx context.Context, conn *pgx.Conn) (int64, error) {
	var n int64
	result := conn.PgConn().Exec(ctx, "SELECT * FROM pgbench_accounts")
	for result.NextResult() {
		rows := result.ResultReader()
		for rows.NextRow() {
			for _, v := range rows.Values() {
				n += int64(len(v))
			}
		}
	}
	return n, result.Close()
}

func copyOut(ctx context.Context, conn *pgx.Conn) (int64, error) {
	return copyTo(ctx, conn, "COPY pgbench_accounts TO STDOUT")
}

// copyWide is limited by the transfer, not by the server's work on rows.
func copyWide(ctx context.Context, conn *pgx.Conn) (int64, error) {
	return copyTo(ctx, conn, "COPY (SELECT repeat('0123456789abcdef', 64) FROM generate_series(1, 300000)) TO STDOUT")
}

func copyTo(ctx context.Context, conn *pgx.Conn, sql string) (int64, error) {
	w := &counter{}
	_, err := conn.PgConn().CopyTo(ctx, w, sql)
	return w.n, err
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
