// Package proxy measures the cost of a proxy: one client rotates between the targets (direct, dpwatch with and without
// capture, PgBouncer) every few tens of milliseconds, so that noise on the machine affects all alike, and the CPU time
// of each proxy process is divided by its number of transactions. See docs/measured/performance.md.
package proxy

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type options struct {
	dpwatch string
	seconds float64
	slice   time.Duration
	trial   time.Duration
	clients []int
	modes   []string
	extra   [][2]string // name and command of further proxies
	// variants are further configurations of dpwatch.
	variants []variant
	sets     map[string]bool // the parts to run
}

// Run measures with the arguments of the command line, and prints tables in markdown.
func Run(ctx context.Context, args []string) error {
	o := options{sets: map[string]bool{}}
	fs := flag.NewFlagSet("proxy", flag.ContinueOnError)
	fs.StringVar(&o.dpwatch, "dpwatch", "bin/dpwatch", "the dpwatch binary")
	fs.Float64Var(&o.seconds, "seconds", 8, "seconds per cell (one mode, one number of clients, all targets)")
	fs.DurationVar(&o.slice, "slice", 40*time.Millisecond, "how long the client stays on one target")
	fs.DurationVar(&o.trial, "trial", 25*time.Millisecond, "how long a replayed query takes, in the part replay")
	clients := fs.String("clients", "1,8,32", "numbers of clients")
	modes := fs.String("modes", "simple,extended,prepared", "protocol modes")
	parts := fs.String("parts", "idle,transactions,bulk,replay,tls,tlsbulk", "what to measure")
	more := fs.String("extra", "", "further proxies, separated by semicolons: name=command, where {listen} and {upstream} are replaced")
	env := fs.String("variants", "", "further runs of dpwatch with capture, separated by semicolons: name=VARIABLE=value")
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.modes = strings.Split(*modes, ",")
	for _, p := range strings.Split(*parts, ",") {
		o.sets[p] = true
	}
	for _, c := range strings.Split(*clients, ",") {
		n, err := strconv.Atoi(c)
		if err != nil || n < 1 {
			return fmt.Errorf("--clients %q: must be numbers from 1, separated by commas", *clients)
		}
		o.clients = append(o.clients, n)
	}
	for _, item := range strings.Split(*env, ";") {
		if name, setting, ok := strings.Cut(item, "="); ok {
			v := variant{name: strings.TrimSpace(name), capture: true, protected: standard[0].protected, env: []string{setting}}
			o.variants = append(o.variants, v)
		}
	}
	for _, item := range strings.Split(*more, ";") {
		name, command, ok := strings.Cut(item, "=")
		if ok {
			o.extra = append(o.extra, [2]string{strings.TrimSpace(name), command})
		}
	}
	return bench(ctx, o)
}
