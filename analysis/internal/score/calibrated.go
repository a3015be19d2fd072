package score

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/lawfit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// calibratedScore is the learned log-likelihood ratio bin by bin, calibratedLaplaceScore the joint score with Laplace
// noise.
var (
	calibratedScore = &kind{
		name: "joint_ratio", make: func(int) statistic { return calibrated{ratioScore} }, where: severalSlots,
		several: .035, fewSlots: true, views: []event.View{event.Ascending}, prior: LawPrior, event: JointEvent,
	}
	calibratedLaplaceScore = &kind{
		name: "joint_laplace", make: func(int) statistic { return calibrated{laplaceScore} }, where: severalSlots,
		several: .08, views: []event.View{event.Ascending}, prior: LawPrior, event: JointEvent,
	}
)

// calibrated is a joint score that comes before it.
type calibrated struct{ from *kind }

func (m calibrated) score(r *Result) code.Code {
	if m.from == ratioScore {
		return r.ratio
	}
	return r.laplace
}

func (m calibrated) words(in *Input, s *Series, set uint64) withheld.Text {
	return m.from.make(0).words(in, s, set)
}

func (calibrated) state(*state.Codec) {}

// learn sets the bet on every bin of the other score.
func (m calibrated) learn(in *Input, s *Series) {
	s.Table = nil
	r := in.specials.ofKind(m.from)
	if r == nil || r.Table == nil {
		return
	}
	l, ok := lawfit.Calibrated(&r.Binner, r.Table)
	if !ok {
		return
	}
	s.Binner = bins.Binner{Edges: r.Binner.Edges, Categories: r.Binner.Categories}
	s.learned = in.pairs
	s.Table = r.Table.WithPast()
	s.Table.Laws = &l
}
