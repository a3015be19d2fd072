package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// laplace returns n lines of centre plus Laplace noise, rounded to multiples of 1/1024: the lowest bits of unrounded
// floating-point noise reveal the centre (Mironov 2012), which the analysis would detect.
func laplace(rng *rand.Rand, n int, centre, scale float64) string {
	var b strings.Builder
	for range n {
		u := rng.Float64() - 0.5
		noise := -scale * math.Copysign(math.Log(1-2*math.Abs(u)), u)
		fmt.Fprintf(&b, "%v\n", math.Round((centre+noise)*1024)/1024)
	}
	return b.String()
}

// contractKeys are the keys in the JSON of audit and analyze that scripts rely on.
var contractKeys = []string{
	"verdict", "reason", "claimed", "epsilon_lower", "confidence", "epsilon_estimate", "wealth_log", "trials",
	"event", "attacker", "detected_at", "minimal_detectable_epsilon", "partitions",
}

// checkContract checks that a report has these keys and forms.
func checkContract(t *testing.T, report map[string]any) {
	t.Helper()
	for _, key := range contractKeys {
		if _, ok := report[key]; !ok {
			t.Errorf("the JSON lacks %q", key)
		}
	}
	for key, inner := range map[string][]string{
		"claimed": {"epsilon", "delta", "source"}, "trials": {"d0", "d1"},
		"attacker": {"prior_odds", "likelihood_ratio", "posterior_odds", "breached"},
	} {
		object, _ := report[key].(map[string]any)
		for _, k := range inner {
			if _, ok := object[k]; !ok {
				t.Errorf("the JSON lacks %s.%s", key, k)
			}
		}
	}
	if event, ok := report["event"].(map[string]any); ok {
		for _, k := range []string{"score", "partition", "direction", "description"} {
			if _, ok := event[k]; !ok {
				t.Errorf("the JSON lacks event.%s", k)
			}
		}
	}
}

func TestAnalyzeVerdicts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	const n = 2000
	world0, world1 := laplace(rng, n, 1, 1), laplace(rng, n, 0, 1)
	rows := func(text string) string {
		var b strings.Builder
		for line := range strings.Lines(text) {
			fmt.Fprintf(&b, `{"columns":["grp","sum"],"rows":[["a",%s]]}`+"\n", strings.TrimSpace(line))
		}
		return b.String()
	}
	for _, tc := range []struct {
		name, d0, d1 string
		epsilon      string
		verdict      string
		code         int
	}{
		// True epsilon 1. With confidence 0.95 an honest claim raises an alarm for at most 5 % of seeds; this seed does
		// not.
		{"honest", world0, world1, "1", "no_evidence", exitDone},
		{"half the noise", world0, world1, "0.5", "violation", exitViolation},
		{"half the noise, as result sets", rows(world0), rows(world1), "0.5", "violation", exitViolation},
		{"a row in one world only", strings.Repeat("1\n", 100), strings.Repeat("\n", 100), "1", "violation", exitViolation},
		{"errors in one world only", strings.Repeat("yes\n", 100), strings.Repeat(`{"error":"22012"}`+"\n", 100), "1", "violation", exitViolation},
		{"infeasible", laplace(rng, 50, 1, 1), laplace(rng, 50, 0, 1), "10", "inconclusive", exitInconclusive},
		{"one world is empty", world0, "", "1", "inconclusive", exitInconclusive},
		{"unequal counts", world0, world1 + "0\n0\n", "1", "no_evidence", exitDone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d0, d1 := file(t, "d0", tc.d0), file(t, "d1", tc.d1)
			r := call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", tc.epsilon, "-o", "json")
			r.want(t, tc.code)
			report := r.object(t)
			checkContract(t, report)
			if report["verdict"] != tc.verdict {
				t.Errorf("verdict %v, want %s\n%s", report["verdict"], tc.verdict, r.stdout)
			}
			text := call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", tc.epsilon)
			text.want(t, tc.code, map[string]string{"violation": "VIOLATION", "no_evidence": "not a proof of privacy", "inconclusive": "Inconclusive"}[tc.verdict])
		})
	}
}

func TestAnalyzeBadInput(t *testing.T) {
	t.Parallel()
	good := file(t, "good", strings.Repeat("1\n2\n", 10))
	broken := file(t, "broken", "1\n{\"rows\":[[1]\n"+strings.Repeat("1\n", 10))
	call(t, "", "analyze", "--d0", good, "--d1", broken, "--epsilon", "1").want(t, exitFailure, broken+":2:")
	// After the last result used, and where none is used.
	longer := file(t, "longer", strings.Repeat("1\n2\n", 10)+"1\n{\"rows\":[\n")
	call(t, "", "analyze", "--d0", good, "--d1", longer, "--epsilon", "1").want(t, exitFailure, longer+":22:")
	short := file(t, "short", "1\n{\"rows\":[\n")
	call(t, "", "analyze", "--d0", good, "--d1", short, "--epsilon", "1").want(t, exitFailure, short+":2:")
	call(t, "", "analyze", "--d0", short, "--d1", file(t, "nothing", ""), "--epsilon", "1").want(t, exitFailure, short+":2:")
	call(t, "", "analyze", "--d0", good, "--d1", "/nonexistent", "--epsilon", "1").want(t, exitFailure, "/nonexistent")
	call(t, "", "analyze", "--d0", good, "--d1", good, "--epsilon", "-1").want(t, exitFailure, "epsilon")
	call(t, "", "analyze", "--d0", good, "--d1", good, "--epsilon", "1", "--delta", "1").want(t, exitFailure, "delta")
	call(t, "", "analyze", "--d0", good, "--d1", good, "--epsilon", "1", "--confidence", "2").want(t, exitFailure, "confidence")
	call(t, "", "analyze", "--d0", good, "--d1", t.TempDir(), "--epsilon", "1").want(t, exitFailure, "is a directory")
	call(t, "", "analyze", "--d0", good, "--d1", good).want(t, exitFailure, "--epsilon")
	ragged := file(t, "ragged", "1\n"+`{"columns":["a"],"rows":[[1,2]]}`+strings.Repeat("\n1", 10)+"\n")
	call(t, "", "analyze", "--d0", good, "--d1", ragged, "--epsilon", "1").want(t, exitFailure, ragged+":2:")
	empty := file(t, "empty", "")
	for _, other := range []string{good, empty} { // an invalid claim is an error for any files
		for _, epsilon := range []string{"-1", "inf", "-inf", "nan"} {
			call(t, "", "analyze", "--d0", good, "--d1", other, "--epsilon="+epsilon).want(t, exitFailure, "claimed epsilon must be a finite number")
		}
		for _, delta := range []string{"1", "1.5", "-0.1", "nan"} {
			call(t, "", "analyze", "--d0", good, "--d1", other, "--epsilon", "1", "--delta="+delta).want(t, exitFailure, "claimed delta must be")
		}
	}
}

// More distinct words than are tracked, each of them rare, of which nothing can be compared, and results of very many
// groups: audited as far as possible, and reported.
func TestAnalyzeManyCategories(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 9))
	words := func() string {
		var b strings.Builder
		for range 20_000 {
			fmt.Fprintf(&b, "w%d\n", rng.IntN(1_000_000))
		}
		return file(t, "words", b.String())
	}
	r := call(t, "", "analyze", "--d0", words(), "--d1", words(), "--epsilon", "1", "-o", "json")
	r.want(t, exitInconclusive, "the answers were not read whole in column value")
	if w, ok := r.object(t)["warnings"].([]any); ok && len(w) > 0 {
		t.Errorf("fresh words: %v", w)
	}
	wide := func() string {
		var b strings.Builder
		for range 4 {
			b.WriteString(`{"columns":["g","n"],"rows":[["k",1]`)
			for k := range 20_000 {
				fmt.Fprintf(&b, `,["k%d",%.3f]`, k, rng.NormFloat64())
			}
			b.WriteString("]}\n")
		}
		return file(t, "wide", b.String())
	}
	r = call(t, "", "analyze", "--d0", wide(), "--d1", wide(), "--epsilon", "0.1", "-o", "json")
	r.want(t, exitInconclusive, "more group keys than can be audited one by one")
}

// Counts and results of the original method's own code (dp_tester, empirical_epsilon with min count 5).
func TestAnalyzeCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, counts, delta string
		want                float64 // NaN = null
	}{
		{"two buckets", `{"d0":[7311,2689],"d1":[2689,7311]}`, "0", 1.0002106860244515},
		{"delta", `{"d0":[7311,2689],"d1":[2689,7311]}`, "0.01", 0.986438260647895},
		{"three buckets", `{"d0":[5000,4900,100],"d1":[100,4900,5000]}`, "0", 3.912023005428146},
		{"no bucket in common", `{"d0":[10000,0],"d1":[0,10000]}`, "0", math.NaN()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := call(t, "", "analyze", "--counts", file(t, "counts.json", tc.counts), "--delta", tc.delta, "--min-count", "5", "-o", "json")
			r.want(t, exitDone)
			got, ok := r.object(t)["epsilon_estimate"].(float64)
			switch {
			case math.IsNaN(tc.want) && ok:
				t.Errorf("got %v, want null", got)
			case !math.IsNaN(tc.want) && math.Abs(got-tc.want) > 1e-9:
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	for _, bad := range []string{`{"d0":[1],"d1":[1,2]}`, `{"d0":[1],"d1":[2]}`, `{"d0":[-1,2],"d1":[1,0]}`, `[]`, `{"d0":[],"d1":[]}`} {
		if r := call(t, "", "analyze", "--counts", file(t, "bad.json", bad)); r.code != exitFailure || r.stderr == "" {
			t.Errorf("%s: code %d, %q; want a fault", bad, r.code, r.stderr)
		}
	}
}

// A pipe can be read only once, but the files are read twice.
func TestAnalyzeReadsPipes(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = w.WriteString(strings.Repeat("1\n", 120))
		_ = w.Close()
	}()
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	out := call(t, "", "analyze", "--d0", path, "--d1", file(t, "d1", strings.Repeat("2\n", 120)), "--epsilon", "1", "-o", "json")
	out.want(t, exitViolation)
	if !slices.Contains([]any{"violation"}, out.object(t)["verdict"]) {
		t.Error("constant answers that differ between the worlds are a violation")
	}
}

// The values of recorded results are shown to the holder of the file, and withheld with --values=false, as text and as
// JSON.
func TestAnalyzeValues(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 11))
	var text0, text1 strings.Builder
	for range 200 {
		fmt.Fprintf(&text0, `{"columns":["ward","n"],"rows":[["MRN777",%d],["b",%d]]}`+"\n", rng.IntN(3), rng.IntN(3))
		fmt.Fprintf(&text1, `{"columns":["ward","n"],"rows":[["b",%d]]}`+"\n", rng.IntN(3))
	}
	d0, d1 := file(t, "d0", text0.String()), file(t, "d1", text1.String())
	for _, format := range []string{"text", "json"} {
		shown := call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "1", "-o", format)
		hidden := call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "1", "-o", format, "--values=false")
		shown.want(t, exitViolation)
		hidden.want(t, exitViolation)
		if format == "json" && !strings.Contains(shown.stdout, "MRN777") {
			t.Errorf("the key is not shown\n%s", shown.stdout)
		}
		if strings.Contains(hidden.stdout+hidden.stderr, "MRN777") {
			t.Errorf("the key is shown\n%s", hidden.stdout)
		}
		if format == "json" && !strings.Contains(hidden.stdout, "group 1 of 2 (id ") {
			t.Errorf("no group is named\n%s", hidden.stdout)
		}
	}
	call(t, "", "analyze", "--d0", d0, "--d1", d1, "--epsilon", "1", "--values=false", "--plot", t.TempDir()).want(t, exitFailure, "--plot")
}
