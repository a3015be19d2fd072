package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/lawfit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// calibratedScore is the learned log-likelihood ratio bin by bin, calibratedLaplaceScore the joint score with Laplace noise.
var (
	calibratedScore = &kind{
		name: "joint_ratio", make: func(int) statistic { return calibrated{ratioScore} }, where: severalSlots,
		several: .035, fewSlots: true, views: []event.View{event.Ascending}, prior: lawPrior, event: JointEvent,
	}
	calibratedLaplaceScore = &kind{
		name: "joint_laplace", make: func(int) statistic { return calibrated{laplaceScore} }, where: severalSlots,
		several: .08, views: []event.View{event.Ascending}, prior: lawPrior, event: JointEvent,
	}
)

// calibrated is a joint score that comes before it.
type calibrated struct{ from *kind }

func (m calibrated) score(r *result) code.Code {
	if m.from == ratioScore {
		return r.ratio
	}
	return r.laplace
}

func (m calibrated) words(a *Audit, s *series, set uint64) withheld.Text {
	return m.from.make(0).words(a, s, set)
}

func (calibrated) state(*state.Codec) {}

// learn sets the bet on every bin of the other score.
func (m calibrated) learn(a *Audit, s *series, _ *book.Epoch) {
	s.table = nil
	r := a.ofKind(m.from)
	if r == nil || r.table == nil {
		return
	}
	l, ok := lawfit.Calibrated(&r.binner, r.table)
	if !ok {
		return
	}
	s.binner = bins.Binner{Edges: r.binner.Edges, Categories: r.binner.Categories}
	s.learned = a.pairs
	s.table = r.table.WithPast()
	s.table.Laws = &l
}
