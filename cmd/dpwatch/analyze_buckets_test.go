package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnalyzePartition(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 5))
	dir := filepath.Join(t.TempDir(), "plots")
	d0, d1 := file(t, "d0", laplace(rng, 2000, 0, 1)), file(t, "d1", laplace(rng, 2000, 1, 1))
	analyze := func(args ...string) result {
		return call(t, "", append([]string{"analyze", "--d0", d0, "--d1", d1}, args...)...)
	}
	// The true epsilon is 1; the seeds are fixed.
	analyze("--epsilon", "1", "--partition", "-1,0,1,2").want(t, exitDone, "no evidence against the claim in these buckets", "1000 pairs of trials; 1000 others chose the event", "below -1")
	analyze("--epsilon", "0.3", "--partition", "quantile:8", "--plot", dir).want(t, exitViolation, "VIOLATION: the buckets leak at least epsilon", " and above")
	for _, name := range []string{"buckets.svg", "errors.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	hidden := analyze("--epsilon", "0.3", "--partition", "quantile:8", "--values=false")
	hidden.want(t, exitViolation, "quantile bucket 1 of 8")
	if strings.Contains(hidden.stdout, "and above") {
		t.Errorf("an edge is shown:\n%s", hidden.stdout)
	}
	report := analyze("--epsilon", "0.3", "--partition", "value=quantile:8", "-o", "json", "--in-order").object(t)
	if all, ok := report["buckets"].([]any); !ok || len(all) != 8 || report["verdict"] != "violation" || report["testing_pairs"] != 1000. || len(report["error_rates"].([]any)) != 9 {
		t.Errorf("%v", report)
	}
	analyze("--epsilon", "1", "--partition", "1,0").want(t, exitFailure, "--partition 1,0: the numbers must increase")
	analyze("--epsilon", "1", "--partition", "x=1").want(t, exitFailure, "the results have no column x")
	call(t, "", "analyze", "--counts", d0, "--partition", "1").want(t, exitFailure, "--partition cannot be used with --counts")
}
