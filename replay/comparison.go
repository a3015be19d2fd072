package replay

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// falseAlarm bounds the probability, over a whole audit, that a difference is reported although hoisted and unmodified
// trials have the same distribution.
const falseAlarm = 1e-6

// comparison compares hoisted and unmodified trials, world by world.
//
// Each trial gives one number per feature: the number of rows or the error, and for every column the sum of its values
// and a sum weighted by the rows' keys, so that a shift between groups shows. Every feature is a function of one trial.
// Two samples of n independent trials of one distribution have a Kolmogorov-Smirnov distance above t with probability
// of at most e exp(-n t²), for every n and every distribution, discrete ones too (Wei and Dudley 2012, Two-sample
// Dvoretzky-Kiefer-Wolfowitz inequalities, theorem 1, equal sizes). The samples are compared when they have 100, 200,
// 400, ... trials. Look k gets 1/(k (k+1)) of half of falseAlarm, shared among worlds and features. The other half is
// for verifications, which happen when the evidence suggests a violation: a quarter for fresh samples of both kinds, as
// if verifications were looks; a quarter for a fresh unmodified sample against hoisted trials that are evidence. The
// latter were selected by their values, because the audit stopped there: the bound holds at once for every number h of
// hoisted rounds, which gets 1/(h (h+1)), and for each of the verifySizes sizes of the samples.
type comparison struct {
	samples  [][2]sample // by world, then unmodified or hoisted
	spread   []sample    // of hoisted trials that are evidence, by world: every stride-th
	stride   int
	seen     int // rounds of which spread keeps every stride-th
	looks    int
	verifies int
	first    int // trials of the first look; 0 means hoistSample
}

// verifySizes is the number of sizes that the samples of a verification can have.
const verifySizes = 7

// sample holds the features of trials, by feature. A trial without a feature has the value absent.
type sample struct {
	trials   int
	features [][]float64
}

// absent is the value of a feature that a trial does not have: an error has no columns.
const absent = -math.MaxFloat64

// add records the outcomes of rounds that left out the spared worlds. Hoisted rounds that no comparison needs are
// skipped.
func (p *comparison) add(rounds []Round, hoisted bool, spared []bool) {
	side := 0
	if hoisted {
		side = 1
	}
	for _, round := range rounds {
		if p.samples == nil {
			p.samples = make([][2]sample, len(round))
		}
		for world := range round {
			if s := &p.samples[world][side]; !spares(spared, world) && (!hoisted || s.trials < p.next()) {
				s.add(features(&round[world]))
			}
		}
	}
}

// next returns the size of the samples at the next look.
func (p *comparison) next() int { return cmp.Or(p.first, hoistSample) << min(p.looks, 30) }

// due reports whether both samples have the size of the next look.
func (p *comparison) due() bool {
	for world := range p.samples {
		for side := range p.samples[world] {
			if p.samples[world][side].trials < p.next() {
				return false
			}
		}
	}
	return true
}

// look compares the samples and names the feature in which they differ.
func (p *comparison) look() (what string, differ bool) {
	n := p.next()
	p.looks++
	level := falseAlarm / 2 / float64(p.looks*(p.looks+1))
	for world := range p.samples {
		what, differ = compare(&p.samples[world][0], &p.samples[world][1], n, world, level/float64(len(p.samples)))
		if differ {
			break
		}
	}
	return what, differ
}

// addEvidence keeps some of the hoisted rounds that are evidence and left out the spared worlds.
func (p *comparison) addEvidence(rounds []Round, spared []bool) {
	if len(p.spread) == 0 {
		p.spread, p.stride = make([]sample, len(rounds[0])), 1
	}
	for _, round := range rounds {
		if p.seen++; p.seen%p.stride != 0 {
			continue
		}
		for world := range round {
			if !spares(spared, world) {
				p.spread[world].add(features(&round[world]))
			}
		}
		if p.spread[0].trials >= 2*verifyMost {
			for world := range p.spread {
				p.spread[world].thin()
			}
			p.stride *= 2
		}
	}
}

// verify compares fresh unmodified rounds, 100 times a power of two, with as many fresh hoisted ones, if there are any,
// and with as many of the hoisted rounds that are evidence, or with the next smaller size if fewer were kept. evidence
// is the number of hoisted rounds that are evidence.
func (p *comparison) verify(plain, hoisted []Round, evidence int) (what string, differ bool) {
	p.verifies++
	worlds := len(plain[0])
	fresh := falseAlarm / 4 / float64(p.verifies*(p.verifies+1)) / float64(worlds)
	before := falseAlarm / 4 / float64(evidence) / float64(evidence+1) / verifySizes / float64(worlds)
	for world := range worlds {
		n := len(plain)
		var a, b sample
		for i := range plain {
			a.add(features(&plain[i][world]))
		}
		for i := range hoisted {
			b.add(features(&hoisted[i][world]))
		}
		if b.trials == n {
			if what, differ = compare(&a, &b, n, world, fresh); differ {
				return what, true
			}
		}
		past := &p.spread[world]
		for n > past.trials && n >= hoistSample {
			n /= 2
		}
		if n >= hoistSample {
			if what, differ = compare(&a, past.evenly(n), n, world, before); differ {
				return what, true
			}
		}
	}
	return "", false
}

// compare compares n trials of two samples of a world and names the feature in which they differ. Samples of one
// distribution differ with probability of at most level.
func compare(a, b *sample, n, world int, level float64) (what string, differ bool) {
	wide := max(len(a.features), len(b.features))
	threshold := math.Sqrt((1 - math.Log(level/float64(wide))) / float64(n))
	for f := range wide {
		if stat.KolmogorovSmirnov(a.column(f, n), nil, b.column(f, n), nil) > threshold {
			return fmt.Sprintf("%s on D%d", featureName(f), world), true
		}
	}
	return "", false
}

// forget releases the samples.
func (p *comparison) forget() { p.samples, p.spread = nil, nil }

// thin drops every second trial.
func (s *sample) thin() {
	*s = *s.evenly(s.trials / 2)
}

// evenly returns n of the sample's trials, spread evenly.
func (s *sample) evenly(n int) *sample {
	some := &sample{trials: n}
	for _, all := range s.features {
		values := make([]float64, n)
		for i := range values {
			values[i] = all[i*s.trials/n]
		}
		some.features = append(some.features, values)
	}
	return some
}

func (s *sample) add(features []float64) {
	for len(s.features) < len(features) {
		s.features = append(s.features, slices.Repeat([]float64{absent}, s.trials))
	}
	for f := range s.features {
		v := absent
		if f < len(features) {
			v = features[f]
		}
		s.features[f] = append(s.features[f], v)
	}
	s.trials++
}

// column returns the first n values of a feature, sorted.
func (s *sample) column(f, n int) []float64 {
	if f >= len(s.features) {
		return slices.Repeat([]float64{absent}, n)
	}
	values := slices.Clone(s.features[f][:n])
	slices.Sort(values)
	return values
}

func featureName(f int) string {
	if f == 0 {
		return "errors or the number of rows"
	}
	return fmt.Sprintf("column %d", (f+1)/2)
}

// features returns the numbers of one trial: 1 + 2 per column.
func features(o *outcome.Outcome) []float64 {
	if o.Failed() {
		return []float64{-1 - fraction(o.SQLState)}
	}
	f := make([]float64, 1+2*len(o.Columns))
	f[0] = float64(len(o.Rows))
	for _, row := range o.Rows {
		weight := rowKey(o.Columns, row)
		for c, v := range row {
			x := number(v)
			f[1+2*c] += x
			f[2+2*c] += weight * x
		}
	}
	for i, x := range f {
		if math.IsNaN(x) {
			f[i] = -absent
		}
	}
	return f
}

// rowKey returns a number in [1, 2) for a row's discrete text values.
func rowKey(columns []outcome.Column, row []outcome.Value) float64 {
	text := ""
	for c, v := range row {
		if columns[c].Discrete && v.Kind == outcome.Text {
			text += v.Text + "\x00"
		}
	}
	return 1 + fraction(text)
}

// number maps any value to a number: a text to its hash, NULL to a fixed number that is unlikely otherwise.
func number(v outcome.Value) float64 {
	switch v.Kind {
	case outcome.Number, outcome.Bool:
		return v.Num
	case outcome.Text:
		return fraction(v.Text)
	}
	return math.Pi * 1e-3
}

// fraction hashes a text to [0, 1).
func fraction(s string) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return float64(h.Sum64()>>11) / (1 << 53)
}
