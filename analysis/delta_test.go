package analysis_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// worstMean returns the greatest mean of the factor of one pair, f[0](X) f[1](Y) with X ~ P and Y ~ Q independent, over
// the pairs of laws (P, Q) on k bins that are (epsilon, delta)-indistinguishable.
//
// The mean is linear in P for a given Q and the other way round. From every start the two are maximised in turn, each
// exactly (bestResponse). Every extreme point of the pair is what some map makes of the four outcomes of Kairouz, Oh
// and Viswanath (2015): the starts are all k^4 deterministic ones where k is 3, some of them where it is more, and
// mixtures.
func worstMean(f [2][]float64, epsilon, delta float64, r *rand.Rand) float64 {
	ratio, k := math.Exp(epsilon), len(f[0])
	pure := [2][4]float64{
		{delta, (1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio), 0},
		{0, (1 - delta) / (1 + ratio), (1 - delta) * ratio / (1 + ratio), delta},
	}
	worst := 0.0
	try := func(to [4][]float64) {
		p, q := make([]float64, k), make([]float64, k)
		for o, law := range to {
			for c := range law {
				p[c], q[c] = p[c]+pure[0][o]*law[c], q[c]+pure[1][o]*law[c]
			}
		}
		worst = max(worst, mean(f[0], p)*mean(f[1], q))
		for range 4 {
			p = bestResponse(f[0], q, ratio, delta)
			q = bestResponse(f[1], p, ratio, delta)
			worst = max(worst, mean(f[0], p)*mean(f[1], q))
		}
	}
	for m := range 81 {
		var to [4][]float64
		for o, rest := 0, m; o < 4; o, rest = o+1, rest/3 {
			to[o] = make([]float64, k)
			at := rest % 3
			if k != 3 {
				at = r.IntN(k)
			}
			to[o][at] = 1
		}
		try(to)
	}
	for range 40 {
		var to [4][]float64
		for o := range to {
			to[o] = randomLaw(r, k, 1)
		}
		try(to)
	}
	return worst
}

// halfSum returns the greatest of (A + B)/2, with A and B the means of both factors, over the pairs of laws that are
// (epsilon, delta)-indistinguishable. The sum is linear in the pair, and where a map sends one of the four outcomes
// does not depend on where it sends the others, so that this is exact. The mean of the product is at most its square.
func halfSum(f [2][]float64, epsilon, delta float64) (half float64) {
	ratio := math.Exp(epsilon)
	for _, w := range [4][2]float64{
		{delta, 0},
		{(1 - delta) * ratio / (1 + ratio), (1 - delta) / (1 + ratio)},
		{(1 - delta) / (1 + ratio), (1 - delta) * ratio / (1 + ratio)},
		{0, delta},
	} {
		top := 0.0
		for c := range f[0] {
			top = max(top, w[0]*math.Exp(f[0][c])+w[1]*math.Exp(f[1][c]))
		}
		half += top / 2
	}
	return half
}

// mean returns the mean of exp(f) under a law.
func mean(f, law []float64) (m float64) {
	for c := range f {
		m += law[c] * math.Exp(f[c])
	}
	return m
}

// bestResponse returns the law P that maximises the mean of exp(f) among those that are (epsilon, delta) from Q. Each
// bin may hold Q/R to R Q, delta more may be in one bin, and delta/R less in some: the most lies in the bins of the
// greatest f, the least in those of the smallest.
func bestResponse(f, q []float64, ratio, delta float64) []float64 {
	order := make([]int, len(f))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f[b], f[a]) })
	p := make([]float64, len(q))
	left, spare := 1.0, delta/ratio
	for i := len(order) - 1; i >= 0; i-- {
		c := order[i]
		less := min(spare, q[c]/ratio)
		p[c], spare = q[c]/ratio-less, spare-less
		left -= p[c]
	}
	for i, c := range order {
		room := ratio*q[c] - p[c]
		if i == 0 {
			room += delta
		}
		more := min(room, left)
		p[c], left = p[c]+more, left-more
	}
	return p
}

// allowed returns by how much a pair of laws is beyond what the claim allows; at most 0 for an allowed one.
func allowed(p, q []float64, ratio, delta float64) float64 {
	up, down, total := 0.0, 0.0, 0.0
	for c := range p {
		up += max(0, p[c]-ratio*q[c])
		down += max(0, q[c]-ratio*p[c])
		total += p[c]
	}
	return max(up-delta, down-delta, math.Abs(total-1)-1e-12)
}

// TestBestResponse: the answer is allowed, and no other that is allowed is better: random ones are tried, and steps
// that move mass from one bin to another.
func TestBestResponse(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(21, 22))
	better := 0
	for range 300 {
		k := 3 + r.IntN(6)
		ratio, delta := math.Exp(2*r.Float64()*float64(r.IntN(2))), []float64{0, .01, .2}[r.IntN(3)]
		f, q := make([]float64, k), randomLaw(r, k, 2)
		for c := range f {
			f[c] = r.NormFloat64()
		}
		p := bestResponse(f, q, ratio, delta)
		if beyond := allowed(p, q, ratio, delta); beyond > 1e-9 {
			t.Fatalf("%v is not allowed beside %v at ratio %v, delta %v: by %v", p, q, ratio, delta, beyond)
		}
		best := mean(f, p)
		for from := range k {
			for to := range k {
				step := min(1e-4, p[from])
				s := slices.Clone(p)
				s[from], s[to] = s[from]-step, s[to]+step
				if allowed(s, q, ratio, delta) <= 1e-12 && mean(f, s) > best+1e-12 {
					t.Fatalf("from %v beside %v at ratio %v, delta %v: mass moved from bin %d to %d is better", p, q, ratio, delta, from, to)
				}
			}
		}
		for range 50 {
			if s := randomLaw(r, k, 1); allowed(s, q, ratio, delta) <= 0 {
				better++
				if mean(f, s) > best+1e-12 {
					t.Fatalf("%v is better than %v beside %v at ratio %v, delta %v", s, p, q, ratio, delta)
				}
			}
		}
	}
	if better == 0 {
		t.Error("no random law was allowed: nothing was compared")
	}
}

// randomLaw returns a law on k bins, the more uneven the greater the power.
func randomLaw(r *rand.Rand, k int, power float64) []float64 {
	p, sum := make([]float64, k), 0.0
	for c := range p {
		p[c] = math.Pow(r.ExpFloat64(), power) + 1e-9
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// scaled returns a law with the given proportions.
func scaled(law []float64) []float64 {
	sum := 0.0
	for _, x := range law {
		sum += x
	}
	for i := range law {
		law[i] /= sum
	}
	return law
}

// TestNoBetGainsUnderTheNull: whatever was estimated from the past, no component of any mixture, and no bet on up to 40
// bins, has a factor of mean above 1 under any pair of laws that the claim allows. It is a search for counterexamples
// to the argument of docs/statistics.md.
func TestNoBetGainsUnderTheNull(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12))
	cases := 40
	if *long {
		cases = 1000
	}
	top, tight := 0.0, map[bool]int{} // whether the bet has more than three bins
	for i := range cases {
		epsilon := []float64{0, .01, .1, .5, 1, 2, 4}[i%7]
		delta := []float64{0, 1e-9, 1e-5, .001, .01, .1, .3, .7, .95}[r.IntN(9)]
		law := func(k int) []float64 { return randomLaw(r, k, 1+3*r.Float64()) }
		p, q := law(3), law(3)
		live := [3]bool{r.IntN(4) > 0, false, r.IntN(4) > 0}
		var bets [][2][]float64
		for _, f := range analysis.Bets(epsilon, delta, [3]float64(p), [3]float64(q), live) {
			bets = append(bets, [2][]float64{f[0][:], f[1][:]})
		}
		for _, k := range []int{2, 4, 8, 40} {
			bets = append(bets, analysis.BinBet(epsilon, delta, law(k), law(k)))
		}
		for _, k := range []int{3, 6} { // bins without mass in one world of the alternative, and in both
			a, b := law(k), law(k)
			a[0], b[0] = 0, 0
			a[1] = 0
			bets = append(bets, analysis.BinBet(epsilon, delta, scaled(a), scaled(b)))
		}
		for j, f := range bets {
			worst := worstMean(f, epsilon, delta, r)
			if worst > 1+1e-9 {
				t.Fatalf("bet %d on %d bins at epsilon %v, delta %v: mean factor %.12f", j, len(f[0]), epsilon, delta, worst)
			}
			half := halfSum(f, epsilon, delta)
			if half > 1+1e-9 || worst > half*half+1e-9 {
				t.Fatalf("bet %d on %d bins at epsilon %v, delta %v: half the sum of both mean factors is %.12f, their product %.12f",
					j, len(f[0]), epsilon, delta, half, worst)
			}
			top = max(top, worst)
			if len(f[0]) > 3 {
				worst = half // the search seldom ends where the product is greatest
			}
			if worst > 1-1e-9 && slices.ContainsFunc(f[0], func(x float64) bool { return x != 0 }) {
				tight[len(f[0]) > 3]++
			}
		}
	}
	t.Logf("greatest mean factor %.12f; %d bets on three bins and %d on more reach it", top, tight[false], tight[true])
	if tight[false] == 0 || tight[true] == 0 {
		t.Error("no bet comes near a mean of 1: the search does not find the worst laws")
	}
}
