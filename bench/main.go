// Command bench runs the benchmarks that are programs: what the proxy costs, how fast replays are, what hoisting gains,
// how many trials a violation takes, what neighbours cost, how long queries wait for their audits, what a flood of
// distinct texts does, and how trials per second grow with workers. The Makefile has a target for each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/bench/flood"
	"github.com/dpwatch/dpwatch/bench/hoist"
	"github.com/dpwatch/dpwatch/bench/neighbours"
	"github.com/dpwatch/dpwatch/bench/power"
	"github.com/dpwatch/dpwatch/bench/proxy"
	"github.com/dpwatch/dpwatch/bench/replay"
	"github.com/dpwatch/dpwatch/bench/schedule"
	"github.com/dpwatch/dpwatch/bench/workers"
)

var benchmarks = map[string]func(ctx context.Context, args []string) error{
	"flood": flood.Run, "honest": power.Honest, "hoist": hoist.Run, "neighbours": neighbours.Run, "peers": power.Peers, "power": power.Run, "proxy": proxy.Run, "replay": replay.Run, "schedule": schedule.Run,
	"workers": workers.Run,
}

func main() {
	if len(os.Args) < 2 || benchmarks[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "bench: name a benchmark: %s\n", strings.Join(slices.Sorted(maps.Keys(benchmarks)), ", "))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // temporary servers are stopped
	err := benchmarks[os.Args[1]](ctx, os.Args[2:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
