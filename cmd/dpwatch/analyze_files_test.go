package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// csvOf returns lines of numbers as the first column of a CSV with a header and a constant second column.
func csvOf(lines string) string {
	var b strings.Builder
	b.WriteString("n,kind\n")
	for line := range strings.Lines(lines) {
		fmt.Fprintf(&b, "%s,a\n", strings.TrimSpace(line))
	}
	return b.String()
}

// TestAnalyzeTables: the same results as lines and CSV give the same figures; a leak of 3 against a claim of 1 is
// a violation in each. Laplace noise of scale 1/3 and a distance of 1; a violation is missed with a probability far
// below 1e-6 (2,000 pairs), and seeds are fixed.
func TestAnalyzeTables(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 16))
	d0, d1 := laplace(rng, 2000, 1, 1./3), laplace(rng, 2000, 0, 1./3)
	long := func(lines string) string {
		var b strings.Builder
		b.WriteString("run,grp,n\n")
		i := 0
		for line := range strings.Lines(lines) {
			fmt.Fprintf(&b, "%d,a,%s\n%d,b,7\n", i, strings.TrimSpace(line), i)
			i++
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, d0, d1 string
		args         []string
		read         string
	}{
		{"lines", d0, d1, nil, "lines: one result a line, 2000 results"},
		{"one column and its name", "n\n" + d0, "n\n" + d1, nil, "csv: columns n; every line a trial, 2000 trials"},
		{"CSV", csvOf(d0), csvOf(d1), nil, "csv: columns n, kind; every line a trial, 2000 trials"},
		{"long", long(d0), long(d1), []string{"--trial", "run", "--key", "grp"}, "csv: columns run, grp, n; trials by run, keys grp; 4000 rows in 2000 trials"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"analyze", "--d0", file(t, "d0", tc.d0), "--d1", file(t, "d1", tc.d1), "--epsilon", "1"}, tc.args...)
			call(t, "", args...).want(t, exitViolation, "D0 read as", tc.read)
			r := call(t, "", append(args, "-o", "json")...)
			r.want(t, exitViolation)
			report := r.object(t)
			checkContract(t, report)
			input, _ := report["input"].(map[string]any)
			in, _ := input["d1"].(map[string]any)
			if in["trials"] != 2000.0 || in["unused"] != 0.0 || report["trials"].(map[string]any)["d0"] != 2000.0 {
				t.Errorf("input %v, trials %v", in, report["trials"])
			}
		})
	}
}

// TestAnalyzeUnequal: a few extra trials are reported in text and JSON; more than twice as many are rejected.
func TestAnalyzeUnequal(t *testing.T) {
	t.Parallel()
	ones := func(n int) string { return file(t, "ones", strings.Repeat("1\n", n)) }
	args := []string{"analyze", "--d0", ones(60), "--d1", ones(50), "--epsilon", "1"}
	call(t, "", args...).want(t, exitInconclusive, "60 results on D0 and 50 on D1: the last 10 of D0 were not used")
	report := call(t, "", append(args, "-o", "json")...).object(t)
	if in := report["input"].(map[string]any)["d0"].(map[string]any); in["unused"] != 10.0 || len(report["warnings"].([]any)) == 0 {
		t.Errorf("input %v, warnings %v", in, report["warnings"])
	}
	call(t, "", "analyze", "--d0", ones(50), "--d1", ones(20_000), "--epsilon", "1").want(t, exitFailure, "has 50 trials and", "20000")
}

// TestAnalyzeSorted: sorted results of an honest mechanism are no violation, and the order is reported; in their own
// order they are not valid trials for a verdict. The seeds are fixed; the verdict is wrong by chance with probability
// 1e-6.
func TestAnalyzeSorted(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 9))
	var worlds [2]string
	for w := range worlds {
		lines := strings.Split(strings.TrimSpace(laplace(rng, 1000, float64(w), 1)), "\n")
		slices.SortFunc(lines, func(a, b string) int {
			x, _ := strconv.ParseFloat(a, 64)
			y, _ := strconv.ParseFloat(b, 64)
			return cmp.Compare(x, y)
		})
		worlds[w] = file(t, "sorted.txt", strings.Join(lines, "\n")+"\n")
	}
	args := []string{"analyze", "--d0", worlds[0], "--d1", worlds[1], "--epsilon", "1", "--confidence", "0.999999", "-o", "json"}
	for seed, inOrder := range []bool{false, false, true} {
		extra := []string{"--seed", strconv.Itoa(seed)}
		if inOrder {
			extra = append(extra, "--in-order")
		}
		r := call(t, "", append(args, extra...)...)
		report := r.object(t)
		if report["verdict"] == "violation" {
			t.Errorf("in order %t: sorted honest results are a violation: %v", inOrder, report["reason"])
		}
		said := fmt.Sprint(report["warnings"])
		if want := "on D0 the results change in the sum of its numbers"; !strings.Contains(said, want) {
			t.Errorf("in order %t: warnings %s, want %q", inOrder, said, want)
		}
		if got := strings.Contains(said, "--in-order"); got == inOrder {
			t.Errorf("in order %t: warnings %s", inOrder, said)
		}
		if input, _ := report["input"].(map[string]any); inOrder != (input["seed"] == nil) {
			t.Errorf("in order %t: seed %v", inOrder, input["seed"])
		}
	}
}

// TestAnalyzeDependent: Gaussian noise that is correlated with that of the trial before gives no verdict, in either
// order. With independent noise the verdict stands, also if the lines are sorted. The seeds are fixed.
func TestAnalyzeDependent(t *testing.T) {
	t.Parallel()
	verdict := func(seed uint64, shift, correlation float64, sorted bool, extra ...string) (verdict, reason string) {
		rng := rand.New(rand.NewPCG(seed, 10))
		var worlds [2]string
		for w := range worlds {
			z, lines := rng.NormFloat64(), make([]float64, 1500)
			for i := range lines {
				z = correlation*z + math.Sqrt(1-correlation*correlation)*rng.NormFloat64()
				lines[i] = shift*float64(w) + z
			}
			if sorted {
				slices.Sort(lines)
			}
			text := ""
			for _, x := range lines {
				text += fmt.Sprintf("%.3f\n", x)
			}
			worlds[w] = file(t, "dependent.txt", text)
		}
		r := call(t, "", append([]string{"analyze", "--d0", worlds[0], "--d1", worlds[1], "--epsilon", "0.5", "-o", "json"}, extra...)...).object(t)
		return fmt.Sprint(r["verdict"]), fmt.Sprint(r["reason"])
	}
	for seed := range uint64(16) {
		for _, extra := range [][]string{nil, {"--in-order"}} {
			if v, reason := verdict(seed, .1, .9, false, extra...); v != "inconclusive" || !strings.Contains(reason, "depend on each other") {
				t.Errorf("dependent, seed %d, %v: %s (%s)", seed, extra, v, reason)
			}
		}
	}
	for _, sorted := range []bool{false, true} {
		if v, reason := verdict(1, 2, 0, sorted); v != "violation" {
			t.Errorf("independent, sorted %t: %s (%s), want a violation", sorted, v, reason)
		}
		if v, reason := verdict(1, .05, 0, sorted); v != "no_evidence" {
			t.Errorf("independent, sorted %t: %s (%s), want no evidence", sorted, v, reason)
		}
	}
}
