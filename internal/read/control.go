package read

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// causeOfCopy says what makes answers differ between D0 and its twin.
const causeOfCopy = "what the query reads was drawn once for each copy of the data: a materialised view or a table with noise, a generated column or " +
	"a default, a cache, or a pool of noise; dpwatch audit --recreate makes copies for each trial. See docs/causes.md#noise_of_a_copy"

// writeControl writes what the control of a violation on the twin of D0 has shown, as rows of a table.
func writeControl(row func(name, format string, args ...any), r analysis.Report) {
	c := r.Control
	if c == nil {
		return
	}
	where := "D0 and its twin"
	if c.Recreated {
		where = "new copies of D0 and its twin"
	}
	switch c.State {
	case analysis.ControlMissing:
		row("control", "not done: no twin of D0 (shadow.twin)")
	case analysis.ControlRunning:
		row("control", "running: %d of %d pairs on %s", c.Pairs, c.MaxPairs, where)
	case analysis.ControlPassed:
		row("control", "passed: the answers on %s are alike in %d pairs (wealth %.3g)", where, c.Pairs, math.Exp(float64(c.WealthLog)))
	case analysis.ControlBlocked, analysis.ControlNamed:
		certain := map[analysis.ControlState]string{analysis.ControlBlocked: "probably", analysis.ControlNamed: "certainly"}[c.State]
		row("control", "blocked: the answers on %s %s differ, after %d pairs (wealth %.3g)", where, certain, c.Pairs, math.Exp(float64(c.WealthLog)))
		if e := c.Event; e != nil {
			row("differs most", "%s: about %.3g on D0, %.3g on its twin", e.Description, float64(e.D0), float64(e.Twin))
		}
	}
}

// ControlText says what the control of a violation on the twin of D0 has shown; nil without one.
func ControlText(r analysis.Report) (lines []string) {
	writeControl(func(name, format string, args ...any) {
		lines = append(lines, show.Capital(name)+": "+fmt.Sprintf(format, args...)+".")
	}, r)
	return lines
}
