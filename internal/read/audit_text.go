package read

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// Write writes everything about an audit but its verdict as text.
func (a Audit) Write(w io.Writer) error {
	var b strings.Builder
	r := a.Result()
	show.Section(&b, "query", a.queryRows())
	b.WriteString("\nevidence\n")
	if a.State == Evicted || r.Confidence == 0 {
		why := "the evidence is not at hand: only these figures are"
		if a.State == Evicted {
			why = "the audit was evicted after it found the violation: only these figures are left"
		}
		show.Section(&b, "", [][2]string{
			{"", why},
			{"claimed", "epsilon " + ClaimText(r.Claimed)},
			{"epsilon lower bound", lowerText(r)},
			{"trials", fmt.Sprint(r.Trials.D0)},
			{"neighbour", a.Neighbour},
		})
	} else if err := (Conclusion{Report: r, Neighbour: a.Neighbour, Neighbours: a.Neighbours, Hoisting: a.Hoisting}).Write(&b); err != nil {
		return err
	}
	if h := a.Hoisting; h != nil && !h.Hoisted && h.Reason != "" {
		show.Section(&b, "hoisting", [][2]string{{"not hoisted", h.Reason}})
	}
	var assumed, neighbours, partitions [][2]string
	for _, text := range a.Assumed {
		assumed = append(assumed, [2]string{"", text})
	}
	show.Section(&b, "assumptions of the rewrite", assumed)
	for _, n := range a.Neighbours {
		verdict := strings.ReplaceAll(cmp.Or(string(n.Verdict), "no verdict yet"), "_", " ")
		neighbours = append(neighbours, [2]string{n.Schema, fmt.Sprintf("%s, lower bound %s, estimate %s", verdict, analysis.LowerText(n.Lower, r.Claimed.Epsilon), show.Estimate(analysis.Report{EpsilonEstimate: n.Estimate, EpsilonLower: n.Lower}))})
	}
	show.Section(&b, "neighbours", neighbours)
	if len(r.Partitions) > 1 {
		for _, p := range r.Partitions {
			partitions = append(partitions, [2]string{p.Key.String(), "estimate " + show.Number(p.EpsilonEstimate)})
		}
	}
	show.Section(&b, fmt.Sprintf("groups: %d of %d, those with the largest estimates", len(partitions), a.Partitions), partitions)
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// queryRows returns what is known of the query.
func (a *Audit) queryRows() [][2]string {
	rows := [][2]string{
		{"summary", a.Summary},
		{"user", a.User},
		{"database", a.Database},
		{"application", a.App},
		{"engine", a.Route},
		{"executions", fmt.Sprintf("%d, first %s, last %s", a.Seen, show.Moment(a.FirstSeen), show.Moment(a.LastSeen))},
		{"state", string(a.State)},
		{"trouble", a.Trouble},
		{"key", a.Key},
		{"fingerprint", a.Group},
		{"rule of the claim", a.ClaimRule},
		{"neighbour", a.Neighbour},
	}
	if to := DestinationsText(a.Destinations); to != "" {
		rows = append(rows, [2]string{"answers went", to})
	}
	if a.Restarts > 0 {
		rows = append(rows, [2]string{"restarts", fmt.Sprintf("%d: the copies were created again", a.Restarts)})
	}
	if w := a.WaitingFor; w != nil {
		rows = append(rows, [2]string{"waiting for", w.String()})
	}
	if a.Changes > 0 {
		rows = append(rows, [2]string{"changes", fmt.Sprintf("%d alarms of the change detector, the last %s: the audit began again; the verdict before: %s", a.Changes, show.Moment(a.Changed), strings.ReplaceAll(string(a.Previous), "_", " "))})
	}
	if w := a.Watch; w != nil {
		rows = append(rows, [2]string{"watched", fmt.Sprintf("%d pairs of trials since the verdict; evidence of a change %s, alarm at %s", w.Trials, show.Number(w.Evidence), show.Number(w.Alarm))})
	}
	if a.Repeats > 0 {
		rows = append(rows, [2]string{"repeats", fmt.Sprintf("%d, because audit.repeat had passed; the verdict before: %s", a.Repeats, strings.ReplaceAll(string(a.Previous), "_", " "))})
	}
	if c := a.Accepted; c != nil {
		rows = append(rows, [2]string{"accepted", AcceptedText(c)})
	}
	rows = append(rows, a.engineRows()...)
	if a.SQL != nil {
		rows = append(rows, [2]string{"SQL on D0", a.SQL.D0}, [2]string{"SQL on D1", a.SQL.D1})
	}
	return slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" })
}

// String describes why an audit has no turn.
func (w *WaitingFor) String() string {
	text := map[string]string{
		"turn": "its turn", "budget": "the replay budget (audit.budget)", "ledger": "the ledger", "shadow_database": "the shadow database",
		"replays_held": "replays, which are held (dpwatch status has the reason)", "watch_share": "its turn in audit.watch_share, in which it is repeated",
		"retry": "another attempt after a fault of its replays",
	}[w.Reason]
	text = cmp.Or(text, w.Reason)
	if w.Position > 0 {
		text += fmt.Sprintf(", about number %d of %d", w.Position, w.Of)
	}
	if text += ", since " + show.Moment(w.Since); !w.Until.IsZero() {
		text += "; next attempt " + show.Moment(w.Until)
	}
	return text
}

// ClaimText formats the claim of the audit; "-" without one.
func (a *Audit) ClaimText() string { return ClaimText(a.Result().Claimed) }

// ClaimedText formats a claim with its source.
func ClaimedText(c analysis.Claimed) string {
	if c.Curve != "" {
		return fmt.Sprintf("the curve %s, tested at %d points (%s)", c.Curve, len(c.Curve.Points()), c.Source)
	}
	return fmt.Sprintf("epsilon %g, delta %g (%s)", float64(c.Epsilon), c.Delta, c.Source)
}

// atDelta says at which point of a curve a bound is; "" = the claim is none.
func atDelta(c analysis.Claimed) string {
	if c.Curve == "" {
		return ""
	}
	return fmt.Sprintf(", at delta %g, where the curve allows %g", c.Delta, float64(c.Epsilon))
}

// ClaimText formats a claim; "-" without one.
func ClaimText(c analysis.Claimed) string {
	switch {
	case math.IsNaN(float64(c.Epsilon)):
		return "-"
	case c.Curve != "":
		return fmt.Sprintf("%g, delta %g (%s)", float64(c.Epsilon), c.Delta, c.Curve)
	case c.Delta > 0:
		return fmt.Sprintf("%g, delta %g", float64(c.Epsilon), c.Delta)
	}
	return fmt.Sprintf("%g", float64(c.Epsilon))
}

// BoundText formats the lower bound of the audit's violation or, if it has none, of its report; a violation by
// deterministic answers has none.
func (a *Audit) BoundText() string {
	if a.Deterministic() {
		return "deterministic"
	}
	return analysis.LowerText(a.ViolationBound(), a.Claim())
}
