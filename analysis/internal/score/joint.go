package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// laplaceScore and gaussScore are the joint scores of naive Bayes, with Laplace and with Gaussian noise.
var (
	laplaceScore = &kind{
		name: "joint_laplace", make: func(int) statistic { return laplaceJoint{new(joint)} }, where: severalSlots,
		several: .13, views: []event.View{event.Ascending}, event: JointEvent,
	}
	gaussScore = &kind{
		name: "joint_gauss", make: func(int) statistic { return &gaussJoint{new(joint)} }, where: severalSlots,
		several: .13, views: []event.View{event.Ascending}, event: JointEvent,
	}
)

type (
	laplaceJoint struct{ *joint }
	gaussJoint   struct{ *joint }
)

func (m laplaceJoint) score(r *Result) code.Code { laplace, _ := m.both(r); return laplace }

func (m *gaussJoint) score(r *Result) code.Code { _, gauss := m.both(r); return gauss }

// state describes the lenses, unless they are those of laplaceScore.
func (m *gaussJoint) state(c *state.Codec) {
	own := c.Shared != any(m.joint)
	if c.Bool(&own); own {
		m.joint.state(c)
		return
	}
	shared, ok := c.Shared.(*joint)
	c.Check(ok)
	m.joint = shared
}

// lens is what the joint scores have learned of one slot: the evidence for D0 of each outcome, in nats.
type lens struct {
	live           bool
	number         float64 // of any number
	categories     []code.Label
	weights        []float64 // per category
	center, shift  float64   // the laws' centres are center -+ shift/2 on D0 and D1
	laplace, gauss float64   // 1/b and 1/s^2
	reach          float64   // numbers further than this from the centre count as this far
}

// tally sums what a lens is learned from, over one fold of the past in one world.
type tally struct {
	numbers    float64
	clipped    float64 // sum of clip(x - center, lo, hi)
	clipped2   float64
	inside     float64 // numbers strictly between the clips
	absolute   float64 // sum of min(|x - center|, reach)
	square     float64
	categories [bins.MaxCommon]float64
	pairs      float64
}

func (t *tally) add(u *tally) {
	t.numbers += u.numbers
	t.clipped += u.clipped
	t.clipped2 += u.clipped2
	t.inside += u.inside
	t.absolute += u.absolute
	t.square += u.square
	t.pairs += u.pairs
	for i := range t.categories {
		t.categories[i] += u.categories[i]
	}
}

// folds is the number of parts of the past: each is scored by lenses learned from the other.
const folds = 2

// joint learns the lenses of all slots and scores whole results: naive Bayes, one term per slot, O(slots).
type joint struct {
	full    []lens
	tallies [folds][2]tally
	scores  [2][2][]code.Code // per kind (Laplace, Gauss) and world: out-of-fold scores of the past
}

// leastJoint is the fewest pairs that a joint score is learned from.
const leastJoint = 8

// maxJointPast is the most pairs that the joint scores learn from; beyond fewJoint slots maxJointCells is the most
// pairs times slots.
const (
	maxJointPast  = 1 << 17
	maxJointCells = 1 << 18
	fewJoint      = 32
)

// fit fits the lenses on the kept pairs of all slots and scores these pairs out of fold.
func (j *joint) fit(slots []*Series) {
	kept := len(slots[0].Past[0])
	stride := 1
	for kept/stride > maxJointPast || (len(slots) > fewJoint && kept/stride > 256 && kept/stride*len(slots) > maxJointCells) {
		stride++
	}
	n := kept / stride
	from := kept - n*stride
	for kind := range j.scores {
		for w := range j.scores[kind] {
			j.scores[kind][w] = append(j.scores[kind][w][:0], make([]code.Code, n)...)
		}
	}
	for len(j.full) < len(slots) {
		j.full = append(j.full, lens{})
	}
	j.full = j.full[:len(slots)]
	for i, s := range slots {
		l := &j.full[i]
		l.live = false
		if s.Shared || s.Table == nil {
			continue
		}
		j.learnSlot(l, s, from, stride, n)
	}
	for kind := range j.scores {
		for w := range j.scores[kind] {
			for i, x := range j.scores[kind][w] {
				j.scores[kind][w][i] = boundedCode(x, jointReach)
			}
		}
	}
}

// learnSlot fits one slot's lens and adds its terms to the out-of-fold scores.
func (j *joint) learnSlot(l *lens, s *Series, from, stride, n int) {
	center, lo, hi, reach := middle(s.Binner.Edges)
	j.tallies = [folds][2]tally{}
	for w, codes := range s.Past {
		for i := range n {
			j.tallies[i%folds][w].count(codes[from+i*stride], &s.Binner, center, lo, hi, reach)
		}
	}
	for f := range folds {
		var other [2]tally
		for w := range other {
			for g := range folds {
				if g != f {
					other[w].add(&j.tallies[g][w])
				}
			}
		}
		l.fit(&other, &s.Binner, center, reach)
		for w, codes := range s.Past {
			for i := f; i < n; i += folds {
				a, b := l.terms(codes[from+i*stride])
				j.scores[0][w][i] += a
				j.scores[1][w][i] += b
			}
		}
	}
	var all [2]tally
	for w := range all {
		for f := range folds {
			all[w].add(&j.tallies[f][w])
		}
	}
	l.fit(&all, &s.Binner, center, reach)
}

// middle returns the pooled median and quartiles (as distances from it), and the reach, from quantile edges.
func middle(edges []float64) (center, lo, hi, reach float64) {
	n := len(edges)
	if n == 0 {
		return 0, 0, 0, 0
	}
	center = edges[n/2]
	lo, hi = edges[n/4]-center, edges[(3*n)/4]-center
	if n > 2 {
		// n-1-n/4 mirrors n/4.
		hi = edges[n-1-n/4] - center
	}
	reach = 8 * max(hi, -lo)
	if !(reach < math.MaxFloat64/4) {
		return 0, 0, 0, 0
	}
	return center, lo, hi, reach
}

func (t *tally) count(c code.Code, b *bins.Binner, center, lo, hi, reach float64) {
	t.pairs++
	if !code.IsNumber(c) {
		id := code.LabelOf(c)
		for i, k := range b.Categories {
			if k == id {
				t.categories[i]++
				return
			}
		}
		return
	}
	t.numbers++
	d := c - center
	v := min(max(d, lo), hi)
	t.clipped += v
	t.clipped2 += v * v
	if d > lo && d < hi {
		t.inside++
	}
	if d = math.Abs(d); d > reach {
		d = reach
	}
	t.absolute += d
	t.square += d * d
}

// fit sets the lens from tallies of both worlds. Every estimate is shrunk by its own noise, so that slots that do not
// leak add little of it: an effect e with variance v counts as e^3/(e^2+v).
func (l *lens) fit(t *[2]tally, b *bins.Binner, center, reach float64) {
	l.live = t[0].pairs >= 2
	l.number = fit.ShrunkLogRatio(t[0].numbers, t[1].numbers, t[0].pairs, t[1].pairs)
	l.categories, l.weights = b.Categories, l.weights[:0]
	for i := range b.Categories {
		l.weights = append(l.weights, fit.ShrunkLogRatio(t[0].categories[i], t[1].categories[i], t[0].pairs, t[1].pairs))
	}
	l.center, l.reach, l.shift, l.laplace, l.gauss = center, reach, 0, 0, 0
	n0, n1 := t[0].numbers, t[1].numbers
	if n0 < 2 || n1 < 2 {
		return
	}
	m0, m1 := t[0].clipped/n0, t[1].clipped/n1
	variance := max(0, t[0].clipped2/n0-m0*m0)/n0 + max(0, t[1].clipped2/n1-m1*m1)/n1
	inside := (t[0].inside + t[1].inside) / (n0 + n1)
	scale := (t[0].absolute + t[1].absolute) / (n0 + n1)
	square := (t[0].square + t[1].square) / (n0 + n1)
	if !(scale > 0) || !(square > 0) || math.IsInf(square, 0) {
		return
	}
	l.shift = fit.Shrink(m1-m0, variance) / max(inside, .25)
	l.laplace, l.gauss = 1/scale, 1/square
	if math.IsInf(l.laplace, 0) || math.IsInf(l.gauss, 0) || math.IsNaN(l.shift) {
		l.shift, l.laplace, l.gauss = 0, 0, 0
	}
}

// terms returns what a code adds to the Laplace and to the Gaussian score.
func (l *lens) terms(c code.Code) (laplace, gauss float64) {
	if !l.live {
		return 0, 0
	}
	if !code.IsNumber(c) {
		id := code.LabelOf(c)
		for i, k := range l.categories {
			if k == id {
				return l.weights[i], l.weights[i]
			}
		}
		return 0, 0
	}
	x := c - l.center
	if math.Abs(x) > l.reach { // seldom
		x = math.Copysign(l.reach, x)
	}
	half := l.shift / 2
	laplace = l.number + (math.Abs(x-half)-math.Abs(x+half))*l.laplace
	gauss = l.number - l.shift*x*l.gauss
	return laplace, gauss
}

// jointReach bounds joint scores, which are far below it unless a term overflows.
const jointReach = 1 << 20

// both returns the two joint scores of a result and caches them in it, because each score needs one of them.
func (j *joint) both(r *Result) (laplace, gauss code.Code) {
	if r.joint == j {
		return r.laplace, r.gauss
	}
	for i, c := range r.Codes[:min(len(r.Codes), len(j.full))] {
		a, b := j.full[i].terms(c)
		laplace += a
		gauss += b
	}
	r.joint, r.laplace, r.gauss = j, boundedCode(laplace, jointReach), boundedCode(gauss, jointReach)
	return r.laplace, r.gauss
}

func (j *joint) words(in *Input, s *Series, set uint64) withheld.Text {
	return in.jointWords(s, set, nounOf("score", "scores"))
}

// jointWords describes bins of a score of all slots.
func (in *Input) jointWords(s *Series, set uint64, n noun) withheld.Text {
	return withheld.Sprintf("all %d partitions and columns taken together: %s", len(in.Slots), in.binWords(s, set, n))
}

func (j *joint) state(c *state.Codec) {
	state.List(c, &j.full, func(l *lens) {
		c.All(&l.live, &l.number, &l.center, &l.shift, &l.laplace, &l.gauss, &l.reach)
		state.List(c, &l.categories, func(l *code.Label) { l.State(c) })
		c.Floats(&l.weights)
		c.Check(len(l.weights) == len(l.categories))
	})
	c.Check(len(j.full) <= c.Slots)
	c.Shared = j
}

// learnJoint fits the joint scores if there are several slots; if there are many, only every second time.
func (in *Input) learnJoint() {
	laplace, gauss := in.specials.ofKind(laplaceScore), in.specials.ofKind(gaussScore)
	if laplace == nil || len(in.Slots) < 2 || len(in.Slots[0].Past[0]) < leastJoint {
		return
	}
	if in.knows(laplace) {
		laplace.carry()
		gauss.carry()
		return
	}
	j := laplace.statistic.(laplaceJoint).joint
	gauss.statistic = &gaussJoint{j}
	j.fit(in.Slots)
	for i, s := range [...]*Series{laplace, gauss} {
		s.relearnFrom(j.scores[i], in.pairs, &in.scratch)
	}
}
