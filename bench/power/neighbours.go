package power

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
)

// neighbourBatch is the number of rounds after which the neighbours of the next batch are chosen.
const neighbourBatch = 20

// neighbours prints how many executions audits with several neighbours take if every round has trials of all, and if
// those are favoured whose evidence has grown. Of a wrong mechanism one neighbour leaks, and the answers on the others
// are those on D0; of a right one all neighbours have the claim's epsilon.
func neighbours(w io.Writer, o options) error {
	fmt.Fprintf(w, "Executions with %d neighbours, of which one leaks in wrong mechanisms, %d audits a cell, alpha %g shared by the neighbours: median, 90 %%.\n\n", o.neighbours, o.runs, alpha)
	fmt.Fprintln(w, "| mechanism | within (pairs) | all in every round | 90 % | favoured | 90 % | times fewer |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, f := range slices.Concat(wrong(), right()) {
		if !o.cells.MatchString(f.name) {
			continue
		}
		if f.budget == 0 {
			f.budget = o.alarmPairs
		}
		var n [2][]int
		for favour := range n {
			n[favour] = make([]int, o.runs)
			err := parallel(o, o.runs, func(i int) (err error) {
				n[favour][i], err = executions(f, o.neighbours, favour == 1, o.seed+uint64(i))
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
			slices.Sort(n[favour])
		}
		median, late := o.runs/2, o.runs*9/10
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %.2f |\n", f.name, f.budget, n[0][median], n[0][late], n[1][median], n[1][late], float64(n[0][median])/float64(n[1][median]))
	}
	fmt.Fprintln(w)
	return nil
}

// executions returns the executions until an audit is decided.
func executions(f family, neighbours int, favour bool, seed uint64) (n int, err error) {
	e, err := evidence.New(f.claim, analysis.Options{MaxTrials: f.budget, Confidence: 1 - alpha/float64(neighbours)}, neighbours)
	if err != nil {
		return 0, err
	}
	r := rand.New(rand.NewPCG(seed, 20261123))
	for batch := 0; ; batch++ {
		var spared []bool
		if favour {
			spared = e.Spared(batch)
		}
		for range neighbourBatch {
			round := make([]analysis.Outcome, 1+neighbours)
			round[0], round[neighbours] = f.draw(r)
			for i := 1; i < neighbours; i++ {
				d0, d1 := f.draw(r)
				if round[i] = d0; f.laws == nil {
					round[i] = d1
				}
			}
			e.AddPart(round, spared)
			for i := range round {
				if spared == nil || !spared[i] {
					n++
				}
			}
			if e.Decided() {
				return n, nil
			}
		}
	}
}
