// Package workers measures the trials per second of dpwatch worker processes against an engine that waits instead of
// computing, so that the processors of this machine are not what is measured, and what the ledger costs per turn.
package workers

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type options struct {
	program      string
	counts       []int
	wait, short  time.Duration
	window, warm time.Duration
	queries      int
}

// Run measures with the arguments of the command line, and prints tables in markdown.
func Run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("workers", flag.ContinueOnError)
	var o options
	flags.StringVar(&o.program, "dpwatch", "bin/dpwatch", "the dpwatch binary")
	counts := flags.String("workers", "1,2,4", "numbers of workers, increasing")
	flags.DurationVar(&o.wait, "wait", 50*time.Millisecond, "how long the engine waits in a trial")
	flags.DurationVar(&o.short, "short", 2*time.Millisecond, "the same for the cost of the ledger")
	flags.DurationVar(&o.window, "seconds", 20*time.Second, "how long each is measured")
	flags.DurationVar(&o.warm, "warm", 2*time.Second, "how long it runs before that")
	flags.IntVar(&o.queries, "queries", 8, "distinct queries")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, text := range strings.Split(*counts, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || len(o.counts) > 0 && n <= o.counts[len(o.counts)-1] {
			return fmt.Errorf("-workers %q: must be increasing numbers from 1, separated by commas", *counts)
		}
		o.counts = append(o.counts, n)
	}
	if o.wait <= 0 || o.short <= 0 || o.window <= 0 || o.queries < 2*o.counts[len(o.counts)-1] || o.queries > 20 {
		return fmt.Errorf("-queries must be between twice the largest number of workers and 20, and -wait, -short and -seconds positive")
	}
	if err := scale(ctx, o); err != nil {
		return err
	}
	return cost(ctx, o)
}
