package dependence

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// Independence tests whether trials of one slot depend on each other. Every outcome becomes two bits (see marks), by
// thresholds that follow the latest outcomes. Each relation between an earlier trial and a later one predicts the later
// bits from the earlier ones, and is compared with the best that a coin of unknown probability could do.
//
// For one relation and one bit, let n[a][b] count the later bits b after the earlier bits a. The numerator is the
// probability of the later bits when each value of the earlier bit has its own coin (Krichevsky and Trofimov's
// estimator of its probability, over all trials). The denominator is the greatest probability that they have under one
// coin per stretch between two choices of thresholds. Where the trials are independent and, within a stretch, of one
// law, the later bits are such coins given the thresholds, the numerator is a probability, and the ratio has mean at
// most 1 at every stopping time (universal inference: Wasserman, Ramdas and Balakrishnan 2020; Ramdas, Ruf, Larsson and
// Koolen 2022 for this test). So is the average of such ratios over relations, bits and slots.
type Independence struct {
	seen   int // pairs since the slot was made
	until  int // seen at which thresholds are chosen again; 0 = none are chosen yet
	marks  [2]marks
	recent [2][BitCount + 1]uint64 // per world and bit, known among them: those of the latest trials, the latest lowest
	fresh  int                     // pairs that are in recent and not in counts and later yet
	counts [RelationCount][BitCount][4]int32
	later  [2][BitCount][2]int32 // of the current stretch: the later bits of a world
	closed [2][BitCount]float64  // the greatest log-probabilities of the finished stretches
	first  [2]code.Code
	moved  [2]bool // a number other than the first one has come
	class  [2]bool // an outcome of another class than the first one has come: a number, or one of the categories
	Differ bool    // the worlds' outcomes were not always equal
}

// The bits of an outcome.
const (
	sideBit  = iota // on which side of the middle a number lies; whether it is the most frequent outcome
	outerBit        // whether a number lies far from the middle; every other category that is known
	BitCount
)

// maxLag is how many trials back, of the same world, a relation reaches.
const maxLag = 3

// relation is an earlier and a later trial.
type relation struct {
	earlier, later, Lag int // worlds; the pairs between them
	weight              float64
	Words               string
}

// RelationCount is the number of relations.
const RelationCount = 11

// Relations are weighted by how common their causes are. Those of one world are joined with the same of the other.
var Relations = [RelationCount]relation{
	{0, 0, 1, .12, "successive answers on D0"},
	{1, 1, 1, .12, "successive answers on D1"},
	{0, 0, 2, .06, "answers on D0 two trials apart"},
	{1, 1, 2, .06, "answers on D1 two trials apart"},
	{0, 0, 3, .03, "answers on D0 three trials apart"},
	{1, 1, 3, .03, "answers on D1 three trials apart"},
	{0, 1, 0, .3, "the answers on D0 and D1 of one pair"},
	{1, 0, 1, .04, "the answers on D1 and the next on D0"},
	{0, 1, 1, .04, "the answers on D0 and the next on D1"},
	{1, 0, 2, .02, "the answers on D1 and on D0 two trials later"},
	{0, 1, 2, .02, "the answers on D0 and on D1 two trials later"},
}

// jointWeights are the weights of both worlds' own relations together, by lag less 1.
var jointWeights = [maxLag]float64{.1, .04, .02}

// bitWeights divide a relation's weight.
var bitWeights = [BitCount]float64{.7, .3}

// evidenceWeights are the logarithms of the weights per bit: of every relation, and of both worlds' own together by lag
// less 1.
var evidenceWeights = func() (logs [BitCount]struct {
	one  [RelationCount]float64
	both [maxLag]float64
},
) {
	for bit, part := range bitWeights {
		for i := range Relations {
			logs[bit].one[i] = math.Log(part * Relations[i].weight)
		}
		for lag, weight := range jointWeights {
			logs[bit].both[lag] = math.Log(part * weight)
		}
	}
	return logs
}()

// marks turn the outcomes of one world into bits.
type marks struct {
	atom        code.Code // the most frequent outcome, where it is more than 2 in 5 of them
	hasAtom     bool
	middle, far float64 // median, and median distance from it
	known       uint16  // categories from this one on were not seen before: they are numbered as they come, and would take turns
}

// The stretches between two choices of thresholds: the first begins after firstMarks pairs, and each is as long as all
// before it, up to longestStretch.
const (
	firstMarks     = 4
	longestStretch = 1024
	MarkValues     = 512 // the latest outcomes that thresholds are chosen from
)

// choose sets the thresholds from the latest outcomes of a world.
func (m *marks) choose(codes []code.Code, s *bins.Scratch) {
	codes = codes[max(0, len(codes)-MarkValues):]
	*m = marks{}
	s.Values = s.Values[:0]
	s.ResetLabels()
	for _, c := range codes {
		if code.IsNumber(c) {
			s.Values = append(s.Values, c)
		} else {
			s.CountLabel(code.Label(code.CategoryOf(c)), 0)
			m.known = max(m.known, code.CategoryOf(c)+1)
		}
	}
	s.Sort(s.Values)
	l, most := s.CommonestLabel()
	if most > 0 {
		m.atom = l.Code()
	}
	for i := 0; i < len(s.Values); {
		_, hi := bins.EqualRun(s.Values, i)
		if hi-i > most && hi-i > 1 {
			most, m.atom = hi-i, s.Values[i]
		}
		i = hi
	}
	n := len(s.Values)
	m.hasAtom = 5*most > 2*len(codes) && most > 1 || n == 0
	if n == 0 {
		return
	}
	m.middle = s.Values[(n-1)/2]/2 + s.Values[n/2]/2
	m.far = nthDistance(s.Values, m.middle, n/2)
}

// nthDistance returns the distance from x of the value with n others nearer to it, or as near. The values are sorted.
func nthDistance(values []float64, x float64, n int) (d float64) {
	above, _ := slices.BinarySearch(values, x)
	below := above - 1
	for range n + 1 {
		if above == len(values) || below >= 0 && x-values[below] < values[above]-x {
			d = x - values[below]
			below--
			continue
		}
		d = values[above] - x
		above++
	}
	return d
}

// bits returns the bits of an outcome.
func (m *marks) bits(c code.Code) (b uint8) {
	if !code.IsNumber(c) {
		odd := code.CategoryOf(c) < m.known && code.CategoryOf(c)&1 == 1
		return uint8(code.Bit(m.hasAtom && m.isAtom(c)))<<sideBit | uint8(code.Bit(odd))<<outerBit
	}
	side := c >= m.middle
	if m.hasAtom {
		side = m.isAtom(c)
	}
	return uint8(code.Bit(side))<<sideBit | uint8(code.Bit(math.Abs(c-m.middle) >= m.far))<<outerBit
}

// isAtom reports whether an outcome is the most frequent one. Texts that the dictionary does not hold are one outcome
// here.
func (m *marks) isAtom(c code.Code) bool {
	return sameCode(c, m.atom) || !code.IsNumber(c) && !code.IsNumber(m.atom) && code.CategoryOf(c) == code.CategoryOf(m.atom)
}

func sameCode(x, y code.Code) bool { return math.Float64bits(x) == math.Float64bits(y) }

// sameClass reports whether both are numbers, or the same category.
func sameClass(x, y code.Code) bool { return code.IsNumber(x) && code.IsNumber(y) || sameCode(x, y) }

// Renew chooses thresholds from the past of a slot where a stretch is over. past holds what was seen, this pair
// included.
func (d *Independence) Renew(past [2][]code.Code, s *bins.Scratch) {
	if d.seen < max(firstMarks, d.until) {
		return
	}
	d.settle()
	for w := range d.marks {
		for bit := range d.later[w] {
			d.closed[w][bit] += bestCoin(d.later[w][bit])
			d.later[w][bit] = [2]int32{}
		}
		d.marks[w].choose(past[w], s)
	}
	d.until = d.seen + min(d.seen, longestStretch)
}

// Add counts a pair.
func (d *Independence) Add(c0, c1 code.Code) {
	d.vary(c0, c1)
	d.seen++
	if d.until == 0 {
		return
	}
	d.fresh += code.Bit(d.warm())
	d.push(0, d.marks[0].bits(c0)|known)
	d.push(1, d.marks[1].bits(c1)|known)
	if d.fresh == 64-maxLag {
		d.settle()
	}
}

// push appends the bits of a trial of one world.
func (d *Independence) push(w int, b uint8) {
	for bit := range d.recent[w] {
		d.recent[w][bit] = d.recent[w][bit]<<1 | uint64(b>>bit&1)
	}
}

// settle counts the pairs that are not counted yet, all of them at once.
func (d *Independence) settle() {
	n, mask := int32(d.fresh), uint64(1)<<d.fresh-1
	for i := range Relations {
		r := &Relations[i]
		for bit := range BitCount {
			before, after := d.recent[r.earlier][bit]>>r.Lag&mask, d.recent[r.later][bit]&mask
			both := ones(before & after)
			k := &d.counts[i][bit]
			k[0] += n - ones(before|after)
			k[1] += ones(after) - both
			k[2] += ones(before) - both
			k[3] += both
		}
	}
	for w := range d.later {
		for bit := range d.later[w] {
			k := ones(d.recent[w][bit] & mask)
			d.later[w][bit][0] += n - k
			d.later[w][bit][1] += k
		}
	}
	d.fresh = 0
}

func ones(x uint64) int32 { return int32(bits.OnesCount64(x)) }

// known marks the bits of a trial that was seen.
const known = 1 << BitCount

// warm reports whether all earlier trials that relations use were seen.
func (d *Independence) warm() bool { return d.recent[0][BitCount]>>(maxLag-1)&1 == 1 }

// vary keeps whether the outcomes of each world vary, and whether the worlds differ.
func (d *Independence) vary(c0, c1 code.Code) {
	if d.seen == 0 {
		d.first = [2]code.Code{c0, c1}
	}
	d.Differ = d.Differ || !sameCode(c0, c1)
	for w, c := range [2]code.Code{c0, c1} {
		d.moved[w] = d.moved[w] || !sameCode(c, d.first[w])
		d.class[w] = d.class[w] || !sameClass(c, d.first[w])
	}
}

// Stuck reports whether a world has shown one outcome, or one class of outcomes where the other world has others, and
// so nothing about how its trials depend on each other.
func (d *Independence) Stuck() bool {
	if !d.Differ {
		return false
	}
	numbers := code.IsNumber(d.first[0]) && code.IsNumber(d.first[1]) && !d.class[0] && !d.class[1]
	for w := range d.moved {
		if !d.moved[w] || !numbers && !d.class[w] {
			return true
		}
	}
	return false
}

// Evidence returns the log of the weighted average of the ratios. Relations between the worlds are left out where their
// shared noise is accounted for.
func (d *Independence) Evidence(shared bool) float64 {
	all := math.Inf(-1)
	for bit := range bitWeights {
		each := d.ratios(bit, shared)
		for i := range Relations {
			all = eprocess.LogAdd(all, each[i]+evidenceWeights[bit].one[i])
		}
		for lag := range jointWeights {
			all = eprocess.LogAdd(all, each[2*lag]+each[2*lag+1]+evidenceWeights[bit].both[lag])
		}
	}
	return all
}

// ratios returns the log of the ratio of every relation for one bit.
func (d *Independence) ratios(bit int, shared bool) (each [RelationCount]float64) {
	d.settle()
	best := [2]float64{}
	for w := range best {
		best[w] = d.closed[w][bit] + bestCoin(d.later[w][bit])
	}
	for i := range Relations {
		r, k := &Relations[i], &d.counts[i][bit]
		each[i] = eprocess.KrichevskyTrofimov(k[0], k[1]) + eprocess.KrichevskyTrofimov(k[2], k[3]) - best[r.later]
		if shared && r.earlier != r.later {
			each[i] = math.Inf(-1)
		}
	}
	return each
}

// Each returns the log of the greater ratio of both bits for every relation.
func (d *Independence) Each(shared bool) (each [RelationCount]float64) {
	each = d.ratios(sideBit, shared)
	for i, e := range d.ratios(outerBit, shared) {
		each[i] = max(each[i], e)
	}
	return each
}

// bestCoin is the greatest log-probability that a coin gives to tosses.
func bestCoin(k [2]int32) (l float64) {
	n := float64(k[0]) + float64(k[1])
	for _, x := range k {
		if x > 0 {
			l += float64(x) * math.Log(float64(x)/n)
		}
	}
	return l
}

// Restart drops the trials and keeps the thresholds.
func (d *Independence) Restart() {
	d.seen, d.fresh, d.recent = 0, 0, [2][BitCount + 1]uint64{}
	d.counts = [RelationCount][BitCount][4]int32{}
	d.later, d.closed = [2][BitCount][2]int32{}, [2][BitCount]float64{}
	if d.until > 0 {
		d.until = longestStretch
	}
}

// State describes what is known of the dependence of trials.
func (d *Independence) State(c *state.Codec) {
	d.settle()
	c.All(&d.seen, &d.until, &d.Differ)
	c.Check(d.seen >= 0 && d.until >= 0)
	for w := range d.marks {
		m := &d.marks[w]
		c.All(&m.atom, &m.hasAtom, &m.middle, &m.far)
		state.Num(c, &m.known)
		latest := d.recent[w]
		for i := range maxLag { // the bits of the latest trials, the latest first
			var b uint8
			for bit := range latest {
				b |= uint8(latest[bit]>>i&1) << bit
			}
			state.Num(c, &b)
			c.Check(b < 2*known)
			for bit := range latest {
				d.recent[w][bit] = d.recent[w][bit]&^(1<<i) | uint64(b>>bit&1)<<i
			}
		}
		for bit := range d.later[w] {
			c.Float(&d.closed[w][bit])
			c.Tally(d.later[w][bit][:])
		}
		c.All(&d.first[w], &d.moved[w], &d.class[w])
	}
	for r := range d.counts {
		for bit := range d.counts[r] {
			c.Tally(d.counts[r][bit][:])
		}
	}
}
