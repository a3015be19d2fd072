package read

import (
	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Details is what the page of one query shows. Its JSON form is for the processes of one dpwatch.
type Details struct {
	Audit      Audit    `json:"audit"`
	Ledger     Stored   `json:"ledger"` // the zero value without one
	Answers    []Answer `json:"answers"`
	Who        Who      `json:"who"`
	Asked      Asked    `json:"asked"`
	Charts     *Charts  `json:"charts,omitempty"` // nil = the ledger has no evidence
	Values     bool     `json:"values"`           // values of rows are shown
	Reproduces bool     `json:"-"`                // fresh trials run now
}

// Charts are the figures of an audit as numbers to draw.
type Charts struct {
	Claim      float64        `json:"claim"`
	Delta      float64        `json:"delta"`
	NoClaim    bool           `json:"no_claim"`
	Threshold  float64        `json:"threshold"`       // of a single audit: ln(1/alpha)
	Fleet      float64        `json:"fleet_threshold"` // at which this one reports a violation: not less, by audit.error_rate
	Path       []PathPoint    `json:"path"`
	Profile    []ProfilePoint `json:"profile"`
	Histogram  *Histogram     `json:"histogram,omitempty"`  // with values alone
	Ranks      *Ranks         `json:"ranks,omitempty"`      // without values
	Categories *Categories    `json:"categories,omitempty"` // without values, names that are none of a row
}

// PathPoint is the state of the evidence after some pairs of trials.
type PathPoint struct {
	Pairs  int            `json:"pairs"`
	Wealth analysis.Float `json:"wealth_log"`
	Bound  analysis.Float `json:"epsilon_lower"`
}

// ProfilePoint is a point of the certified privacy profile.
type ProfilePoint = analysis.ProfilePoint

// Ranks is the counts of answers in their order.
type Ranks = analysis.Ranks

// Histogram is the counts of answers on D0 and D1; see [analysis.Histogram].
type Histogram struct {
	Label     string       `json:"label"`
	Edges     []float64    `json:"edges"`
	D0        []int        `json:"d0"`
	D1        []int        `json:"d1"`
	Event     [][2]float64 `json:"event"`
	Direction string       `json:"direction"`
}

// Categories is the counts of answers that are no numbers; see [analysis.Categories].
type Categories struct {
	Label     string   `json:"label"`
	Names     []string `json:"names"`
	D0        []int    `json:"d0"`
	D1        []int    `json:"d1"`
	Event     []bool   `json:"event"`
	Direction string   `json:"direction"`
}

// NewDetails returns the details of an explanation; values is whether values of rows may be shown.
func NewDetails(x Explanation, values bool) Details {
	d := Details{Audit: x.Audit, Ledger: x.Ledger, Answers: x.Answers(), Who: x.Who, Asked: x.Asked, Values: values}
	if !values {
		d.Ledger.History = WithholdReasons(d.Ledger.History)
	}
	return d
}

// Note adds a line to what could not be read.
func (d *Details) Note(text string) {
	d.Answers = append(d.Answers, Answer{NotRead, []string{text}})
}

// NewCharts returns the figures of an audit to draw; values is whether values of rows may be shown.
func NewCharts(f *analysis.Figures, values bool) *Charts {
	c := &Charts{Claim: f.Claim.Epsilon, Delta: f.Claim.Delta, NoClaim: f.NoClaim, Threshold: f.Threshold, Profile: f.Profile}
	if f.NoClaim {
		c.Claim = 0
	}
	for _, p := range f.Path {
		c.Path = append(c.Path, PathPoint{p.Pairs, analysis.Float(p.Wealth), analysis.Float(p.Line)})
	}
	if h := f.Histogram; h != nil && values {
		c.Histogram = &Histogram{h.Label.Reveal(), h.Edges.Reveal(), h.D0, h.D1, h.Event.Reveal(), h.Direction}
	}
	if !values {
		c.Ranks = f.Ranks
	}
	if g := f.Categories; g != nil {
		text := withheld.Text.String
		if values {
			text = withheld.Text.Reveal
		}
		c.Categories = &Categories{Label: text(g.Label), D0: g.D0, D1: g.D1, Event: g.Event, Direction: g.Direction}
		for _, name := range g.Names {
			c.Categories.Names = append(c.Categories.Names, text(name))
		}
	}
	return c
}
