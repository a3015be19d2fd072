package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// replayPhases is how often the auditor is continued and stopped, and replayPhase the duration of each phase.
const (
	replayPhases = 24
	replayPhase  = 2.0 // seconds
)

// replay prints latencies with and without an audit's replays: the auditor process is stopped and continued in turn, so
// that noise affects both alike. The shadow is a separate server at idle priority, in place of one on another machine:
// it gets the CPU only when no other process needs it, and a trial waits for most of its time. Its remaining effect
// shows in the row of direct.
func replay(ctx context.Context, c *pgtemp.Cluster, direct *target, o options) error {
	shadow, err := pgtemp.Start(ctx, pgtemp.Options{})
	if err != nil {
		return err
	}
	defer shadow.Stop() //nolint:errcheck // a directory that is left over shows it
	// The scheduling policy idle also applies to the processes that the server starts afterwards.
	if out, err := exec.CommandContext(ctx, "chrt", "--idle", "--pid", "0", strconv.Itoa(shadow.PID())).CombinedOutput(); err != nil {
		return fmt.Errorf("set the shadow's scheduling policy with chrt: %w\n%s", err, out)
	}
	if err := execute(ctx, c, `CREATE TABLE people AS SELECT g AS id, g % 3 AS grp FROM generate_series(1, 1000) g;
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT value + scale * ln((1 - random()) / (1 - random()))'`); err != nil {
		return err
	}
	err = execute(ctx, shadow, fmt.Sprintf(`
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024 FROM pg_sleep(%g)';
		CREATE SCHEMA d0; CREATE TABLE d0.people AS SELECT g AS id, g %% 3 AS grp FROM generate_series(1, 1000) g;
		CREATE SCHEMA d1; CREATE TABLE d1.people AS SELECT * FROM d0.people WHERE id <> 50`, o.trial.Seconds()))
	if err != nil {
		return err
	}
	v := variant{name: "dpwatch", capture: true, protected: "public.people", more: `
shadow: {dsn: SHADOW, d0: d0, d1: [d1], statement_timeout: 5s}
claims: {safe_functions: [noisy], default: {epsilon: 1, delta: 0}}
audit: {max_trials: 10000000, sequences: false}
`}
	t, err := startDpwatch(ctx, o.dpwatch, v, c.Port(), shadow.DSN("postgres"))
	if err != nil {
		return err
	}
	defer t.stop()
	conn, err := pgx.Connect(ctx, t.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for range 4 { // true epsilon 0.5: honest, so never decided early
		if _, err := conn.Exec(ctx, fmt.Sprintf("SELECT noisy(count(*), 2) FROM people WHERE id > %d", os.Getpid()%7)); err != nil {
			return err
		}
	}
	auditor := childOf(t.pid)
	if auditor == 0 {
		return errors.New("dpwatch has no auditor process")
	}
	proxied := &target{name: t.name, dsn: t.dsn, pid: t.pid}
	o.seconds = replayPhase
	var lats [2]map[string][]time.Duration
	lats[0], lats[1] = map[string][]time.Duration{}, map[string][]time.Duration{}
	used := [2]time.Duration{}
	for phase := range replayPhases {
		on := phase % 2
		signal := syscall.SIGSTOP
		if on == 1 {
			signal = syscall.SIGCONT
		}
		if err := syscall.Kill(auditor, signal); err != nil {
			return fmt.Errorf("the auditor: %w", err)
		}
		before := (&target{pid: auditor}).cpu()
		cells, err := rotate(ctx, []*target{direct, proxied}, "prepared", 8, o)
		if err != nil {
			return err
		}
		used[on] += (&target{pid: auditor}).cpu() - before
		for name, cell := range cells {
			lats[on][name] = append(lats[on][name], cell.latencies...)
		}
	}
	_ = syscall.Kill(auditor, syscall.SIGCONT)
	fmt.Printf("\nprepared, 8 clients; trials of %v; the auditor used %.1f s of CPU in %.0f s of replaying, %.1f s stopped\n\n", o.trial, used[1].Seconds(), replayPhases/2*replayPhase, used[0].Seconds())
	fmt.Println("| target | p50 us without, with replay | p99 us without, with replay | p99 ratio |")
	fmt.Println("|---|---|---|---|")
	for _, name := range []string{"direct", "dpwatch"} {
		var p [2][2]time.Duration
		for on := range lats {
			slices.Sort(lats[on][name])
			p[on] = [2]time.Duration{at(lats[on][name], .5), at(lats[on][name], .99)}
		}
		fmt.Printf("| %s | %.0f, %.0f | %.0f, %.0f | %.2f |\n", name, us(p[0][0]), us(p[1][0]), us(p[0][1]), us(p[1][1]), us(p[1][1])/us(p[0][1]))
	}
	return nil
}

// at returns a quantile of sorted latencies.
func at(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// childOf returns a child of a process, 0 if there is none.
func childOf(pid int) int {
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		if stat, err := p.Stat(); err == nil && stat.PPID == pid {
			return p.PID
		}
	}
	return 0
}
