package bins

import "github.com/dpwatch/dpwatch/analysis/internal/code"

// Ranked are the numbers of a past in ascending order. What was sorted once is kept, so that only what came since then
// has to be. It follows from the past and is not part of the state.
type Ranked struct {
	Values []float64
	seen   int // codes of the past that were read
	stride int // of the pairs that were kept then
}

// Update adds the codes since the last time. It reads the whole past again if that was thinned.
func (r *Ranked) Update(past []code.Code, stride int, s *Scratch) {
	if r.stride != stride || r.seen > len(past) {
		*r = Ranked{Values: r.Values[:0], stride: stride}
	}
	s.Values = s.Values[:0]
	for _, c := range past[r.seen:] {
		if code.IsNumber(c) {
			s.Values = append(s.Values, c)
		}
	}
	r.seen = len(past)
	s.Sort(s.Values)
	r.Values = MergeSorted(r.Values, s.Values)
}

// MergeSorted puts sorted numbers into a sorted list, which it returns.
func MergeSorted(list, more []float64) []float64 {
	old, added := len(list)-1, len(more)-1
	list = append(list, more...)
	for at := len(list) - 1; added >= 0; at-- {
		if old >= 0 && list[old] > more[added] {
			list[at] = list[old]
			old--
		} else {
			list[at] = more[added]
			added--
		}
	}
	return list
}
