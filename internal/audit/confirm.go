package audit

import (
	"math"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
)

// confirmBudget is how many times audit.max_trials a confirmation may take: evidence that was just enough once may need more
// another time.
const confirmBudget = 2

// confirm reports whether a violation that a job is about to report needs evidence of another kind first, and begins to gather
// it then: trials of the whole query, in sessions of their own, from nothing, with the share of the error rate that a restart has. What they
// show replaces what was found before; so a violation is reported wrongly with probability of at most 1 - audit.confidence even if
// everything that hoisting rests on is wrong, and, with hoisting that is right, if both audits err. The price is at most
// confirmBudget times audit.max_trials rounds of the whole query, taken in turns like those of any audit, and only for queries of
// which hoisted trials have shown a violation. The caller has the job's turn.
func (a *Auditor) confirm(j *job) (confirming bool, err error) {
	if j.confirming || j.hoist == nil || j.hoist.Report().HoistedRounds == j.hoisted {
		return false, nil
	}
	a.opt.Logger.Info("hoisted trials show a violation; whole trials have to show it as well before it is reported", zap.String("audit", j.id))
	a.mu.Lock()
	defer a.mu.Unlock()
	j.hoist.Stop("hoisted trials show a violation, which is confirmed on whole trials")
	j.confirming, j.suspected = true, j.wealth() // it keeps its place among the audits that wait for a turn
	err = a.beginAgain(j)
	j.Wealth = j.suspected
	return true, err
}

// wealth returns the largest evidence of a job, as publish keeps it.
func (j *job) wealth() float64 {
	most := 0.0
	for i := range j.worlds {
		if w := float64(j.report(&j.worlds[i]).WealthLog); !math.IsNaN(w) {
			most = max(most, w)
		}
	}
	return most
}

// unconfirmed says so if whole trials have not shown the violation that hoisted ones had shown. The caller has the job's turn.
func (a *Auditor) unconfirmed(j *job) {
	if !j.confirming || !j.decided() {
		return
	}
	for i := range j.worlds {
		if j.report(&j.worlds[i]).Verdict == analysis.Violation {
			return
		}
	}
	a.opt.Logger.Warn("hoisted trials showed a violation, and whole trials do not; it is not reported", zap.String("audit", j.id))
	j.hoist.Stop("hoisted trials showed a violation that whole trials do not show")
}
