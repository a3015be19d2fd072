package analysis

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// found is the event that gained most, and its estimated likelihood ratio.
type found struct {
	event  *Event
	ratio  float64
	series *score.Series // the score, nil without an event
	set    uint64        // the bins of the event
	shares [2]event.Share
}

// strongest returns the event of the view that holds most of the wealth against the claim, NaN and nil before anything
// was learned. Exact values explain little, so another score's event comes before theirs if it suffices by itself, unless
// they are in what the server says.
func strongest(o *observations, v *evidence) found {
	best, other := book.Standing{Wealth: math.Inf(-1)}, book.Standing{Wealth: math.Inf(-1)}
	var exact book.Standing
	_, said := o.scores.Exact.Form()
	for st := range v.lead.Standings(&v.book, v.epoch) {
		if !atStake(st.Events) {
			continue
		}
		if st.Wealth > best.Wealth {
			best = st
		}
		switch {
		case o.scores.Named(st.Entry.Score).IsExact():
			exact = st
		case st.Wealth > other.Wealth:
			other = st
		}
	}
	if best.Events == nil {
		return found{ratio: math.NaN()}
	}
	switch {
	case said && exact.Events != nil && v.suffices(exact.Entry):
		best = exact
	case !said && o.scores.Named(best.Entry.Score).IsExact() && other.Events != nil && v.suffices(other.Entry):
		best = other
	}
	return o.describe(o.scores.Named(best.Entry.Score), best.Entry.Table, best.Events)
}

// atStake reports whether anything is bet on events.
func atStake(e *event.Events) bool {
	return e.Toward[eprocess.TowardD0]|e.Toward[eprocess.TowardD1] != 0
}

// describe returns the one of a view's two events with the greater likelihood ratio, with its description.
func (o *observations) describe(s *score.Series, t *event.Table, e *event.Events) found {
	side, ratio, p, q := eprocess.TowardD0, 0.0, 0.0, 0.0
	var shares [2]event.Share
	for _, d := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
		if e.Toward[d] == 0 {
			continue
		}
		of := t.Shares(e, d)
		x, y := of[0].Smoothed(), of[1].Smoothed()
		if d == eprocess.TowardD1 {
			x, y = y, x
		}
		if r := x / y; r > ratio {
			side, ratio, p, q, shares = d, r, x, y, of
		}
	}
	direction, other := "D0", "D1"
	ev := &Event{Score: s.Name(), D0: Float(p), D1: Float(q)}
	if side == eprocess.TowardD1 {
		direction, other = "D1", "D0"
		ev.D0, ev.D1 = ev.D1, ev.D0
	}
	set := e.Toward[side]
	ev.Direction, ev.Kind, ev.Tail, ev.Column = direction, s.EventKind(set), s.Tail(set), o.scores.ColumnOf(s)
	if s.IsSlot() {
		ev.Partition = o.scores.Reader.GroupName(s.Slot / o.scores.Reader.Cells())
	}
	how := "more likely on " + direction
	if n := float64(t.Pairs) + float64(t.Counted()); q*(n+1) <= .5 && p*(n+1) > 1 && s.Plain(set) {
		how = "only on " + direction + ", never on " + other
	}
	ev.Description = withheld.Sprintf("%s %s", o.scores.Words(s, set), how)
	return found{ev, ratio, s, set, shares}
}

// what describes the event with the strongest evidence in words.
func (o *observations) what(best *found) What {
	w := What{Basis: Likely, Parts: []Part{}}
	e := best.event
	if e == nil {
		w.Text = withheld.Public("the answer itself shows the dataset")
		return w
	}
	words := o.scores.EventOf(best.series, best.set)
	for _, p := range words.Parts {
		w.Parts = append(w.Parts, Part{Where: p.Where, Share: Float(p.Share)})
	}
	w.Text = withheld.Sprintf("%s: %s on D0, %s on D1", o.scores.EventWords(words), often(best.shares[0], " of the answers"), often(best.shares[1], ""))
	return w
}

// often says how often an event came: its share, or the counts if that would be all or nothing.
func often(s event.Share, of string) string {
	if p := percent(float64(s.K) / float64(max(s.N, 1))); s.K > 0 && s.K < s.N && p != "0 %" && p != "100 %" && !strings.Contains(p, "than") {
		return p + of
	}
	return fmt.Sprintf("%d of %d", s.K, s.N) + strings.Replace(of, " of the", "", 1)
}
