package analysis_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestExtremeNumbers audits generated queries whose answers are the largest, smallest and subnormal numbers,
// infinities, NaN, NULL, texts of numbers, errors and missing rows, from the first pair to the measurement. Nothing may
// panic, and reports hold what they must.
func TestExtremeNumbers(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		if longtest.Other(int(seed), 20) {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 77))
		knobs := make([]byte, 24)
		for i := range knobs {
			knobs[i] = byte(r.Uint32())
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			auditExtremes(t, knobs)
		})
	}
}

// FuzzExtremeNumbers is the same for other queries.
func FuzzExtremeNumbers(f *testing.F) {
	// Each column has its law, scale, shift, flags, what else it returns, and form.
	f.Add([]byte{0, 0, 0, 9, 18, 0, 4, 0, 0, 0, 1, 1, 0, 100}) // noise from 0 to the largest number: twice its reach is infinite
	f.Add([]byte{0, 0, 0, 0, 17, 1, 0, 0, 0, 0, 1, 2, 1, 100}) // a violation among the largest numbers
	f.Add([]byte{0, 0, 0, 5, 1, 2, 0, 0, 0, 0, 1, 3, 2, 100})  // and among the smallest
	f.Add([]byte{1, 0, 1, 0, 16, 1, 4, 200, 0, 0, 18, 1, 252, 0, 0, 0, 1, 4, 3, 60})
	f.Add([]byte{2, 0, 0, 11, 0, 1, 0, 0, 0, 1, 220, 1, 5, 16, 0}) // groups of numbers of any size
	f.Fuzz(func(t *testing.T, knobs []byte) { auditExtremes(t, knobs) })
}

// extremes are numbers at the edges of what a float64 holds.
var extremes = []float64{
	0, math.Copysign(0, -1), 1, -1, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, 0x1p-1022, 0x1p-1021, math.MaxFloat64, -math.MaxFloat64,
	math.MaxFloat64 / 2, -math.MaxFloat64 / 4, 0x1p1023, -0x1p1023, 0x1p53, 0x1p63, -0x1p63, 0x1p64, 1 + 0x1p-52, 1e-300, 1e300, 0.1,
	math.Inf(1), math.Inf(-1), math.NaN(),
}

// extremeScales are exponents of the scale of a law.
var extremeScales = []int{0, -1074, -1070, -1040, -1022, -1000, -500, -60, 52, 63, 500, 969, 1000, 1016, 1019, 1020, 1021, 1022, 1023}

// extremeLaws draw standard noise for a world, and numbers that differ in its law.
var extremeLaws = []func(r *rand.Rand, world float64) float64{
	func(r *rand.Rand, world float64) float64 { return lap(r, 1) + world },
	func(r *rand.Rand, world float64) float64 { return lap(r, .01) + world },
	func(r *rand.Rand, world float64) float64 { return r.NormFloat64() + world/4 },
	func(r *rand.Rand, world float64) float64 { return 2*r.Float64() - 1 + world/8 },
	func(r *rand.Rand, world float64) float64 { return math.Round(8*lap(r, 1)) + world },
	func(r *rand.Rand, world float64) float64 { return geo(r, .5) + world },
	func(r *rand.Rand, world float64) float64 { return float64(r.IntN(2)*2-1) * (1 + world/16) },
	func(r *rand.Rand, world float64) float64 { return lap(r, 1) * math.Exp(300*r.NormFloat64()) },
	func(r *rand.Rand, world float64) float64 { return math.Tan(3.1*(r.Float64()-.5)) + world },
	func(r *rand.Rand, world float64) float64 { return math.Max(0, 3*r.Float64()-1.5) + world },
	func(r *rand.Rand, world float64) float64 { return math.Float64frombits(r.Uint64()) },
	func(r *rand.Rand, world float64) float64 { return extremes[r.IntN(len(extremes))] },
	func(r *rand.Rand, world float64) float64 { return extremes[r.IntN(2+int(world))*5%len(extremes)] },
	func(r *rand.Rand, world float64) float64 { return world },
	func(r *rand.Rand, world float64) float64 { return math.Mod(lap(r, 1), .25+world/16) },
	func(r *rand.Rand, world float64) float64 { return math.Sin(float64(r.IntN(7)) + world) },
}

// extremeColumn is what one column of a generated query returns.
type extremeColumn struct {
	law           func(r *rand.Rand, world float64) float64
	scale         int
	center, shift float64 // in scales
	other         byte    // how often something else comes: an extreme, NULL, a text, a boolean
	form          byte    // numbers, or texts of numbers
	clip          bool    // overflows become the largest number, as in an engine that clamps
	shared        bool    // both worlds have the same noise
}

func (c *extremeColumn) value(r *rand.Rand, world int, seed uint64) analysis.Value {
	if c.shared {
		r = rand.New(rand.NewPCG(seed, 1))
	}
	if r.Uint32()%256 < uint32(c.other)/4 {
		return []analysis.Value{
			{},
			{Kind: analysis.Text, Text: "many"},
			{Kind: analysis.Bool, Num: 1},
			{Kind: analysis.Number, Num: extremes[r.IntN(len(extremes))]},
			{Kind: analysis.Text, Text: "1e400"},
			{Kind: analysis.Text, Text: strings.Repeat("9", 400)},
		}[r.IntN(6)]
	}
	x := math.Ldexp(c.law(r, c.shift*float64(world))+c.center, c.scale)
	if c.clip && !math.IsNaN(x) {
		x = min(max(x, -math.MaxFloat64), math.MaxFloat64)
	}
	text := strconv.FormatFloat(x, 'g', -1, 64)
	switch c.form {
	case 1:
		return analysis.Value{Kind: analysis.Text, Text: text}
	case 2:
		return analysis.Value{Kind: analysis.Text, Text: "{" + text + "," + strconv.FormatFloat(x/2, 'f', -1, 64) + "}"}
	case 3:
		return analysis.Value{Kind: analysis.Text, Text: "$" + strconv.FormatFloat(x, 'f', 2, 64)}
	case 4:
		return analysis.Value{Kind: analysis.Text, Text: strconv.FormatFloat(x, 'f', 0, 64) + " days 01:02:03"}
	case 5:
		return analysis.Value{Kind: analysis.Text, Text: `{"n": ` + text + `}`}
	}
	return analysis.Value{Kind: analysis.Number, Num: x}
}

// extremeShapes is the number of shapes of results: groups without a key, with a key of a number, a text or an extreme
// number.
const extremeShapes = 6

// extremeQuery is a generated query.
type extremeQuery struct {
	shape   byte
	groups  int
	columns []extremeColumn
	fails   byte
	missing byte
}

func newExtremeQuery(next func() byte) (q extremeQuery) {
	q.shape = next() % extremeShapes
	q.fails = next()
	for range 1 + next()%4 {
		c := extremeColumn{law: extremeLaws[int(next())%len(extremeLaws)], scale: extremeScales[int(next())%len(extremeScales)]}
		c.shift = []float64{0, 1, 4, .25}[next()%4]
		flags := next()
		c.center, c.clip, c.shared = []float64{0, 3, -100, 1e6}[flags&3], flags&4 != 0, flags>>3 == 31
		c.other = next()
		if c.other < 128 {
			c.other = 0
		}
		if c.form = next(); c.form >= 128 {
			c.form %= 6
		} else {
			c.form = 0
		}
		q.columns = append(q.columns, c)
	}
	q.groups = 1
	if q.shape >= 2 {
		q.groups += int(next() % 5)
	}
	q.missing = next()
	return q
}

// pair draws a pair of results.
func (q *extremeQuery) pair(r *rand.Rand) (p [2]analysis.Outcome) {
	seed := r.Uint64()
	for w := range p {
		if r.Uint32()%1024 < uint32(q.fails)/8 {
			p[w] = failed("22003")
			continue
		}
		o := &p[w]
		if q.shape >= 2 {
			o.Columns = append(o.Columns, analysis.Column{Name: "k", Discrete: true})
		}
		for i := range q.columns {
			o.Columns = append(o.Columns, analysis.Column{Name: "x" + strconv.Itoa(i), Discrete: q.shape == 1 || q.shape == 5})
		}
		for g := range q.groups {
			if q.missing > 200 && r.IntN(4) == 0 {
				continue
			}
			var row []analysis.Value
			switch q.shape {
			case 2, 5:
				row = append(row, analysis.Value{Kind: analysis.Number, Num: float64(g)})
			case 3:
				row = append(row, analysis.Value{Kind: analysis.Text, Text: "group " + strconv.Itoa(g)})
			case 4:
				row = append(row, analysis.Value{Kind: analysis.Number, Num: extremes[g%len(extremes)]})
			}
			for i := range q.columns {
				row = append(row, q.columns[i].value(r, w, seed+uint64(g)*31+uint64(i)))
			}
			o.Rows = append(o.Rows, row)
		}
	}
	return p
}

// auditExtremes runs one generated audit, with both orders of the worlds by turns.
func auditExtremes(t *testing.T, knobs []byte) {
	t.Helper()
	at := 0
	next := func() (b byte) {
		if at < len(knobs) {
			b = knobs[at]
		}
		at++
		return b
	}
	q := newExtremeQuery(next)
	r := rand.New(rand.NewPCG(uint64(next()), uint64(next())))
	run := next()
	pairs := 80 + int(next())
	if slots := len(q.columns) * q.groups; slots > 4 {
		pairs = 48 + pairs/slots
	}
	opt := analysis.Options{MaxTrials: pairs, MaxSlots: 64, NoClaim: run&15 == 15, Unordered: run&16 != 0, Salt: "salt"}
	claim := analysis.Claim{Epsilon: []float64{.5, 0, 2, .01}[run>>5&3], Delta: []float64{0, 1e-6}[run>>7]}
	a, err := analysis.New(claim, opt)
	if err != nil {
		t.Skip(err)
	}
	swap := run&1 != 0
	add := func(n int) {
		for range n {
			p := q.pair(r)
			if swap {
				p[0], p[1] = p[1], p[0]
			}
			if a.Add(p[0], p[1]); a.Decided() {
				return
			}
		}
	}
	add(pairs / 2)
	a = restored(t, a)
	add(pairs)
	checkExtremeReport(t, a, claim)
	if r := a.Report(); r.Verdict != analysis.Violation {
		checkExtremeFigures(t, a)
		return
	}
	if err := a.Confirm(pairs, 1); err != nil {
		t.Fatal(err)
	}
	add(pairs / 3)
	a = restored(t, a)
	add(pairs)
	checkExtremeReport(t, a, claim)
	if a.Measure(pairs) == nil {
		add(pairs)
		checkExtremeReport(t, a, claim)
	}
	checkExtremeFigures(t, a)
}

// restored returns a copy of an audit from its saved state, which must save and report alike.
func restored(t *testing.T, a *analysis.Audit) *analysis.Audit {
	t.Helper()
	data, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b := new(analysis.Audit)
	if err := b.UnmarshalBinary(data); err != nil {
		t.Fatal(err)
	}
	again, err := b.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	one, _ := json.Marshal(a.Report())
	two, _ := json.Marshal(b.Report())
	if !bytes.Equal(data, again) || !bytes.Equal(one, two) {
		t.Errorf("a restored audit differs: %d and %d bytes\n%s\n%s", len(data), len(again), one, two)
	}
	return b
}

// checkExtremeReport checks the report of an audit.
func checkExtremeReport(t *testing.T, a *analysis.Audit, claim analysis.Claim) {
	t.Helper()
	r := a.Report()
	lower := float64(r.EpsilonLower)
	if !(lower >= 0) || math.IsInf(lower, 0) || r.Verdict == "" {
		t.Errorf("verdict %q with bound %v", r.Verdict, lower)
	}
	if !math.IsNaN(float64(r.Claimed.Epsilon)) && math.IsNaN(float64(r.WealthLog)) {
		t.Error("the evidence is not a number")
	}
	if r.Verdict != analysis.Violation && r.Finding != nil || r.Verdict == analysis.Violation && r.DetectedAt != nil && !(lower > claim.Epsilon) {
		t.Errorf("verdict %q with bound %v and finding %+v", r.Verdict, lower, r.Finding)
	}
	var texts []string
	texts = append(texts, r.Reason)
	if e := r.Reveal().Event; e != nil {
		texts = append(texts, e.Description.String())
	}
	for _, p := range r.Reveal().Partitions {
		if e := float64(p.EpsilonEstimate); math.IsInf(e, 1) { // it may be negative
			t.Errorf("estimate %v of a partition", e)
		}
	}
	if f := r.Reveal().Finding; f != nil {
		texts = append(texts, f.Line.String(), f.Paragraph.String(), f.What.Text.String(), f.HowBad.Text)
		for _, p := range f.What.Parts {
			if !(p.Share >= 0 && p.Share <= 1+1e-9) {
				t.Errorf("share %v of the evidence", p.Share)
			}
		}
		for _, c := range f.Causes {
			texts = append(texts, c.Text.String())
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "NaN scales") || strings.Contains(text, "Inf scales") || strings.Contains(text, "epsilon NaN") {
			t.Errorf("text: %s", text)
		}
	}
	if _, err := json.Marshal(r.Reveal()); err != nil {
		t.Error(err)
	}
}

// checkExtremeFigures checks what is drawn of an audit, and its evidence.
func checkExtremeFigures(t *testing.T, a *analysis.Audit) {
	t.Helper()
	r := a.Report()
	if a.AddProfile(&r); r.Finding != nil {
		for _, p := range r.Finding.HowBad.Profile {
			if !(p.Delta >= 0 && p.Delta < 1) {
				t.Errorf("delta %v at epsilon %v", p.Delta, p.Epsilon)
			}
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	f := a.Figures()
	if h := f.Histogram; h != nil {
		edges := h.Edges.Reveal()
		if len(edges) != len(h.D0)+1 || len(h.D0) != len(h.D1) {
			t.Errorf("%d edges of %d and %d bins", len(edges), len(h.D0), len(h.D1))
		}
		for i, e := range edges {
			if math.IsNaN(e) || math.IsInf(e, 0) || i > 0 && e < edges[i-1] {
				t.Errorf("edges %v", edges)
				break
			}
		}
	}
}

// TestLargeNumbersShareNoNoise: the rounding error of the largest numbers is not infinite, within which all differences
// would be equal.
func TestLargeNumbersShareNoNoise(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	one := func() analysis.Outcome { return value(5e307 + 4e307*r.Float64()) }
	var pairs [][2]analysis.Outcome
	for range 60 {
		pairs = append(pairs, [2]analysis.Outcome{one(), one()})
	}
	for _, w := range auditOf(t, pairs).Warnings {
		t.Errorf("warning: %s", w)
	}
}
