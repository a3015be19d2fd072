package flood

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/bench/kit"
	"github.com/dpwatch/dpwatch/internal/program"
)

// settle is how long the ledger may take to have everything after the flood.
const settle = 10 * time.Minute

// Measure runs dpwatch, the flood and then the broken query.
func Measure(ctx context.Context, o Options) (*Result, error) {
	first := &witness{text: []byte("LOG:  first trial")}
	rig, err := kit.NewRig(ctx, engine(o.Shapes), first)
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	config, err := rig.Configure("run", rig.Ledger, o.sections())
	if err != nil {
		return nil, err
	}
	p, err := program.Start(ctx, o.Program, config, "run")
	if err != nil {
		return nil, err
	}
	defer p.Stop()
	r := &Result{Options: o, Sent: o.Texts*o.PerText + 1}
	dsn := rig.Through(p)
	watching, enough := context.WithCancel(ctx)
	defer enough()
	var group errgroup.Group
	group.Go(func() error { r.sample(watching, p); return nil })
	if r.Took, err = send(ctx, dsn, o); err != nil {
		return nil, errors.Join(err, errors.New(p.Log.String()))
	}
	if err := r.look(ctx, first, dsn); err != nil {
		return nil, err
	}
	if err := r.compare(ctx, rig.Ledger); err != nil {
		return nil, err
	}
	enough()
	_ = group.Wait()
	return r, nil
}

// look sends the broken query and waits for its first trial.
func (r *Result) look(ctx context.Context, first *witness, dsn string) error {
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was used
	sent := time.Now()
	if err := execute(ctx, conn, broken); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	err = program.Until(ctx, func() (bool, error) { return !first.seen().IsZero(), nil })
	if err != nil {
		return errors.New("the broken query has no trial")
	}
	r.Sight, r.FirstTrial = sent, first.seen().Sub(sent)
	return nil
}

// sample reads the auditor's memory every second until ctx is done.
func (r *Result) sample(ctx context.Context, p *program.Process) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		heap, err := p.Metric(ctx, "dpwatch_auditor_memory_bytes")
		resident, err2 := p.Metric(ctx, "dpwatch_auditor_process_resident_memory_bytes")
		limit, err3 := p.Metric(ctx, "dpwatch_auditor_memory_limit_bytes")
		audits, err4 := p.Metric(ctx, "dpwatch_audit_memory_bytes")
		if errors.Join(err, err2, err3, err4) == nil { // not before the auditor's first report
			r.Memory, r.Resident, r.Held, r.Limit = append(r.Memory, heap), append(r.Resident, resident), append(r.Held, audits), limit
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
