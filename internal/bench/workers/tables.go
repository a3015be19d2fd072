package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/bench/kit"
)

// scale prints the trials per second of increasing numbers of workers.
func scale(ctx context.Context, o options) error {
	f, err := startFleet(ctx, o, o.wait, false, 0)
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

// cost prints the trials per second of one slot in run without and with a ledger, and in a worker: medians of several times in turns, so that
// noise on the machine affects all alike.
func cost(ctx context.Context, o options) error {
	fmt.Printf("\nOne slot, an engine that waits %v in a trial; medians of %d.\n\n| audits are kept | replays run in | trials per second | share of the time that the ledger takes |\n|---|---|---|---|\n", o.short, o.repeats)
	cases := []struct {
		kept, where string
		memory      bool
		slots       int
	}{{"in memory", "`run`", true, 1}, {"in a ledger", "`run`", false, 1}, {"in a ledger", "a worker", false, 0}}
	rates := make([][]float64, len(cases))
	for range o.repeats {
		for i, c := range cases {
			rate, err := rateOf(ctx, o, c.memory, c.slots)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate)
		}
	}
	without := kit.Median(rates[0])
	for i, c := range cases {
		rate, share := kit.Median(rates[i]), "-"
		if i > 0 {
			share = fmt.Sprintf("%.1f %%", 100*(1-rate/without))
		}
		fmt.Printf("| %s | %s | %.0f | %s |\n", c.kept, c.where, rate, share)
	}
	return nil
}

func rateOf(ctx context.Context, o options, memory bool, slots int) (float64, error) {
	f, err := startFleet(ctx, o, o.short, memory, slots)
	if err != nil {
		return 0, err
	}
	defer f.close()
	if err := f.add(ctx, 1); slots == 0 && err != nil {
		return 0, err
	}
	o.warm = max(o.warm, 10*time.Second) // the first turns are short
	return f.rate(ctx, o)
}
