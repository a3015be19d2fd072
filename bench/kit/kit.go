// Package kit holds what the benchmarks share.
package kit

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
)

// pgbenchRate matches the rate in pgbench's output.
var pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// Pgbench runs the program with the arguments and returns its transactions per second. The error includes its output.
func Pgbench(ctx context.Context, program string, args ...string) (float64, error) {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	found := pgbenchRate.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("no figure in pgbench's output:\n%s", out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// Median sorts values and returns the middle one, the upper of two.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
