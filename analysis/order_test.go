package analysis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestOrder: sorted results, and answers that follow each other, are seen; independent ones are not (a false alarm of
// each has a probability of .011 by the bounds of Order; over the 60 of a case more than seven have 1e-6).
func TestOrder(t *testing.T) {
	t.Parallel()
	findings := func(d draw, n int, seed uint64, sorted bool) string {
		r := rand.New(rand.NewPCG(seed, 3))
		var worlds [2][]analysis.Outcome
		for range n {
			a, b := d(r)
			worlds[0], worlds[1] = append(worlds[0], a), append(worlds[1], b)
		}
		if sorted {
			for _, w := range worlds {
				slices.SortFunc(w, func(a, b analysis.Outcome) int {
					return strings.Compare(fmt.Sprintf("%020.9f %s", a.Rows[0][0].Num+1e6, a.Rows[0][0].Text), fmt.Sprintf("%020.9f %s", b.Rows[0][0].Num+1e6, b.Rows[0][0].Text))
				})
			}
		}
		var o analysis.Order
		for i := range n {
			o.Add(worlds[0][i], worlds[1][i])
		}
		return strings.Join(o.Findings(), "; ")
	}
	for name, d := range map[string]draw{"numbers": laplaceShift(1), "texts": response(1)} {
		if got := findings(d, 1000, 1, true); !strings.Contains(got, "on D0 the results change") || !strings.Contains(got, "on D1") {
			t.Errorf("%s, sorted: %q", name, got)
		}
		wrong := 0
		for seed := range uint64(60) {
			if findings(d, 300, seed, false) != "" {
				wrong++
			}
		}
		if wrong > 7 {
			t.Errorf("%s: %d of 60 independent sequences show something", name, wrong)
		}
	}
	sticky := 0.0
	got := findings(func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		sticky = .9*sticky + gauss(r, 1)
		return value(sticky), value(lap(r, 1))
	}, 1000, 1, false)
	if !strings.Contains(got, "successive answers on D0 depend") {
		t.Errorf("dependent answers: %q", got)
	}
}
