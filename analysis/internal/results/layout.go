package results

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/textnumber"
)

// Layout determines how a result is read: which columns make the group key and which are measures.
type Layout struct {
	Width    int               // columns of a result of the expected shape; -1 when none was seen
	Keys     []int             // key columns, ascending
	Measures []int             // the other columns, once for each number of a text; empty: only presence counts
	Forms    []textnumber.Form // per measure: how the texts of its column are read; zero for the second number and so on
	Keyed    bool              // false: results have one row and no key, the partition is "()"
	ordinal  bool              // keys come more than once in a result: the n-th row of a key is a separate key
	names    []string
}

// Equal reports whether two layouts read results alike.
func (l *Layout) Equal(m *Layout) bool {
	return l.Width == m.Width && l.Keyed == m.Keyed && l.ordinal == m.ordinal && slices.Equal(l.Keys, m.Keys) && l.equalForms(m)
}

// Cells is the number of slots per key.
func (l *Layout) Cells() int { return max(1, len(l.Measures)) }

// WidthOf returns the number of columns of a result, -1 for an error and for a result without any description.
func WidthOf(o *outcome.Outcome) int {
	switch {
	case o.Failed():
		return -1
	case len(o.Columns) > 0:
		return len(o.Columns)
	case len(o.Rows) > 0:
		return len(o.Rows[0])
	}
	return -1
}

// Learn chooses the layout from results seen. Keys recur over the trials and are unique within a result; floats
// are never keys; a noisy count that happens to be unique does not recur.
func Learn(seen []*outcome.Outcome) Layout {
	l := Layout{Width: commonWidth(seen)}
	if l.Width < 0 {
		return l
	}
	var shaped []*outcome.Outcome
	rows := 0
	for _, o := range seen {
		if WidthOf(o) == l.Width {
			shaped = append(shaped, o)
			rows = max(rows, len(o.Rows))
			if l.names == nil && len(o.Columns) == l.Width {
				for _, c := range o.Columns {
					l.names = append(l.names, c.Name)
				}
			}
		}
	}
	if l.names == nil {
		l.names = make([]string, l.Width)
	}
	if rows > 1 {
		l.Keyed = true
		l.Keys, l.ordinal = learnKeys(shaped, l.Width)
	}
	for c := range l.Width {
		if !slices.Contains(l.Keys, c) {
			l.addMeasure(shaped, c)
		}
	}
	return l
}

// commonWidth returns the number of columns that most results have; of equals the one seen first.
func commonWidth(seen []*outcome.Outcome) int {
	best, bestN := -1, 0
	for i, o := range seen {
		w := WidthOf(o)
		if w < 0 {
			continue
		}
		n := 0
		for _, p := range seen[i:] {
			if WidthOf(p) == w {
				n++
			}
		}
		if n > bestN {
			best, bestN = w, n
		}
	}
	return best
}

// Limits on the search for keys.
const (
	maxKeyCandidates = 8   // columns that are tried
	maxKeyRows       = 512 // the most rows of a result that are used
	maxTurnover      = 3   // distinct keys over all results per row of the largest: above it they recur only if they are rare
	leastRecurring   = .2  // the part of rare keys' appearances of which another result has the key too
	leastCollisions  = 2   // duplicates within results that numbers drawn alike would have had, and rare keys have not
)

// learnKeys returns the set of columns that makes the best key: unique if possible, recurring most, smallest,
// leftmost. None and ordinal when no column can be a key: rows are then taken by position.
func learnKeys(seen []*outcome.Outcome, width int) (keys []int, ordinal bool) {
	var columns []int
	for c := range width {
		if len(columns) < maxKeyCandidates && mayBeKey(seen, c) {
			columns = append(columns, c)
		}
	}
	type choice struct {
		columns    []int
		duplicates bool
		turnover   float64
	}
	best := choice{duplicates: true, turnover: math.Inf(1)}
	for _, set := range subsets(columns) {
		dup, turnover, rare := recurrence(seen, set)
		if turnover > maxTurnover && !rare {
			continue
		}
		better := best.columns == nil
		switch {
		case better:
		case dup != best.duplicates:
			better = !dup
		case turnover*1.25 < best.turnover:
			better = true
		case best.turnover*1.25 < turnover:
		default:
			better = len(set) < len(best.columns)
		}
		if better {
			best = choice{set, dup, turnover}
		}
	}
	return best.columns, best.duplicates
}

// mayBeKey reports whether a column holds what a key may be made of: the declared discrete types, and text or booleans
// whatever was declared.
func mayBeKey(seen []*outcome.Outcome, c int) bool {
	some := false
	for _, o := range seen {
		discrete := c < len(o.Columns) && o.Columns[c].Discrete
		for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
			if c >= len(row) {
				continue
			}
			switch row[c].Kind {
			case outcome.Number:
				if !discrete {
					return false
				}
				some = true
			case outcome.Text, outcome.Bool:
				some = true
			}
		}
	}
	return some
}

// subsets returns the sets of one to three columns, small ones first, and the set of all.
func subsets(columns []int) [][]int {
	var sets [][]int
	for _, a := range columns {
		sets = append(sets, []int{a})
	}
	for i, a := range columns {
		for _, b := range columns[i+1:] {
			sets = append(sets, []int{a, b})
		}
	}
	for i, a := range columns {
		for j, b := range columns[i+1:] {
			for _, c := range columns[i+j+2:] {
				sets = append(sets, []int{a, b, c})
			}
		}
	}
	if len(columns) > 3 {
		sets = append(sets, columns)
	}
	return sets
}

// recurrence reports whether a key comes twice in a result, the number of distinct keys over all results per key of the
// largest, and whether the keys are rare ones: each is in few results, and yet they come again, never twice in one
// result. Noisy numbers would come twice: of these many duplicates must be missing.
func recurrence(seen []*outcome.Outcome, columns []int) (duplicates bool, turnover float64, rare bool) {
	all := map[string]int{} // in how many results
	most, pairs, numbers := 0, 0., false
	var buf []byte
	for _, o := range seen {
		own := map[string]bool{}
		for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
			buf = appendKey(buf[:0], row, columns)
			if own[string(buf)] {
				duplicates = true
				continue
			}
			own[string(buf)] = true
			all[string(buf)]++
			for _, c := range columns {
				numbers = numbers || c < len(row) && row[c].Kind == outcome.Number
			}
		}
		most = max(most, len(own))
		pairs += float64(len(own)) * float64(len(own)-1) / 2
	}
	if most == 0 {
		return duplicates, math.Inf(1), false
	}
	appearances, again, alike := 0., 0., 0.
	for _, n := range all {
		k := float64(n)
		appearances, alike = appearances+k, alike+k*(k-1)
		if n > 1 {
			again += k
		}
	}
	collisions := pairs * alike / max(1, appearances*(appearances-1))
	rare = !duplicates && again >= leastRecurring*appearances && (!numbers || collisions >= leastCollisions)
	return duplicates, float64(len(all)) / float64(most), rare
}

// appendKey appends a binary form of a row's key, unambiguous but for the hashes of long texts.
func appendKey(b []byte, row []outcome.Value, columns []int) []byte {
	for _, c := range columns {
		if c >= len(row) {
			b = append(b, 0xFF)
			continue
		}
		v := &row[c]
		b = append(b, byte(v.Kind))
		switch v.Kind {
		case outcome.Number, outcome.Text, outcome.Bool:
			if v.Text == "" && v.Kind != outcome.Text {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Num))
				continue
			}
			text := code.Brief(v.Text)
			b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
			b = append(b, text...)
		}
	}
	return b
}
