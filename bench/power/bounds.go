package power

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// published are the lower bounds that others report for a mechanism, as text.
type published struct {
	sniperLR, sniperNN string // DP-Sniper with logistic regression and with a neural network, 90 % (Bichsel et al. 2021)
	statDP             string // StatDP (Ding et al. 2018), two runs, verified by the authors of DP-Sniper
}

// benchmark is a mechanism of the benchmark of DP-Sniper on a pair of inputs on which it leaks most.
type benchmark struct {
	name string
	true string // its least epsilon, as text
	draw func(r *rand.Rand) (d0, d1 analysis.Outcome)
	published
}

// bounds prints the median of the lower bounds of some audits of every mechanism of the benchmark, and the least and
// the greatest, beside the published ones.
func bounds(w io.Writer, o options) error {
	if o.boundPairs == 0 {
		return nil
	}
	var some []benchmark
	for _, b := range benchmarks() {
		if o.cells.MatchString(b.name) {
			some = append(some, b)
		}
	}
	lower := make([]float64, len(some)*o.boundRuns)
	took := make([]time.Duration, len(lower))
	err := parallel(o, len(lower), func(i int) (err error) {
		b, start := some[i/o.boundRuns], time.Now()
		if lower[i], err = lowerBound(b, o.boundPairs, o.seed+uint64(i%o.boundRuns)); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		took[i] = time.Since(start)
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Lower bound of epsilon, %d audits of %d pairs without a claim, confidence %g at every look.\n\n", o.boundRuns, o.boundPairs, 1-alpha)
	fmt.Fprintln(w, "| mechanism | true | ours, median | least and greatest | DP-Sniper LR | DP-Sniper NN | StatDP, two runs | seconds an audit |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for i, b := range some {
		var all time.Duration
		for _, t := range took[i*o.boundRuns : (i+1)*o.boundRuns] {
			all += t
		}
		own := lower[i*o.boundRuns : (i+1)*o.boundRuns]
		slices.Sort(own)
		fmt.Fprintf(w, "| %s | %s | %.4g | %.4g to %.4g | %s | %s | %s | %.0f |\n", b.name, b.true, own[(o.boundRuns-1)/2], own[0],
			own[o.boundRuns-1], b.sniperLR, b.sniperNN, b.statDP, all.Seconds()/float64(o.boundRuns))
	}
	fmt.Fprintln(w)
	return nil
}

// lowerBound is epsilon_lower of one audit without a claim.
func lowerBound(b benchmark, pairs int, seed uint64) (float64, error) {
	a, err := analysis.New(analysis.Claim{}, analysis.Options{NoClaim: true, MaxTrials: pairs, Confidence: 1 - alpha})
	if err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(seed, 20240607))
	for range pairs {
		a.Add(b.draw(r))
	}
	return float64(a.Report().EpsilonLower), nil
}
