package desk

import (
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Statement is the query of an audit as it is rewritten.
type Statement struct {
	Query    capture.Query
	Plan     *rewrite.Plan
	Edition  uint64    // of the catalogs with which the plan was made
	Captured time.Time // when the query was captured here last
	Recalled bool      // the ledger was asked for its evidence, or need not be
	Reduced  bool      // the plan has not what rewriting needs
	HasTexts bool
	Texts    []view.SQLPair // by neighbour
}

// Statement returns the query of an audit in its turn.
func (b *Beginnings) Statement(key string) Statement {
	j := b.job(key)
	s := Statement{
		Query: j.query, Plan: j.plan, Edition: j.edition, Captured: j.admitted, Recalled: j.recalled, Reduced: j.life.released, HasTexts: j.hasTexts(),
		Texts: make([]view.SQLPair, len(j.worlds)),
	}
	for i := range j.worlds {
		s.Texts[i] = j.worlds[i].SQL
	}
	return s
}

// Analyzed gives an audit in its turn a complete plan, and the edition of the catalogs with which it was made.
func (b *Beginnings) Analyzed(key string, plan *rewrite.Plan, edition uint64) {
	b.job(key).setPlan(plan, edition)
}

// AnalyzedAgain is Analyzed for an audit whose texts are those of other catalogs: they are dropped.
func (b *Beginnings) AnalyzedAgain(key string, plan *rewrite.Plan, edition uint64) {
	j := b.job(key)
	j.worlds = withoutTexts(j.worlds)
	j.setPlan(plan, edition)
}

// Rewritten gives an audit in its turn the texts to replay.
func (b *Beginnings) Rewritten(key string, worlds []step.World) {
	j := b.job(key)
	j.adopt(worlds)
	j.reduce()
}
