package analysis_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// dependentCell is an engine whose every answer has an honest law, and whose answers depend on each other.
type dependentCell struct {
	name  string
	claim analysis.Claim
	make  func(r *rand.Rand) func() (d0, d1 analysis.Outcome)
}

// calls makes the two answers of a pair in random order by one source of noise: noise returns what the next call draws.
func calls(r *rand.Rand, noise func() float64, answer func(world int, z float64) analysis.Outcome) func() (d0, d1 analysis.Outcome) {
	return func() (d0, d1 analysis.Outcome) {
		first := r.IntN(2)
		var o [2]analysis.Outcome
		for _, w := range [2]int{first, 1 - first} {
			o[w] = answer(w, noise())
		}
		return o[0], o[1]
	}
}

// sticky returns a source per world that repeats its draw with the given probability.
func sticky(r *rand.Rand, stay float64, draw func() float64) func() float64 {
	last, some := 0.0, false
	return func() float64 {
		if !some || r.Float64() >= stay {
			last, some = draw(), true
		}
		return last
	}
}

// ago returns a source that repeats the draw of so many calls ago with a probability.
func ago(r *rand.Rand, calls int, p float64, draw func() float64) func() float64 {
	var past []float64
	return func() float64 {
		z := draw()
		if n := len(past); n >= calls && r.Float64() < p {
			z = past[n-calls]
		}
		past = append(past, z)
		return z
	}
}

// answerOf is k-ary randomised response of epsilon 1 by a uniform number.
func answerOf(k, truth int, u float64) int {
	e := math.E
	w := make([]float64, k)
	for i := range w {
		w[i] = 1 / (e + float64(k-1))
	}
	w[truth] *= e
	for i, p := range w {
		if u -= p; u < 0 {
			return i
		}
	}
	return k - 1
}

func textOf(i int) analysis.Outcome { return word("answer " + strconv.Itoa(i)) }

func dependent() []dependentCell {
	one := analysis.Claim{Epsilon: 1}
	uniform := func(r *rand.Rand) func() float64 { return r.Float64 }
	separate := func(r *rand.Rand, of func() func() float64, answer func(w int, z float64) analysis.Outcome) func() (d0, d1 analysis.Outcome) {
		s := [2]func() float64{of(), of()}
		return func() (d0, d1 analysis.Outcome) { return answer(0, s[0]()), answer(1, s[1]()) }
	}
	flip := func(w int, u float64) analysis.Outcome { // binary response by a coin that says whether to lie
		lie := u >= math.E/(1+math.E)
		return textOf(b2i((w == 1) != lie))
	}
	bit := func(w int, u float64) analysis.Outcome {
		lie := u >= math.E/(1+math.E)
		return count(float64(b2i((w == 1) != lie)))
	}
	rows := func(w int, u float64) analysis.Outcome {
		lie := u >= math.E/(1+math.E)
		return groups(float64(b2i((w == 1) != lie)), 5)
	}
	shared := func(r *rand.Rand, answer func(w int, z float64) analysis.Outcome) func() (d0, d1 analysis.Outcome) {
		return func() (d0, d1 analysis.Outcome) { u := r.Float64(); return answer(0, u), answer(1, u) }
	}
	sigma := 3.73 // the Gaussian mechanism for (1, 1e-5)
	return []dependentCell{
		{"sticky_response_.9", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 { return sticky(r, .9, uniform(r)) }, flip)
		}},
		{"sticky_response_.7", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 { return sticky(r, .7, uniform(r)) }, flip)
		}},
		{"sticky_5-ary_.9", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 { return sticky(r, .9, uniform(r)) }, func(w int, u float64) analysis.Outcome { return textOf(answerOf(5, w, u)) })
		}},
		{"gaussian_ar1_.9", analysis.Claim{Epsilon: 1, Delta: 1e-5}, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 {
				z := r.NormFloat64()
				return func() float64 { z = .9*z + math.Sqrt(1-.81)*r.NormFloat64(); return sigma * z }
			}, func(w int, z float64) analysis.Outcome { return value(onGrid(float64(w) + z)) })
		}},
		{"gaussian_ar1_.5", analysis.Claim{Epsilon: 1, Delta: 1e-5}, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 {
				z := r.NormFloat64()
				return func() float64 { z = .5*z + math.Sqrt(.75)*r.NormFloat64(); return sigma * z }
			}, func(w int, z float64) analysis.Outcome { return value(onGrid(float64(w) + z)) })
		}},
		{"gaussian_ar1_.9_one_engine", analysis.Claim{Epsilon: 1, Delta: 1e-5}, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			z := r.NormFloat64()
			return calls(r, func() float64 { z = .9*z + math.Sqrt(1-.81)*r.NormFloat64(); return sigma * z },
				func(w int, z float64) analysis.Outcome { return value(onGrid(float64(w) + z)) })
		}},
		{"noise_of_two_calls_ago", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			src := ago(r, 2, .5, func() float64 { return lap(r, 1) })
			return func() (d0, d1 analysis.Outcome) { return value(src()), value(1 + src()) }
		}},
		{"noise_of_two_calls_ago_random_order", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return calls(r, ago(r, 2, .5, func() float64 { return lap(r, 1) }), func(w int, z float64) analysis.Outcome { return value(float64(w) + z) })
		}},
		{"response_reused_for_two_calls", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			n, u := 0, 0.0
			return calls(r, func() float64 {
				if n++; n%2 == 1 {
					u = r.Float64()
				}
				return u
			}, flip)
		}},
		{"response_reused_for_two_calls_of_a_world", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return separate(r, func() func() float64 {
				n, u := 0, 0.0
				return func() float64 {
					if n++; n%2 == 1 {
						u = r.Float64()
					}
					return u
				}
			}, flip)
		}},
		{"one_coin_texts", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return shared(r, flip) }},
		{"one_coin_0_1", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return shared(r, bit) }},
		{"one_coin_in_two_rows", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) { return shared(r, rows) }},
		{"shared_uniforms_5-ary", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return shared(r, func(w int, u float64) analysis.Outcome { return textOf(answerOf(5, w, u)) })
		}},
		{"shared_response_5-ary", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return func() (d0, d1 analysis.Outcome) {
				lie := 0
				if r.Float64() >= math.E/(math.E+4) {
					lie = 1 + r.IntN(4)
				}
				return textOf(lie), textOf((1 + lie) % 5)
			}
		}},
		{"shared_uniforms_binary", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return shared(r, func(w int, u float64) analysis.Outcome { return textOf(answerOf(2, w, u)) })
		}},
		{"noise_shared_in_part_by_the_worlds", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			return func() (d0, d1 analysis.Outcome) { z := lap(r, 1); return value(z), value(1 - z + lap(r, .1)) }
		}},
		{"reused_noise_while_the_data_moves", one, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			n := 0.0
			src := [2]func() float64{}
			for w := range src {
				src[w] = sticky(r, .7, func() float64 { return lap(r, 1) })
			}
			return func() (d0, d1 analysis.Outcome) {
				n += .01
				return value(onGrid(n) + src[0]()), value(onGrid(n) + 1 + src[1]())
			}
		}},
		{"presence_sticky_.9", analysis.Claim{Epsilon: math.Log(1.5)}, func(r *rand.Rand) func() (d0, d1 analysis.Outcome) {
			s := [2]func() float64{sticky(r, .9, uniform(r)), sticky(r, .9, uniform(r))}
			return func() (d0, d1 analysis.Outcome) {
				one := func(w int) analysis.Outcome {
					x := math.NaN()
					if s[w]() < .4+.2*float64(w) {
						x = lap(r, 1)
					}
					return groups(lap(r, 1), x)
				}
				return one(0), one(1)
			}
		}},
	}
}

// TestDependentTrialsAreNoViolation: an engine whose answers have honest laws, and depend on each other, is not
// convicted in more than 5 % of audits (the errors of this test are those of alarmRate).
func TestDependentTrialsAreNoViolation(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	t.Parallel()
	for i, c := range dependent() {
		if longtest.Omits(i, 4) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above, alarms, audits := alarmRate(func(seed uint64) bool {
				a, err := analysis.New(c.claim, analysis.Options{MaxTrials: 200})
				if err != nil {
					t.Fatal(err)
				}
				analysis.SkipBound(a)
				r := rand.New(rand.NewPCG(seed, 5))
				for draw := c.make(r); !a.Decided(); {
					a.Add(draw())
				}
				return a.Report().Verdict == analysis.Violation
			})
			t.Logf("%d violations in %d audits", alarms, audits)
			if above {
				t.Errorf("%d violations in %d audits: more than %v", alarms, audits, alpha)
			}
		})
	}
}

// TestDependenceErrorRate: audits of independent trials of every shape, asked after every tenth pair, are called
// dependent at most at DependenceErrorRate. The test fails for a rate of 15 % or more with probability 99.9 %, and at
// DependenceErrorRate with probability 1e-6 for each shape (see rateOf).
func TestDependenceErrorRate(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	t.Parallel()
	for i, m := range right() {
		if m.name == "noise_shared_by_the_worlds" {
			continue // is dependent
		}
		if longtest.Omits(i, 6) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			above, wrong, audits := rateOf(analysis.DependenceErrorRate, .15, func(seed uint64) bool {
				a, err := analysis.New(analysis.Claim{Epsilon: 4}, analysis.Options{MaxTrials: 150})
				if err != nil {
					t.Fatal(err)
				}
				analysis.SkipBound(a)
				r := rand.New(rand.NewPCG(seed, 6))
				for n := range 150 {
					a.Add(m.d(r))
					if n%10 == 0 && analysis.CertainlyDependent(a) {
						return true
					}
				}
				return false
			})
			if above {
				t.Errorf("%d of %d audits of independent trials are called dependent", wrong, audits)
			}
		})
	}
}
