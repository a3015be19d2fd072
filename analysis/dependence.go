package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// DependenceErrorRate bounds the probability that independent trials are ever reported as dependent, at whatever times
// one looks.
const DependenceErrorRate = 1e-3

// answers caches what a report needs several times and what follows from the pairs so far. It is not part of the saved
// state.
type answers struct {
	dependent *float64
	tooOften  [2]*bool
}

// dependent returns the log of the average of the slots' evidence that trials depend on each other.
func (o *observations) dependent() float64 {
	if o.answers.dependent == nil {
		e := o.averageEvidence()
		o.answers.dependent = &e
	}
	return *o.answers.dependent
}

func (o *observations) averageEvidence() float64 {
	all := math.Inf(-1)
	for _, s := range o.scores.Slots {
		all = eprocess.LogAdd(all, s.Independence.Evidence(s.Shared))
	}
	return all - math.Log(float64(max(1, len(o.scores.Slots))))
}

// repeatsTooOften reports whether more results of a world repeat earlier ones than chance makes likely.
func (o *observations) repeatsTooOften(world int) bool {
	if o.answers.tooOften[world] == nil {
		often := o.scores.RepeatsTooOften(world, o.pairs)
		o.answers.tooOften[world] = &often
	}
	return *o.answers.tooOften[world]
}

// certainlyDependent reports whether trials are dependent at DependenceErrorRate.
func (o *observations) certainlyDependent() bool {
	return len(o.scores.Slots) > 0 && o.dependent() >= -math.Log(DependenceErrorRate)
}

// requirements are what a violation takes besides wealth.
type requirements struct {
	kept  int // pairs of the past that were kept at the beginning of a confirmation
	stuck int // pairs before which one world must not have given one answer only
}

// requirements returns what a violation takes now.
func (a *Audit) requirements() requirements {
	r := requirements{a.phases.first.kept, dependence.StuckPairs}
	switch {
	case a.phases.confirming():
		r.stuck += a.phases.first.pairs
	case a.opts.Suspicion:
		r.stuck = suspicionPairs(a.claim, a.opts.alpha())
	}
	return r
}

// hold returns the reason why a violation is not reported yet although the wealth suffices; empty if it may be
// reported.
func (o *observations) hold(need requirements) string {
	if o.monotony.constant() {
		return "the answers of each world never vary"
	}
	for w := range 2 {
		if o.repeatsTooOften(w) {
			return fmt.Sprintf("answers on D%d repeat earlier ones exactly", w)
		}
	}
	if e, bet := o.scores.OrderEvidence(); bet && e >= math.Log(dependence.Suspicion) {
		return "the orders of rows seem to depend on each other"
	}
	n := float64(max(1, len(o.scores.Slots)))
	limit := math.Log(dependence.Suspicion) + .75*math.Log(n)
	var all dependence.Mixing
	asked, doubtful, against := 0.0, 0, 0 // slots
	for _, s := range o.scores.Slots {
		d := &s.Independence
		if o.pairs < need.stuck && d.Stuck() {
			return "one world has given one answer only, in too few trials"
		}
		if d.Differ && o.scores.Stride == 1 {
			m := dependence.MixingOf(o.scores.MixingPast(s), s.Shared, o.pairs >= need.stuck, need.kept, &o.scratch)
			all.Add(m)
			asked++
			doubtful += code.Bit(!m.Enough(1))
			against += code.Bit(m.Own[0]+m.Own[1] < 0 || m.Pair < 0)
		}
		if d.Evidence(s.Shared) >= limit {
			each := d.Each(s.Shared)
			top := slices.Index(each[:], slices.Max(each[:]))
			return dependence.Relations[top].Words + " seem to depend on each other"
		}
	}
	if 4*doubtful > len(o.scores.Slots) && (len(o.scores.Slots) <= score.FewSlots || 4*against > len(o.scores.Slots) || !all.Enough(asked)) {
		return "they vary too little, or too slowly, to tell"
	}
	return ""
}

// withdrawn returns the reason why the wealth against the claim is not evidence of a violation; empty if it is.
func (v *evidence) withdrawn(o *observations, need requirements) string {
	switch reason := o.unsound(); {
	case reason != "":
		return reason
	case v.detectedAt > 0 || v.claimAt < 0 || v.strongest().Latest < v.threshold:
		return ""
	}
	if reason := o.hold(need); reason != "" {
		return "trials that are independent would be a violation, and these have not shown that they are: " + reason
	}
	return ""
}

// unsound returns the reason why the trials are certainly dependent, empty if they may be independent. Wealth and bound
// mean nothing if they are dependent.
func (o *observations) unsound() string {
	if o.certainlyDependent() {
		top, at, slot := math.Inf(-1), 0, 0
		for i, s := range o.scores.Slots {
			for r, e := range s.Independence.Each(s.Shared) {
				if e > top {
					top, at, slot = e, r, i
				}
			}
		}
		return "trials depend on each other: " + o.relationWords(at, slot)
	}
	for w := range 2 {
		if o.repeatsTooOften(w) {
			return "trials depend on each other: answers repeat earlier ones exactly"
		}
	}
	return ""
}

// dependenceWarnings returns a warning for each certain relation, with the slot that shows it most clearly.
func (o *observations) dependenceWarnings() (w []withheld.Text) {
	if !o.certainlyDependent() {
		return nil
	}
	least := math.Log(float64(dependence.RelationCount*dependence.BitCount*len(o.scores.Slots)) / DependenceErrorRate)
	var top [dependence.RelationCount]float64
	var at, n [dependence.RelationCount]int
	for i, s := range o.scores.Slots {
		each := s.Independence.Each(s.Shared)
		for r, e := range each {
			if e >= least {
				n[r]++
				if e > top[r] {
					top[r], at[r] = e, i
				}
			}
		}
	}
	const means = "cached, reused or seeded noise; verdict and bound assume fresh noise in every trial and do not hold without it"
	for r, k := range n {
		if k > 0 {
			w = append(w, withheld.Sprintf("%s depend on each other (most in %s; %d of %d columns or partitions): "+means,
				dependence.Relations[r].Words, o.scores.SlotWords(at[r]), k, len(o.scores.Slots)))
		}
	}
	if len(w) == 0 {
		w = append(w, withheld.Public("trials depend on each other, in several ways taken together: "+means))
	}
	return w
}
