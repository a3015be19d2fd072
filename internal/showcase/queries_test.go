package showcase_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/showcase"
)

// results holds the results of repeated executions of a query: per key (all columns but the last, "" if there are none)
// the values of the last column, except NULLs.
type results struct {
	runs   int
	values map[string][]float64
	nulls  map[string]int
}

func replay(t testing.TB, schema string, q showcase.Query, runs int) results {
	t.Helper()
	conn := replica(t, schema, q)
	r := results{runs: runs, values: map[string][]float64{}, nulls: map[string]int{}}
	for range runs {
		rows, err := conn.Query(context.Background(), q.SQL, arguments(q)...)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			fields, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			last := len(fields) - 1
			key := ""
			if last > 0 {
				key = fmt.Sprint(fields[:last]...)
			}
			if fields[last] == nil {
				r.nulls[key]++
				continue
			}
			value, err := strconv.ParseFloat(fmt.Sprint(fields[last]), 64)
			if err != nil {
				t.Fatal(err)
			}
			r.values[key] = append(r.values[key], value)
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	return r
}

// laplace is the distribution of a query's results: per key a centre, and a common scale.
type laplace struct {
	scale   float64
	rounded bool // to whole numbers, after the noise
	centres func(showcase.Data) map[string]float64
}

func one(value float64) map[string]float64 { return map[string]float64{"": value} }

// laws are derived from the queries' text; the fields of the queries are checked against them.
var laws = map[string]laplace{
	"count of users": {2, true, func(d showcase.Data) map[string]float64 { return one(float64(len(d.Users))) }},
	"clipped sum": {5000, false, func(d showcase.Data) map[string]float64 {
		totals := map[int32]float64{}
		for _, tx := range d.Transactions {
			if tx.StoreID < 40 {
				totals[tx.UserID] += tx.Spent
			}
		}
		var sum float64
		for _, total := range totals {
			sum += min(total, 5000)
		}
		return one(sum)
	}},
	"visitors of ten stores": {10, false, func(d showcase.Data) map[string]float64 { return visitors(d, 190) }},
	"count by setting": {1 / 0.8, false, func(d showcase.Data) map[string]float64 {
		var n float64
		for _, u := range d.Users {
			if u.Income > 45000 {
				n++
			}
		}
		return one(n)
	}},
	"half the noise":           {0.5, true, func(d showcase.Data) map[string]float64 { return one(float64(len(d.Users))) }},
	"one person in all stores": {1, false, func(d showcase.Data) map[string]float64 { return visitors(d, 0) }},
	"group of one person": {1, true, func(d showcase.Data) map[string]float64 {
		classes := map[string]float64{}
		for _, u := range d.Users {
			classes[u.IncomeClass]++
		}
		return classes
	}},
	"sum not clipped": {30000, false, func(d showcase.Data) map[string]float64 {
		var sum float64
		for _, u := range d.Users {
			sum += u.Income
		}
		return one(sum)
	}},
}

func visitors(d showcase.Data, from int32) map[string]float64 {
	seen := map[[2]int32]bool{}
	stores := map[string]float64{}
	for _, tx := range d.Transactions {
		if visit := [2]int32{tx.StoreID, tx.UserID}; tx.StoreID >= from && !seen[visit] {
			seen[visit] = true
			stores[fmt.Sprint(tx.StoreID)]++
		}
	}
	return stores
}

func queryNamed(t testing.TB, name string) showcase.Query {
	t.Helper()
	for _, q := range showcase.Queries() {
		if q.Name == name {
			return q
		}
	}
	t.Fatalf("no query %q", name)
	return showcase.Query{}
}

// TestLaws replays every Laplace query on both neighbours: the results must have the centres derived from the data and
// the scale of the distribution, so that the true epsilon is the sum over the groups of |centre on D0 - centre on D1| /
// scale, +Inf if a group is missing in one world. False alarm: each comparison is at 8 standard errors of its own,
// estimated from 70 values or more; Student's distribution with 69 degrees of freedom has 2e-11 beyond that, and all
// 450 comparisons together 1e-8.
func TestLaws(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	d0 := showcase.Generate(showcase.Seed)
	d1 := d0.Without(showcase.HeavyUser)
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := queryNamed(t, name)
			c0, c1 := law.centres(d0), law.centres(d1)
			runs := 1000 / int(math.Sqrt(float64(len(c0))))
			checkLaplace(t, law, c0, replay(t, showcase.D0, q, runs))
			checkLaplace(t, law, c1, replay(t, showcase.D1, q, runs))

			epsilon := 0.0
			for key, centre := range c0 {
				if other, ok := c1[key]; ok {
					epsilon += math.Abs(centre-other) / law.scale
				} else {
					epsilon = math.Inf(1)
				}
			}
			if diff := math.Abs(epsilon - q.Epsilon); diff > 1e-9 {
				t.Errorf("true epsilon is %g, the query says %g", epsilon, q.Epsilon)
			}
			checkVerdict(t, q)
		})
	}
}

// checkVerdict compares the planted verdict with the true epsilon.
func checkVerdict(t *testing.T, q showcase.Query) {
	t.Helper()
	want := showcase.NoEvidence
	if q.Epsilon > q.Claim.Epsilon+1e-9 {
		want = showcase.Violation
	}
	if q.WantVerdict != want {
		t.Errorf("planted %s, but claim %g and true epsilon %g", q.WantVerdict, q.Claim.Epsilon, q.Epsilon)
	}
}

func checkLaplace(t *testing.T, law laplace, centres map[string]float64, r results) {
	t.Helper()
	var deviations []float64
	for key, values := range r.values {
		centre, ok := centres[key]
		if !ok {
			t.Errorf("unexpected group %q", key)
		}
		if len(values) != r.runs {
			t.Errorf("group %q is there %d times of %d", key, len(values), r.runs)
		}
		mean, sd := stat.MeanStdDev(values, nil)
		if math.Abs(mean-centre) > 8*sd/math.Sqrt(float64(len(values))) {
			t.Errorf("group %q: mean %g of %d, centre %g", key, mean, len(values), centre)
		}
		for _, v := range values {
			deviations = append(deviations, math.Abs(v-centre))
		}
	}
	if len(r.values) != len(centres) || len(r.nulls) != 0 {
		t.Errorf("%d groups, %d NULL; want %d, 0", len(r.values), len(r.nulls), len(centres))
	}
	want := law.scale // E|X|
	if law.rounded {
		want = 1 / (2 * math.Sinh(1/(2*law.scale))) // sum over j >= 1 of P(|X| >= j - 1/2)
	}
	mean, sd := stat.MeanStdDev(deviations, nil)
	if math.Abs(mean-want) > 8*sd/math.Sqrt(float64(len(deviations))) {
		t.Errorf("mean deviation %g of %d values, want %g", mean, len(deviations), want)
	}
}

func TestAverageByParameter(t *testing.T) {
	t.Parallel()
	q := queryNamed(t, "average by parameter")
	d0 := showcase.Generate(showcase.Seed)
	for schema, d := range map[string]showcase.Data{showcase.D0: d0, showcase.D1: d0.Without(showcase.HeavyUser)} {
		var n, sum float64 // of the distances from the middle of the bounds
		for _, u := range d.Users {
			n++
			sum += min(100_000, max(0, u.Income)) - 50_000
		}
		// To first order in the noise: mean + (100000 L1 - 2 mean L2) / n, where L1 and L2 are Laplace of scale 1; the
		// bias of second order, (2/n)^2 2 mean, is below 10. False alarm at 6 standard errors, widened by the bias:
		// below 1e-8.
		mean := sum / n
		sd := math.Sqrt2 * math.Hypot(100_000, 2*mean) / n
		const runs = 1000
		got, gotSD := stat.MeanStdDev(replay(t, schema, q, runs).values[""], nil)
		if math.Abs(got-50_000-mean) > 6*sd/math.Sqrt(runs)+10 {
			t.Errorf("%s: mean %g, want %g", schema, got, 50_000+mean)
		}
		// The standard error of a Laplace sample's standard deviation is sd * sqrt(5 / 4 runs).
		if math.Abs(gotSD-sd) > 6*sd*math.Sqrt(5./(4*runs))+0.02*sd {
			t.Errorf("%s: standard deviation %g, want %g", schema, gotSD, sd)
		}
	}
	moved := (d0.Users[showcase.HeavyUser].Income - 50_000) / 50_000 // of the sum, in units of its sensitivity
	if want := 0.5 + 0.5*moved; math.Abs(q.Epsilon-want) > 1e-9 {
		t.Errorf("epsilon %g, want %g", q.Epsilon, want)
	}
	checkVerdict(t, q)
}

// gaussianDelta returns the delta at epsilon of Gaussian noise with standard deviation 1 against a shift of mu: Balle
// and Wang 2018 (Improving the Gaussian mechanism), theorem 8.
func gaussianDelta(mu, epsilon float64) float64 {
	phi := distuv.UnitNormal.CDF
	return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
}

func TestRewrittenSQL(t *testing.T) {
	t.Parallel()
	q := queryNamed(t, "rewriter's SQL")

	// The budget, derived again, and the constants in the text.
	const groups, bound, share = 3, 500, 3e-5
	m := math.Sqrt(2 * math.Log(1.25/share)) // per epsilon 1
	tau := 1 + m*math.Sqrt(groups)*distuv.UnitNormal.Quantile(math.Pow(1-share, 1./groups))
	for name, constant := range map[string]float64{"sigma of counts": m * math.Sqrt(groups), "sigma of sums": m * bound, "threshold": tau} {
		text := strconv.FormatFloat(constant, 'f', 6, 64)
		if !strings.Contains(q.SQL, text[:len(text)-2]) {
			t.Errorf("%s %s is not in the text", name, text)
		}
	}
	if 3*share > q.Claim.Delta || q.Claim.Epsilon != 2 {
		t.Errorf("claim %+v does not cover the parts", q.Claim)
	}
	mu := math.Sqrt2 / m // each part moves by at most its sensitivity
	if delta := gaussianDelta(mu, q.Epsilon); delta > q.Claim.Delta {
		t.Errorf("at epsilon %g delta is %g", q.Epsilon, delta)
	}
	if delta := gaussianDelta(mu, q.Epsilon-0.01); delta < q.Claim.Delta {
		t.Errorf("epsilon %g is not the least: delta %g", q.Epsilon, delta)
	}
	checkVerdict(t, q)

	// Results of the server: the same four groups in both worlds, sometimes below the threshold, and sums with the
	// expected noise. The choice of the counted groups of a user is random too, so that the standard deviation is a
	// little larger. In measurements, the groups are present with probabilities from .18 to .94: fewer than 10 of 400,
	// or all, have a probability below 1e-10.
	const runs = 400
	for _, schema := range []string{showcase.D0, showcase.D1} {
		r := replay(t, schema, q, runs)
		keys := make([]string, 0, 4)
		var square, n float64
		for key, values := range r.values {
			keys = append(keys, key)
			if len(values) < runs/40 || len(values) == runs {
				t.Errorf("%s: store %s is there %d times of %d", schema, key, len(values), runs)
			}
			mean := stat.Mean(values, nil)
			for _, v := range values {
				square += (v - mean) * (v - mean)
			}
			n += float64(len(values) - 1)
		}
		slices.SortFunc(keys, cmp.Compare[string])
		if got := strings.Join(keys, " "); got != "196 197 198 199" {
			t.Errorf("%s: stores %s", schema, got)
		}
		// Standard error of a normal standard deviation: sd / sqrt(2 n); 12 % is 5.3 of them at n = 980, and below it
		// the probability is 6e-8.
		if sd := math.Sqrt(square / n); sd < 0.88*m*bound || sd > 1.15*m*bound {
			t.Errorf("%s: standard deviation of the sums %g, want %g", schema, sd, m*bound)
		}
	}
}

func TestNullForAnEmptySet(t *testing.T) {
	t.Parallel()
	q := queryNamed(t, "NULL for an empty set")
	const runs = 100
	if r := replay(t, showcase.D0, q, runs); len(r.values[""]) != runs {
		t.Errorf("d0: %d values", len(r.values[""]))
	}
	if r := replay(t, showcase.D1, q, runs); r.nulls[""] != runs {
		t.Errorf("d1: %d NULL", r.nulls[""])
	}
	checkVerdict(t, q)
}

func TestSameNoiseEveryTime(t *testing.T) {
	t.Parallel()
	q := queryNamed(t, "same noise every time")
	const runs = 50
	a, b := replay(t, showcase.D0, q, runs).values[""], replay(t, showcase.D1, q, runs).values[""]
	for i := range a {
		if a[i] != a[0] || b[i] != a[0]-1 {
			t.Fatalf("trial %d: %g and %g, first %g", i, a[i], b[i], a[0])
		}
	}
	if len(a) != runs || len(b) != runs {
		t.Errorf("%d and %d values", len(a), len(b))
	}
	checkVerdict(t, q)

	// The session is not affected: its next draws always differ. 50 draws of 48 bits repeat with 1e-11.
	conn := replica(t, showcase.D0, q)
	seen := map[float64]bool{}
	for range runs {
		var next float64
		if _, err := conn.Exec(t.Context(), q.SQL); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), "select random()").Scan(&next); err != nil {
			t.Fatal(err)
		}
		seen[next] = true
	}
	if len(seen) < runs-1 { // the fresh seed has 28 bits: one repeat happens with 5e-6, two with 1e-11
		t.Errorf("%d different draws of %d after the seeded function", len(seen), runs)
	}
}

// BenchmarkQueries measures one execution, round trip included, on each neighbour.
func BenchmarkQueries(b *testing.B) {
	for _, q := range showcase.Queries() {
		if q.WantVerdict == "" {
			continue
		}
		for _, schema := range []string{showcase.D0, showcase.D1} {
			b.Run(strings.ReplaceAll(q.Name, " ", "_")+"/"+schema, func(b *testing.B) {
				conn := replica(b, schema, q)
				for b.Loop() {
					if _, err := conn.Exec(context.Background(), q.SQL, arguments(q)...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSetup measures Setup on a running server.
func BenchmarkSetup(b *testing.B) {
	c := setup(b)
	for b.Loop() {
		b.StopTimer()
		for _, database := range []string{showcase.ShopDatabase, showcase.ShadowDatabase} {
			if err := c.DropDatabase(context.Background(), database); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		start := time.Now()
		o := showcase.Options{AppPassword: appPassword, ReplayPassword: replayPassword}
		if err := showcase.Setup(context.Background(), c.DSN("postgres"), o); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(start).Seconds(), "s/setup")
	}
}
