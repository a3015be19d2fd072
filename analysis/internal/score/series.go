package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Series is one score over the trials: the codes seen, how they are binned, and the counts of the current block.
type Series struct {
	kind         *kind
	statistic    statistic
	Slot         int
	id           book.ScoreID
	staked       bool // has wealth in the book
	Binner       bins.Binner
	learned      int            // pairs behind the bins
	Table        *event.Table   // nil while nothing is bet
	Past         [2][]code.Code // kept pairs, oldest first
	watch        watch
	Independence dependence.Independence
	Shared       bool // the two worlds share their noise: bet with pairs only
}

// Name returns the name of the score in reports.
func (s *Series) Name() string { return s.kind.name }

// IsSlot reports whether the score is the value of one column of one group.
func (s *Series) IsSlot() bool { return s.kind == slotScore }

// IsLaw reports whether the bins are of the values of the only slot, by laws fitted to them.
func (s *Series) IsLaw() bool { return s.kind == lawScore }

// OfOneResult reports whether the bins of the score are events of one result, whatever the other results are.
func (s *Series) OfOneResult() bool { return !s.kind.looksBack && s.kind.prior != LawPrior }

// Plain reports whether an event is not a part of a range of numbers.
func (s *Series) Plain(set uint64) bool {
	numbers := uint64(1)<<s.Binner.Numeric() - 1
	return s.kind != slotScore && s.kind.keeps ||
		set&numbers == 0 || set&numbers == numbers
}

// Restart restarts the tests of the trials' independence.
func (s *Series) Restart() {
	s.watch = watch{}
	s.Independence.Restart()
}

// count adds one pair of codes to the current block.
func (s *Series) count(c0, c1 code.Code) {
	t := s.Table
	if t == nil {
		return
	}
	b0, b1 := s.Binner.Bin(c0), s.Binner.Bin(c1)
	if t.Paired != nil {
		t.Paired.Add(b0, b1)
		return
	}
	t.During[0][b0]++
	t.During[1][b1]++
}

// push adds one pair of codes to the past.
func (s *Series) push(c0, c1 code.Code) {
	s.Past[0] = append(s.Past[0], c0)
	s.Past[1] = append(s.Past[1], c1)
}

// reserve makes room in a full past, by doubling, for at most the given number of pairs.
func (s *Series) reserve(most int) {
	for w, p := range s.Past {
		if len(p) == cap(p) && len(p) < most {
			s.Past[w] = slices.Grow(p, min(max(len(p), 8), most-len(p)))
		}
	}
}

// thin drops every other kept pair.
func (s *Series) thin() {
	for w, p := range s.Past {
		n := 0
		for i := 0; i < len(p); i += 2 {
			p[n] = p[i]
			n++
		}
		s.Past[w] = p[:n]
	}
}

// relearn sets the bins from the kept pairs and counts these again.
func (s *Series) relearn(pairs, most int, sc *bins.Scratch) {
	s.Binner = bins.Binner{}
	s.Binner.Learn(s.Past, most, sc)
	s.learned = pairs
	s.Table = event.NewTable(s.Binner.Numeric(), s.Binner.Bins())
	s.Table.Lopsided = s.kind.lopsided || s.kind == slotScore && s.rare()
	s.recount()
}

// relearnFrom does the same with the scores of the past, which are not kept.
func (s *Series) relearnFrom(past [2][]code.Code, pairs int, sc *bins.Scratch) {
	s.Past = past
	s.relearn(pairs, maxSpecialBins, sc)
	s.Past = [2][]code.Code{}
}

// recount fills the past of the table from the kept pairs.
func (s *Series) recount() {
	for w, codes := range s.Past {
		for _, c := range codes {
			s.Table.Before[w][s.Binner.Bin(c)]++
		}
	}
	s.Table.Pairs = len(s.Past[0])
}

// turn starts the table of the next block. The bins are learned again while there are few pairs and whenever the past
// has doubled, and in every block if categories compete for bins: a text that gets a bin earlier gives more evidence.
func (s *Series) turn(pairs, most int, sc *bins.Scratch) {
	if s.Table == nil || pairs < 64 || pairs >= 2*s.learned || s.Binner.Crowded {
		s.relearn(pairs, most, sc)
		return
	}
	s.carry()
}

// carry starts the table of the next block with the same bins: what was counted becomes the past.
func (s *Series) carry() {
	old := s.Table
	s.Table = old.WithPast()
	s.Table.Fixed, s.Table.Lopsided = old.Fixed, old.Lopsided
	for w := range old.During {
		for b, n := range old.During[w] {
			s.Table.Before[w][b] += n
		}
	}
	s.Table.Pairs += old.Counted()
}

// watch detects noise that the two worlds of a slot share: the same difference (or the same sum) in every pair
// although the values vary. Under independent noise that has a probability below 10^-6.
type watch struct {
	seen       int
	first      [2]code.Code
	last       code.Code
	changes    int // pairs in which the value on D0 was not that of the pair before
	precise    int // of them, those whose change is more than 2^20 times the rounding error
	difference bool
	sum        bool
}

// Evidence that is required before noise counts as shared.
const (
	preciseChanges = 2  // of continuous values
	coarseChanges  = 20 // of others: a coincidence has a probability of a half at most
)

// add adds a pair and reports whether the noise is shared.
func (w *watch) add(c0, c1 code.Code) bool {
	w.seen++
	if w.seen == 1 {
		w.first, w.last = [2]code.Code{c0, c1}, c0
		w.difference, w.sum = true, true
		return false
	}
	if !w.difference && !w.sum {
		return false
	}
	changed := math.Float64bits(c0) != math.Float64bits(w.last)
	if code.IsNumber(c0) && code.IsNumber(c1) && code.IsNumber(w.first[0]) && code.IsNumber(w.first[1]) {
		x := [...]float64{c0, c1, w.first[0], w.first[1], w.last}
		if max(math.Abs(x[0]), math.Abs(x[1]), math.Abs(x[2]), math.Abs(x[3])) > 0x1p1000 { // sums must not overflow
			for i := range x {
				x[i] *= 0x1p-30
			}
		}
		rounding := 8 * 0x1p-53 * (math.Abs(x[0]) + math.Abs(x[1]) + math.Abs(x[2]) + math.Abs(x[3]))
		w.difference = w.difference && math.Abs((x[0]-x[1])-(x[2]-x[3])) <= rounding
		w.sum = w.sum && math.Abs((x[0]+x[1])-(x[2]+x[3])) <= rounding
		if changed && code.IsNumber(w.last) && math.Abs(x[0]-x[4]) > 0x1p20*rounding && code.SignificantBits(c0) > 24 {
			w.precise++
		}
	} else {
		same := math.Float64bits(c0) == math.Float64bits(c1)
		sameBefore := math.Float64bits(w.first[0]) == math.Float64bits(w.first[1])
		w.difference = w.difference && same && sameBefore
		w.sum = false
	}
	if changed {
		w.changes++
	}
	w.last = c0
	return (w.difference || w.sum) && (w.precise >= preciseChanges || w.changes >= coarseChanges)
}
