package buckets_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/buckets"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

func number(x float64) outcome.Outcome {
	return outcome.Outcome{Columns: []outcome.Column{{Name: "n"}}, Rows: [][]outcome.Value{{{Kind: outcome.Number, Num: x}}}}
}

func collector(t testing.TB, rules ...string) *buckets.Collector {
	t.Helper()
	var all []buckets.Rule
	for _, text := range rules {
		r, err := buckets.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	c, err := buckets.NewCollector(all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func add(t testing.TB, c *buckets.Collector, d0, d1 outcome.Outcome) {
	t.Helper()
	if err := c.Add(d0, d1); err != nil {
		t.Fatal(err)
	}
}

func analyze(t testing.TB, c *buckets.Collector, epsilon, delta float64) buckets.Report {
	t.Helper()
	r, err := c.Analyze(analysis.Claim{Epsilon: epsilon, Delta: delta}, .95, 5)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// counts returns the counts of a report by the names of the buckets.
func counts(r buckets.Report) map[string][2]int {
	all := map[string][2]int{}
	for _, b := range r.Buckets {
		all[b.Name.Reveal()] = [2]int{b.D0, b.D1}
	}
	return all
}

func TestBuckets(t *testing.T) {
	t.Parallel()
	columns := []outcome.Column{{Name: "g"}, {Name: "n"}}
	row := func(g string, n float64) outcome.Outcome {
		return outcome.Outcome{Columns: columns, Rows: [][]outcome.Value{{{Kind: outcome.Text, Text: g}, {Kind: outcome.Number, Num: n}}}}
	}
	empty, failed := outcome.Outcome{Columns: columns}, outcome.Outcome{SQLState: "22012"}
	gap := outcome.Outcome{Columns: columns, Rows: [][]outcome.Value{{{}, {Kind: outcome.Number, Num: math.NaN()}}}}
	several := outcome.Outcome{Columns: columns, Rows: [][]outcome.Value{{{}, {}}, {{}, {}}}}
	trials := [][2]outcome.Outcome{{row("a", 0), row("a", 9.99)}, {row("b", 10), row("c", -1)}, {empty, failed}, {gap, row("a", math.Inf(1))}}
	for _, c := range []struct {
		rules []string
		more  [][2]outcome.Outcome
		want  map[string][2]int
	}{
		{[]string{"n=0,10"}, nil, map[string][2]int{"n below 0": {0, 1}, "n 0 to 10": {1, 1}, "n 10 and above": {1, 1}, "no row": {1, 0}, "error": {0, 1}, "n other": {1, 0}}},
		{[]string{"g={a,b}"}, nil, map[string][2]int{"g a": {1, 2}, "g b": {1, 0}, "g other": {0, 1}, "no row": {1, 0}, "error": {0, 1}, "g NULL": {1, 0}}},
		{[]string{"n={9.990,10}"}, nil, map[string][2]int{"n 10": {1, 0}, "n 9.99": {0, 1}, "n other": {2, 2}, "no row": {1, 0}, "error": {0, 1}}},
		{[]string{"rows=1,2"}, [][2]outcome.Outcome{{several, empty}}, map[string][2]int{"rows below 1": {1, 1}, "rows 1 to 2": {3, 3}, "rows 2 and above": {1, 0}, "error": {0, 1}}},
		{[]string{"g={a}", "n=5"}, nil, map[string][2]int{
			"g a, n below 5": {1, 0}, "g a, n 5 and above": {0, 2}, "g other, n 5 and above": {1, 0}, "g other, n below 5": {0, 1}, "no row": {1, 0}, "error": {0, 1}, "g NULL, n other": {1, 0},
		}},
	} {
		all := collector(t, c.rules...)
		for _, x := range append(slices.Clone(trials), c.more...) {
			add(t, all, x[0], x[1])
		}
		if diff := cmp.Diff(c.want, counts(analyze(t, all, 1, 0))); diff != "" {
			t.Errorf("%v (-want +got)\n%s", c.rules, diff)
		}
	}
	for rule, want := range map[string]string{"0,1": "on D0: --partition: the results have 2 columns: name one", "x=1": "the results have no column x", "n=1": "on D1: --partition: a result has 2 rows"} {
		d1 := row("secret", 1)
		if rule == "n=1" {
			d1 = several
		}
		if err := collector(t, rule).Add(row("secret", 1), d1); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", rule, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "write numbers with commas", "=1": "the name of the column", "0,x": "write numbers", "1,1": "must increase", "2,1": "must increase", "NaN": "write numbers", "Inf": "write numbers",
		"{a,b": "} is missing", "{a,a}": "each once", "{1,1.0}": "each once", "{}": "between { and }", `{"a}`: "between { and }", "quantile:1": "from 2 to 1000", "quantile:x": "from 2 to 1000", "n=": "write numbers",
	} {
		if _, err := buckets.Parse(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--partition "+text) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func laplace(rng *rand.Rand) float64 { return rng.ExpFloat64() - rng.ExpFloat64() }

// TestErrorRate: of mechanisms whose loss is exactly the claim, at most one in 20 has a bound above it. The limit is 6
// standard deviations above that (false alarm 1e-8 for each rule); the bucket method's point estimate is above the
// claim nearly always.
func TestErrorRate(t *testing.T) {
	t.Parallel()
	const runs, pairs = 400, 600
	limit := int(.05*runs + 6*math.Sqrt(.05*.95*runs))
	rng := rand.New(rand.NewPCG(5, 8))
	for _, rules := range [][]string{{"-1,0,0.5,1,2"}, {"quantile:20"}, {"quantile:4", "0.5"}} {
		above, points := 0, 0
		for range runs {
			c := collector(t, rules...)
			for range pairs {
				add(t, c, number(laplace(rng)), number(1+laplace(rng)))
			}
			r := analyze(t, c, 1, 0)
			if (r.Verdict == analysis.Violation) != (r.EpsilonLower > 1) {
				t.Fatalf("%+v", r)
			}
			if r.EpsilonLower > 1 {
				above++
			}
			if r.Estimate > 1 {
				points++
			}
		}
		if above > limit {
			t.Errorf("%v: %d of %d bounds are above the true epsilon, limit %d", rules, above, runs, limit)
		}
		if points < runs/4 {
			t.Errorf("%v: %d of %d point estimates are above the true epsilon: the comparison shows nothing", rules, points, runs)
		}
	}
}

// TestDetects has fixed seeds: the outcome is always the same.
func TestDetects(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		rule           string
		epsilon, delta float64
		d0, d1         func() outcome.Outcome
		direction      string
		violation      bool
	}{
		"quantiles":        {"quantile:10", 1, 0, func() outcome.Outcome { return number(laplace(rng)) }, func() outcome.Outcome { return number(2 + laplace(rng)) }, "", true},
		"always different": {"0.5", 3, 0, func() outcome.Outcome { return number(0) }, func() outcome.Outcome { return number(1) }, "D0", true},
		"only on D1":       {"{x}", 1, 0, func() outcome.Outcome { return number(0) }, func() outcome.Outcome { return number(float64(rng.IntN(2))) }, "", false},
		"errors on D1": {"0", 1, 0, func() outcome.Outcome { return number(0) }, func() outcome.Outcome {
			if rng.IntN(10) == 0 {
				return outcome.Outcome{SQLState: "22012"}
			}
			return number(0)
		}, "D1", true},
		"within delta": {"0", 1, .2, func() outcome.Outcome { return number(0) }, func() outcome.Outcome {
			if rng.IntN(10) == 0 {
				return outcome.Outcome{SQLState: "22012"}
			}
			return number(0)
		}, "", false},
		"the same": {"quantile:10", .01, 0, func() outcome.Outcome { return number(3) }, func() outcome.Outcome { return number(3) }, "", false},
	} {
		all := collector(t, c.rule)
		for range 4000 {
			add(t, all, c.d0(), c.d1())
		}
		r := analyze(t, all, c.epsilon, c.delta)
		if (r.Verdict == analysis.Violation) != c.violation || c.direction != "" && r.Direction != c.direction || r.Selecting+r.Testing != 4000 {
			t.Errorf("%s: %s, bound %v, event %v on %q", name, r.Verdict, r.EpsilonLower, r.Event, r.Direction)
		}
		if first, last := r.Errors[0], r.Errors[len(r.Errors)-1]; first != (buckets.Error{FalsePositive: 0, FalseNegative: 1}) || last != (buckets.Error{FalsePositive: 1, FalseNegative: 0}) {
			t.Errorf("%s: the curve is from %v to %v", name, first, last)
		}
	}
}

// TestQuantilesFromFirstHalf: the second half does not change the edges, and their values are withheld.
func TestQuantilesFromFirstHalf(t *testing.T) {
	t.Parallel()
	names := func(second float64) (public, full []string) {
		c := collector(t, "quantile:4")
		for i := range 20 {
			x := float64(i)
			if i >= 10 {
				x = second * float64(i%2)
			}
			add(t, c, number(x), number(x))
		}
		for _, b := range analyze(t, c, 1, 0).Buckets {
			public, full = append(public, b.Name.String()), append(full, b.Name.Reveal())
		}
		slices.Sort(full)
		return public, full
	}
	public, one := names(1000)
	_, two := names(9)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("the second half changes the buckets\n%s", diff)
	}
	if want := []string{"2 to 5", "5 to 7", "7 and above", "below 2"}; !slices.Equal(one, want) || strings.Contains(fmt.Sprint(public), "to") || !slices.Contains(public, "quantile bucket 4 of 4") {
		t.Errorf("%q, %q", one, public)
	}
}

func FuzzAnalyze(f *testing.F) {
	f.Add("0,10,20", uint64(1), 1.0, 0.0)
	f.Add("n=quantile:8", uint64(2), 0.0, .5)
	f.Add("{1,2,a}", uint64(3), 1e300, 0.0)
	f.Add("rows=1", uint64(4), 1.0, .999)
	f.Fuzz(func(t *testing.T, rule string, seed uint64, epsilon, delta float64) {
		parsed, err := buckets.Parse(rule)
		if err != nil {
			return
		}
		c, err := buckets.NewCollector([]buckets.Rule{parsed})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		values := []outcome.Outcome{number(math.NaN()), number(math.Inf(-1)), number(-1e308), number(0), number(1), number(2.5), number(1e308), {SQLState: "22012"}, {Columns: []outcome.Column{{Name: "n"}}}}
		for range rng.IntN(60) {
			if err := c.Add(values[rng.IntN(len(values))], values[rng.IntN(len(values))]); err != nil {
				return
			}
		}
		r, err := c.Analyze(analysis.Claim{Epsilon: epsilon, Delta: delta}, .95, 5)
		if err != nil {
			return
		}
		if !(r.EpsilonLower >= 0) || math.IsInf(r.EpsilonLower, 0) {
			t.Errorf("bound %v", r.EpsilonLower)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
