package bins

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// This file chooses the categories that get their own bins.

// labelCount is how often a label came on each world.
type labelCount struct {
	label code.Label
	n     [2]int
}

func (c *labelCount) total() int { return c.n[0] + c.n[1] }

// Limits on counting labels. Beyond maxCounted the most frequent half of them is kept: of n outcomes, a label that
// makes up several in maxCounted is among them, whenever it comes.
const (
	maxCounted = 2048
	fewLabels  = 16 // up to here a list is searched from its start
)

// ResetLabels starts a new count of labels.
func (s *Scratch) ResetLabels() {
	s.labels = s.labels[:0]
	clear(s.places)
}

// CountLabel counts an outcome of a world.
func (s *Scratch) CountLabel(l code.Label, world int) {
	if len(s.labels) <= fewLabels {
		for i := range s.labels {
			if s.labels[i].label == l {
				s.labels[i].n[world]++
				return
			}
		}
	} else if i, ok := s.places[l]; ok {
		s.labels[i].n[world]++
		return
	}
	if len(s.labels) == maxCounted {
		s.sortLabels()
		s.labels = s.labels[:maxCounted/2]
		s.placeLabels()
	}
	c := labelCount{label: l}
	c.n[world]++
	s.labels = append(s.labels, c)
	switch n := len(s.labels); {
	case n == fewLabels+1:
		s.placeLabels()
	case n > fewLabels:
		s.places[l] = n - 1
	}
}

func (s *Scratch) placeLabels() {
	if s.places == nil {
		s.places = map[code.Label]int{}
	}
	clear(s.places)
	for i := range s.labels {
		s.places[s.labels[i].label] = i
	}
}

// sortLabels sorts by frequency, of equals by label.
func (s *Scratch) sortLabels() {
	slices.SortFunc(s.labels, func(x, y labelCount) int {
		if d := y.total() - x.total(); d != 0 {
			return d
		}
		return cmp.Compare(x.label, y.label)
	})
}

// chooseLabels appends the labels that get a bin, at most the given number: all, if they are few enough. Of more it
// takes those that are more than twice as frequent as the first that has no place, and then those whose counts on both
// worlds differ by more than chance makes them among as many labels of their frequency. The others share a bin: which
// of many equally rare ones is slightly more frequent has no meaning. From LeastCommon pairs on, a text or an error
// that came once gets no bin: it stands for those that have not come yet.
func (s *Scratch) chooseLabels(dst []code.Label, most, pairs int) []code.Label {
	s.sortLabels()
	if len(s.labels) <= most {
		for i := range s.labels {
			if c := &s.labels[i]; c.total() > 1 || c.label.Category() < code.FirstText || pairs < LeastCommon {
				dst = append(dst, c.label)
			}
		}
		return dst
	}
	frequent := 0
	for least := 2 * s.labels[most].total(); frequent < most && s.labels[frequent].total() > least; frequent++ {
		dst = append(dst, s.labels[frequent].label)
	}
	telling := s.labels[frequent:]
	rank := frequent
	telling = slices.DeleteFunc(telling, func(c labelCount) bool {
		rank++
		return c.gap() <= leastTelling+2*math.Log(float64(rank))
	})
	slices.SortStableFunc(telling, func(x, y labelCount) int { return cmp.Compare(y.gap(), x.gap()) })
	for i := range telling[:min(len(telling), most-frequent)] {
		dst = append(dst, telling[i].label)
	}
	return dst
}

// leastTelling is the squared gap beyond 2 ln(rank) from which a rare label gets a bin: where the worlds are alike,
// chance makes one of as many do so about once in ten times.
const leastTelling = 1

// gap is the squared difference of a label's counts in standard errors.
func (c *labelCount) gap() float64 {
	d := float64(c.n[0] - c.n[1])
	return d * d / float64(c.total())
}

// CommonestLabel returns the label that was counted most, of equals the one that came first, and how often.
func (s *Scratch) CommonestLabel() (l code.Label, most int) {
	for i := range s.labels {
		if c := &s.labels[i]; c.total() > most {
			most, l = c.total(), c.label
		}
	}
	return l, most
}
