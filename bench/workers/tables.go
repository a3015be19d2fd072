package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/program"
)

// scale prints the trials per second of increasing numbers of workers.
func scale(ctx context.Context, o options) error {
	f, err := startFleet(ctx, o, o.wait)
	if err != nil {
		return err
	}
	defer f.close()
	fmt.Printf("Workers with one slot each, %d queries, an engine that waits %v in a trial.\n\n| workers | trials per second | times those of %d |\n|---|---|---|\n", o.queries, o.wait, o.counts[0])
	first := 0.0
	for _, n := range o.counts {
		if err := f.add(ctx, n); err != nil {
			return err
		}
		rate, err := f.rate(ctx, o)
		if err != nil {
			return err
		}
		if first == 0 {
			first = rate
		}
		fmt.Printf("| %d | %.0f | %.2f |\n", n, rate, rate/first)
	}
	return nil
}

// cost prints the part of a worker's time that is not in turns: delivering evidence, the auditor's part, and receiving
// the next turn.
func cost(ctx context.Context, o options) error {
	f, err := startFleet(ctx, o, o.short)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.add(ctx, 1); err != nil {
		return err
	}
	if err := f.warm(ctx, o); err != nil {
		return err
	}
	from, err := f.endOfTurn(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(o.window):
	}
	to, err := f.endOfTurn(ctx)
	if err != nil {
		return err
	}
	turns, all, in := to.turns-from.turns, to.at.Sub(from.at).Seconds(), to.seconds-from.seconds
	fmt.Printf("\nA worker with one slot, an engine that waits %v in a trial: %.0f turns of %.2f s, and %.0f ms from one to the next: %.1f %% of the time.\n",
		o.short, turns, in/turns, 1000*(all-in)/turns, 100*(1-in/all))
	return nil
}

// turns are the turns of a worker up to the end of one.
type turns struct {
	at             time.Time
	turns, seconds float64
}

// endOfTurn waits until the first worker has ended a turn.
func (f *fleet) endOfTurn(ctx context.Context) (t turns, err error) {
	p := f.processes[0]
	before, err := p.Metric(ctx, "dpwatch_worker_turns_total")
	if err != nil {
		return t, err
	}
	err = program.Until(ctx, func() (_ bool, err error) {
		t.at = time.Now()
		t.turns, err = p.Metric(ctx, "dpwatch_worker_turns_total")
		return t.turns > before, err
	})
	if err != nil {
		return t, err
	}
	t.seconds, err = p.Metric(ctx, "dpwatch_worker_turn_seconds_total")
	return t, err
}
