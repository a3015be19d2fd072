package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/bench/kit"
	"github.com/dpwatch/dpwatch/internal/program"
)

// fleet is a dpwatch run whose audits go on for ever, and its workers.
type fleet struct {
	rig       *kit.Rig
	program   string
	run       *program.Process
	processes []*program.Process // workers
}

// sections of the configuration. A slot has two sessions without a limit of its share; all audits go on.
const sections = `
claims: {safe_functions: [waits], trust: [comment]}
audit: {max_trials: 1000000, workers: %d, sessions: 2, watch_share: 0, sequences: false}
`

func engine(wait time.Duration) string {
	return fmt.Sprintf(`
	CREATE TABLE people AS SELECT g AS id FROM generate_series(1, 50) g;
	CREATE FUNCTION waits(value float8, scale float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
	  IF current_setting('application_name') = 'dpwatch-replay' THEN PERFORM pg_sleep(%g); END IF;
	  RETURN round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024;
	END $$`, wait.Seconds())
}

// startFleet starts dpwatch run without slots of its own, and sends the queries.
func startFleet(ctx context.Context, o options, wait time.Duration) (f *fleet, err error) {
	f = &fleet{program: o.program}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.rig, err = kit.NewRig(ctx, engine(wait), nil); err != nil {
		return f, err
	}
	config, err := f.rig.Configure("run", f.rig.Ledger, fmt.Sprintf(sections, 0))
	if err != nil {
		return f, err
	}
	if f.run, err = program.Start(ctx, o.program, config, "run"); err != nil {
		return f, err
	}
	err = program.Until(ctx, func() (bool, error) { // a worker that finds no ledger tries again after 30 s
		up, err := f.run.Metric(ctx, "dpwatch_ledger_up")
		return err == nil && up == 1, nil
	})
	if err != nil {
		return f, err
	}
	conn, err := pgconn.Connect(ctx, f.rig.Through(f.run))
	if err != nil {
		return f, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was used
	for i := range o.queries {
		if _, err := conn.Exec(ctx, fmt.Sprintf("SELECT waits(count(*), 4) FROM people WHERE id > %d /*dp_epsilon='0.5'*/", i)).ReadAll(); err != nil {
			return f, err
		}
	}
	return f, nil
}

// add starts workers with one slot each until there are n.
func (f *fleet) add(ctx context.Context, n int) error {
	config, err := f.rig.Configure("worker", f.rig.Ledger, fmt.Sprintf(sections, 1))
	if err != nil {
		return err
	}
	for len(f.processes) < n {
		p, err := program.Start(ctx, f.program, config, "worker", "--slots", "1")
		if err != nil {
			return err
		}
		f.processes = append(f.processes, p)
	}
	return nil
}

func (f *fleet) close() {
	for _, p := range f.processes {
		p.Stop()
	}
	if f.run != nil {
		f.run.Stop()
	}
	if f.rig != nil {
		f.rig.Close()
	}
}

// executions returns the trials of all processes so far.
func (f *fleet) executions(ctx context.Context) (n float64, err error) {
	for _, p := range f.processes {
		m, err := p.Metric(ctx, "dpwatch_replays_total")
		if err != nil {
			return 0, err
		}
		n += m
	}
	return n, nil
}

// warm waits until every process has run trials and the first turns, which are short, are over.
func (f *fleet) warm(ctx context.Context, o options) error {
	bound, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for _, p := range f.processes {
		err := program.Until(bound, func() (bool, error) {
			n, err := p.Metric(ctx, "dpwatch_replays_total")
			return err == nil && n > 0, nil // the metrics come a moment after its start
		})
		if err != nil {
			return errors.Join(err, errors.New("a process runs no trials:\n"+p.Log.String()))
		}
	}
	err := program.Until(bound, func() (bool, error) { // a first turn has at most 50 pairs
		n, err := f.executions(bound)
		return n >= float64(100*o.queries), err
	})
	time.Sleep(o.warm)
	return err
}

// rate returns the trials per second of all processes.
func (f *fleet) rate(ctx context.Context, o options) (float64, error) {
	if err := f.warm(ctx, o); err != nil {
		return 0, err
	}
	before, err := f.executions(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(o.window):
	}
	after, err := f.executions(ctx)
	return (after - before) / time.Since(began).Seconds(), err
}
