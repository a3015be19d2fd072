package analysis_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// auditOf adds all pairs, decided or not.
func auditOf(t testing.TB, pairs [][2]analysis.Outcome) analysis.Report {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: .5, Delta: 1e-6}, analysis.Options{MaxSlots: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		a.Add(p[0], p[1])
		a.Decided()
	}
	return a.Report()
}

func sample(n int, d draw) [][2]analysis.Outcome {
	r := rand.New(rand.NewPCG(3, 4))
	pairs := make([][2]analysis.Outcome, n)
	for i := range pairs {
		pairs[i][0], pairs[i][1] = d(r)
	}
	return pairs
}

var shapes = []struct {
	name string
	d    draw
}{
	{"laplace", laplaceShift(1)},
	{"response", response(1)},
	{"groups", many(12, func(i int) float64 { return float64(i%3) / 4 })},
	{"presence", func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		x := math.NaN()
		if r.Float64() < .3 {
			x = 5
		}
		return groups(lap(r, 1), x, lap(r, 1)), groups(lap(r, 1), math.NaN(), lap(r, 1))
	}},
	{"constant", func(*rand.Rand) (d0, d1 analysis.Outcome) { return count(1), count(2) }},
}

// near allows for sums taken in another order.
func near(x, y analysis.Float) bool {
	a, b := float64(x), float64(y)
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-6*math.Max(1, math.Abs(a))
}

func TestExchangingTheWorldsExchangesDirections(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pairs := sample(300, s.d)
			one := auditOf(t, pairs)
			for i := range pairs {
				pairs[i][0], pairs[i][1] = pairs[i][1], pairs[i][0]
			}
			two := auditOf(t, pairs)
			if one.Verdict != two.Verdict || !near(one.WealthLog, two.WealthLog) || one.EpsilonLower != two.EpsilonLower {
				t.Errorf("before: %s %v %v; after: %s %v %v", one.Verdict, one.WealthLog, one.EpsilonLower,
					two.Verdict, two.WealthLog, two.EpsilonLower)
			}
			if s.name == "laplace" && one.Event.Description.Reveal() == two.Event.Description.Reveal() {
				t.Errorf("the event keeps its direction: %+v", one.Event)
			}
		})
	}
}

func TestPermutingRowsChangesNothing(t *testing.T) {
	t.Parallel()
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			pairs := sample(200, s.d)
			one := auditOf(t, pairs)
			r := rand.New(rand.NewPCG(5, 6))
			for _, p := range pairs {
				for _, o := range p {
					r.Shuffle(len(o.Rows), func(i, j int) { o.Rows[i], o.Rows[j] = o.Rows[j], o.Rows[i] })
				}
			}
			two := auditOf(t, pairs)
			if one.Verdict != two.Verdict || !near(one.WealthLog, two.WealthLog) || one.EpsilonLower != two.EpsilonLower ||
				len(one.Partitions) != len(two.Partitions) {
				t.Errorf("before: %+v\nafter: %+v", one, two)
			}
		})
	}
}

func TestSameTrialsSameReport(t *testing.T) {
	t.Parallel()
	pairs := sample(200, shapes[2].d)
	one, _ := json.Marshal(auditOf(t, pairs))
	two, _ := json.Marshal(auditOf(t, pairs))
	if string(one) != string(two) {
		t.Errorf("%s\n%s", one, two)
	}
}

// TestRowsMayChange: what is done to the rows of a result after it was added changes no report.
func TestRowsMayChange(t *testing.T) {
	t.Parallel()
	pairs := sample(200, shapes[2].d)
	want, _ := json.Marshal(auditOf(t, pairs))
	a, err := analysis.New(analysis.Claim{Epsilon: .5, Delta: 1e-6}, analysis.Options{MaxSlots: 64})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		a.Add(p[0], p[1])
		for _, o := range p {
			for _, row := range o.Rows {
				clear(row)
			}
		}
	}
	if got, _ := json.Marshal(a.Report()); string(got) != string(want) {
		t.Errorf("%s\nbefore the rows changed: %s", got, want)
	}
}

// TestHostileResults feeds what a server could send: the report must be made of numbers, and nothing may panic.
func TestHostileResults(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	n := func(x float64) analysis.Value { return analysis.Value{Kind: analysis.Number, Num: x} }
	w := func(s string) analysis.Value { return analysis.Value{Kind: analysis.Text, Text: s} }
	col := func(names ...string) (c []analysis.Column) {
		for _, s := range names {
			c = append(c, analysis.Column{Name: s, Discrete: s == "k"})
		}
		return c
	}
	hostile := []analysis.Outcome{
		{},
		{SQLState: "57014"},
		{Columns: col("x")},
		{Columns: col("x"), Rows: [][]analysis.Value{{}}},
		{Columns: col("x"), Rows: [][]analysis.Value{nil, nil}},
		{Rows: [][]analysis.Value{{n(1)}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(math.NaN())}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(math.Inf(1))}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(math.MaxFloat64)}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(-math.MaxFloat64)}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(5e-324)}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{n(math.Copysign(0, -1))}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{w("\xff\x00")}}},
		{Columns: col("x"), Rows: [][]analysis.Value{{{Kind: 77, Num: math.NaN()}}}},
		{Columns: col("k", "x"), Rows: [][]analysis.Value{{n(1), n(2)}, {n(1), n(3)}, {n(2)}}},
		{Columns: col("k", "x"), Rows: [][]analysis.Value{{w("a"), n(math.MaxFloat64)}, {w("b"), n(-math.MaxFloat64)}}},
		{Columns: col("k", "x", "y"), Rows: [][]analysis.Value{{w("a"), n(1), {}}, {w("b"), n(2), {}, n(4)}}},
	}
	var wide analysis.Outcome
	wide.Columns = col("k", "x")
	for i := range 200 {
		wide.Rows = append(wide.Rows, []analysis.Value{w(fmt.Sprint(i)), n(float64(i))})
	}
	hostile = append(hostile, wide)
	r := rand.New(rand.NewPCG(9, 9))
	for range 8 {
		var pairs [][2]analysis.Outcome
		few := 1 + r.IntN(len(hostile))
		for range 150 {
			pairs = append(pairs, [2]analysis.Outcome{hostile[r.IntN(few)], hostile[r.IntN(len(hostile))]})
		}
		checkReport(t, auditOf(t, pairs))
	}
	for i, o := range hostile {
		for _, p := range hostile[i:] {
			var pairs [][2]analysis.Outcome
			for range 12 {
				pairs = append(pairs, [2]analysis.Outcome{o, p})
			}
			checkReport(t, auditOf(t, pairs))
		}
	}
}

// checkReport holds what every report must hold.
func checkReport(t *testing.T, r analysis.Report) {
	t.Helper()
	if math.IsNaN(float64(r.WealthLog)) || math.IsNaN(float64(r.EpsilonLower)) {
		t.Fatalf("not a number: %+v", r)
	}
	if (r.Verdict == analysis.Violation) != (float64(r.EpsilonLower) > .5) {
		t.Fatalf("verdict %s with bound %v", r.Verdict, r.EpsilonLower)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
}

// FuzzAudit makes results of all kinds from bytes: values, shapes, errors.
func FuzzAudit(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 251, 252, 253, 254, 255})
	f.Add([]byte("\x11\x05\x21\x07\x11\x05\x21\x07\x11\x05\x21\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			data = data[:4096]
		}
		next := func() byte {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return b
		}
		var pairs [][2]analysis.Outcome
		for len(data) > 0 && len(pairs) < 300 {
			var p [2]analysis.Outcome
			for w := range p {
				p[w] = outcomeOf(next)
			}
			pairs = append(pairs, p)
		}
		checkReport(t, auditOf(t, pairs))
		for i := range pairs {
			pairs[i][0], pairs[i][1] = pairs[i][1], pairs[i][0]
		}
		checkReport(t, auditOf(t, pairs))
	})
}

func outcomeOf(next func() byte) (o analysis.Outcome) {
	head := next()
	if head > 240 {
		return failed(string(rune('A' + head%4)))
	}
	for i := range head >> 2 & 3 {
		o.Columns = append(o.Columns, analysis.Column{Name: string(rune('a' + i)), Discrete: head>>4&1 == 0})
	}
	for range head & 3 {
		var row []analysis.Value
		for range o.Columns {
			v := analysis.Value{Kind: analysis.Kind(next() & 3)}
			switch b := next(); {
			case b < 200:
				v.Num = float64(int(b) - 100)
			case b < 220:
				v.Num = math.Ldexp(float64(b)-209.5, int(next())*8-1000)
			case b < 230:
				v.Num = math.NaN()
			default:
				v.Num = math.Inf(int(b) - 240)
			}
			v.Text = string(rune('a' + next()%8))
			row = append(row, v)
		}
		o.Rows = append(o.Rows, row)
	}
	return o
}
