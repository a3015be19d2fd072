package read

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis"
)

// writeFinding writes what was found as rows of a table: of a violation how bad it is, what gives it away and the
// probable causes; otherwise the event with the strongest evidence.
func writeFinding(row func(name, format string, args ...any), r analysis.Report) {
	if f := r.Finding; f != nil {
		row("how bad", "%s: %s", Basis(f.HowBad), f.HowBad.Text)
		if e := f.HowBad.Event; e != nil {
			row("", "likely: %s", e.Text())
		}
		row("what", "likely: %s", f.What.Text)
		for _, text := range causesText(f.Causes) {
			row("why", "%s", text)
		}
	}
	if r.Event != nil && r.Finding == nil {
		row("event", "%s", r.Event.Description)
		row("probability of it", "about %.3g on D0, %.3g on D1", float64(r.Event.D0), float64(r.Event.D1))
	}
	if odds := float64(r.Attacker.PosteriorOdds); !math.IsNaN(odds) {
		row("attacker's odds", "%.3g before, about %.3g after this event (breached: %t); certified: at least %s after the worst event (breached: %t)",
			r.Attacker.PriorOdds, odds, r.Attacker.Breached, analysis.FormatLower(float64(r.Attacker.PosteriorOddsLower)), r.Attacker.BreachCertified)
	}
}

// Basis says how sure the answer to "how bad" is.
func Basis(h analysis.HowBad) string {
	if h.Basis == analysis.Certified {
		return fmt.Sprintf("certified at confidence %g", h.Confidence)
	}
	return string(h.Basis)
}
