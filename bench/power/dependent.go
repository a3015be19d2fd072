package power

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// dependent is an engine whose every answer has an honest law, and whose answers depend on each other.
type dependent struct {
	name  string
	claim analysis.Claim
	make  func(r *rand.Rand) func() (d0, d1 analysis.Outcome)
}

// source returns what the next call draws.
type source func() float64

// repeating repeats its latest draw with a probability.
func repeating(r *rand.Rand, stay float64, draw source) source {
	last, some := 0.0, false
	return func() float64 {
		if !some || r.Float64() >= stay {
			last, some = draw(), true
		}
		return last
	}
}

// twoCallsAgo repeats the draw of two calls ago with probability 1/2.
func twoCallsAgo(r *rand.Rand, draw source) source {
	var past [2]float64
	n := 0
	return func() float64 {
		z := draw()
		if n >= 2 && r.IntN(2) == 0 {
			z = past[n%2]
		}
		past[n%2] = z
		n++
		return z
	}
}

// regressive is a Gaussian process of standard deviation sigma, in which each value has the given correlation with the
// one before.
func regressive(r *rand.Rand, correlation, sigma float64) source {
	z := r.NormFloat64()
	return func() float64 {
		z = correlation*z + math.Sqrt(1-correlation*correlation)*r.NormFloat64()
		return sigma * z
	}
}

// dependentEngines are the cells of the table.
func dependentEngines() []dependent {
	p := pOf(2, 1)
	lie := func(w int, u float64) int { return (w + b2i(u >= p)) % 2 }
	text := func(w int, u float64) analysis.Outcome { return index(lie(w, u)) }
	number := func(w int, u float64) analysis.Outcome { return value(float64(lie(w, u))) }
	rows := func(w int, u float64) analysis.Outcome { return groups([]float64{float64(lie(w, u)), 5}) }
	shifted := func(w int, z float64) analysis.Outcome { return value(onGrid(float64(w) + z)) }
	apart := func(r *rand.Rand, of func() source, answer func(int, float64) analysis.Outcome) func() (d0, d1 analysis.Outcome) {
		s := [2]source{of(), of()}
		return func() (d0, d1 analysis.Outcome) { return answer(0, s[0]()), answer(1, s[1]()) }
	}
	together := func(r *rand.Rand, draw source, answer func(int, float64) analysis.Outcome) func() (d0, d1 analysis.Outcome) {
		return func() (d0, d1 analysis.Outcome) { u := draw(); return answer(0, u), answer(1, u) }
	}
	sigma := gaussSigma(1, 1e-5)
	return []dependent{
		{"sticky response (.9)", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return apart(r, func() source { return repeating(r, .9, r.Float64) }, text)
		}},
		{"Gaussian noise, correlation .9 with the trial before", analysis.Claim{Epsilon: 1, Delta: 1e-5}, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return apart(r, func() source { return regressive(r, .9, sigma) }, shifted)
		}},
		{"noise of two calls ago, every second time", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			s := twoCallsAgo(r, func() float64 { return lap(r, 1) })
			return func() (d0, d1 analysis.Outcome) { return shifted(0, s()), shifted(1, s()) }
		}},
		{"response reused for the next call of a world", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return apart(r, func() source {
				n, u := 0, 0.0
				return func() float64 {
					if n++; n%2 == 1 {
						u = r.Float64()
					}
					return u
				}
			}, text)
		}},
		{"one coin for both worlds, texts", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return together(r, r.Float64, text) }},
		{"one coin for both worlds, 0 and 1", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return together(r, r.Float64, number) }},
		{"one coin for both worlds, in two rows", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return together(r, r.Float64, rows) }},
		{"5-ary response with one draw for both worlds", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return func() (d0, d1 analysis.Outcome) {
				z := respond(r, 0, 5, pOf(5, 1))
				return index(z), index((z + 1) % 5)
			}
		}},
		{"reused noise (.7) while the data move", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			n := 0.0
			return apart(r, func() source {
				s := repeating(r, .7, func() float64 { return lap(r, 1) })
				return func() float64 { n += .005; return n + s() }
			}, shifted)
		}},
		{"one coin for both worlds, each answer in 16 spellings", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return together(r, r.Float64, func(w int, u float64) analysis.Outcome { return index(16*lie(w, u) + r.IntN(16)) })
		}},
		{"answers of 10 and 4 % that never come together", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			q := math.Sqrt(math.Exp(-1) / 257)
			return together(r, r.Float64, func(w int, u float64) analysis.Outcome {
				return index(b2i(w == 0 && u < math.E*q || w == 1 && u > 1-q))
			})
		}},
		{"40 keys at 5 %, a third of them reused (.9)", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return stickyKeys(r, 40, 13, .9) }},
		{"one coin for both worlds, values far out in 1 of 16 pairs", only(1), func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return func() (d0, d1 analysis.Outcome) {
				far := 0.0
				if r.IntN(16) == 0 {
					far = 100 - 200*float64(lie(0, r.Float64()))
				}
				return value(far + lap(r, 1)), value(lap(r, 1) - far)
			}
		}},
	}
}

// stickyKeys has keys at 5 % with one Laplace law in both worlds; some of them repeat their latest draw with a
// probability.
func stickyKeys(r *rand.Rand, keys, some int, stay float64) func() (d0, d1 analysis.Outcome) {
	var worlds [2][]source
	for w := range worlds {
		for i := range keys {
			draw := func() float64 {
				if r.Float64() < .05 {
					return 100 + lap(r, 1)
				}
				return math.NaN()
			}
			if i < some {
				draw = repeating(r, stay, draw)
			}
			worlds[w] = append(worlds[w], draw)
		}
	}
	trial := func(w int) analysis.Outcome {
		xs := make([]float64, keys)
		for i := range xs {
			xs[i] = worlds[w][i]()
		}
		return groups(xs)
	}
	return func() (d0, d1 analysis.Outcome) { return trial(0), trial(1) }
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// dependences prints how often each is convicted.
func dependences(w io.Writer, o options) error {
	if o.alarmRuns == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nHonest marginals, dependent trials: %d audits of %d pairs a cell.\n\n", o.alarmRuns, o.dependentPairs)
	fmt.Fprintln(w, "| engine | violations | rate | 99 % interval | inconclusive | confirmed |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, c := range dependentEngines() {
		if !o.cells.MatchString(c.name) {
			continue
		}
		each := make([]confirmation, o.alarmRuns)
		verdicts := make([]analysis.Verdict, o.alarmRuns)
		err := parallel(o, o.alarmRuns, func(i int) error {
			a, err := analysis.New(c.claim, analysis.Options{MaxTrials: o.dependentPairs, Confidence: 1 - alpha})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			draw := c.make(rand.New(rand.NewPCG(o.seed+uint64(i), 20240607)))
			for !a.Decided() {
				a.Add(draw())
			}
			if verdicts[i] = a.Report().Verdict; a.DetectedAt() > 0 {
				each[i], err = confirm(a, draw)
			}
			return err
		})
		if err != nil {
			return err
		}
		count := map[analysis.Verdict]int{}
		for _, v := range verdicts {
			count[v]++
		}
		k, n := count[analysis.Violation], len(verdicts)
		lo, hi := analysis.ClopperPearson(k, n, .01)
		fmt.Fprintf(w, "| %s | %d | %.1f %% | %.1f to %.1f %% | %d | %d |\n", c.name, k, 100*float64(k)/float64(n), 100*lo, 100*hi, count[analysis.Inconclusive], confirmationsOf(each).confirmed)
	}
	return nil
}
