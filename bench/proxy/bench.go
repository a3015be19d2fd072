package proxy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// variant is a configuration of dpwatch.
type variant struct {
	name      string
	capture   bool
	protected string   // the only protected table
	env       []string // in addition to this process's own
	secure    bool     // clients use TLS
	proxy     string   // further keys of the proxy's section, each after a comma
	more      string   // the rest of the configuration, with SHADOW for the shadow database; "" = an auditor without work
}

// standard are the variants that are always measured: with a protected table that the benchmark does not read, with the
// one that it reads, so that every statement goes to the auditor, and as a plain relay.
var standard = []variant{
	{name: "dpwatch", capture: true, protected: "public.people"},
	{name: "all captured", capture: true, protected: "public.pgbench_accounts"},
	{name: "no capture", protected: "public.people"},
}

func bench(ctx context.Context, o options) error {
	if o.sets["idle"] {
		if err := idle(ctx, o); err != nil {
			return err
		}
	}
	if len(o.sets) == 1 && o.sets["idle"] {
		return nil
	}
	settings := map[string]string{"max_connections": "1200", "shared_buffers": "256MB"}
	cluster, err := pgtemp.Start(ctx, pgtemp.Options{Settings: settings})
	if err != nil {
		return err
	}
	defer cluster.Stop() //nolint:errcheck // a directory that is left over shows it
	// The benchmark measures bytes, not passwords: this temporary server trusts TCP from loopback.
	hba := filepath.Join(cluster.Dir(), "data", "pg_hba.conf")
	if err := os.WriteFile(hba, []byte("local all all trust\nhost all all 127.0.0.1/32 trust\n"), 0o600); err != nil {
		return err
	}
	if err := execute(ctx, cluster, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	initialise := exec.CommandContext(ctx, pgtemp.Tool(cluster.BinDir(), "pgbench"), "-i", "-q", "-s", "10", cluster.SocketDSN("postgres"))
	if out, err := initialise.CombinedOutput(); err != nil {
		return fmt.Errorf("pgbench -i: %w\n%s", err, out)
	}
	direct := &target{name: "direct", dsn: dsn(fmt.Sprintf("127.0.0.1:%d", cluster.Port()), false), rival: "pgbouncer"}
	targets := []*target{direct}
	defer func() {
		for _, t := range targets {
			t.stop()
		}
	}()
	if o.dpwatch != "" {
		for _, v := range append(slices.Clone(standard), o.variants...) {
			t, err := startDpwatch(ctx, o.dpwatch, v, cluster.Port(), cluster.DSN("postgres"))
			if err != nil {
				return err
			}
			targets = append(targets, t)
		}
	}
	bouncer, err := startPgBouncer(ctx, cluster.Port(), bouncerTLS{})
	if err != nil {
		return err
	}
	if bouncer != nil {
		targets = append(targets, bouncer)
	} else {
		fmt.Println("PgBouncer is not installed (apt-get install pgbouncer): its columns are missing")
	}
	for _, e := range o.extra {
		t, err := startCommand(ctx, e[0], e[1], cluster.Port())
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	if o.sets["transactions"] {
		if err := transactions(ctx, targets, o); err != nil {
			return err
		}
	}
	if o.sets["replay"] && o.dpwatch != "" {
		if err := replay(ctx, cluster, direct, o); err != nil {
			return err
		}
	}
	if o.sets["bulk"] {
		if err := bulk(ctx, targets, o); err != nil {
			return err
		}
	}
	if o.sets["tls"] || o.sets["tlsbulk"] {
		return secure(ctx, cluster, o)
	}
	return nil
}

func execute(ctx context.Context, c *pgtemp.Cluster, sql string) error {
	conn, err := pgx.Connect(ctx, c.SocketDSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}

// transactions prints a table: throughput, its ratio to direct and to PgBouncer, latency, CPU time per transaction.
func transactions(ctx context.Context, targets []*target, o options) error {
	fmt.Println("| mode, clients | target | tps | of direct | of pgbouncer | p50 us | p99 us | CPU us/txn | CPU s per 100,000 | of pgbouncer |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, mode := range o.modes {
		for _, n := range o.clients {
			cells, err := rotate(ctx, targets, mode, n, o)
			if err != nil {
				return err
			}
			base := cells["direct"]
			for _, t := range targets {
				c, rival := cells[t.name], cells[t.rival]
				perTxn := float64(c.cpu.Nanoseconds()) / 1e3 / float64(max(c.transactions, 1))
				tpsRatio, cpuRatio := "-", "-"
				if rival != nil && rival.transactions > 0 {
					tpsRatio = fmt.Sprintf("%.2f", c.tps()/rival.tps())
					if t.pid != 0 {
						cpuRatio = fmt.Sprintf("%.2f", perTxn/(float64(rival.cpu.Nanoseconds())/1e3/float64(rival.transactions)))
					}
				}
				fmt.Printf("| %s %d | %s | %.0f | %.2f | %s | %.0f | %.0f | %.1f | %.2f | %s |\n", mode, n, t.name, c.tps(), c.tps()/base.tps(), tpsRatio,
					us(c.quantile(.5)), us(c.quantile(.99)), perTxn, perTxn/10, cpuRatio)
			}
		}
	}
	return nil
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
