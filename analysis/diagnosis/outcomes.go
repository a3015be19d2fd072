package diagnosis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/response"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the causes that follow from the kind of the event, or from outcomes that are no numbers.

func (e *Evidence) seedOrCache() (c Cause, ok bool) {
	say := func(weight float64, text string) (Cause, bool) {
		return newCause(SeedOrCache, weight, withheld.Public(text), nil), true
	}
	const tell = " Send the query with another comment: a cache then gives another answer, a fixed seed the same."
	switch {
	case e.Constant:
		return say(1, "The answers of each dataset never vary."+tell)
	case e.Score == "repeat" && e.Kind != "beyond":
		return say(.97, "Some answers repeat earlier ones of the same dataset exactly."+tell)
	case e.Repeated && e.Kind != "beyond":
		return say(.55, "Answers repeat earlier ones exactly far more often than chance gives."+tell)
	}
	for i := range e.Slots {
		if e.Slots[i].Shared {
			return say(.9, "D0 and D1 get the same noise in the same trial, so that it follows from a seed.")
		}
	}
	return c, false
}

// byEvent returns the cause that the kind of the event names.
func (e *Evidence) byEvent() (c Cause, ok bool) {
	say := func(code Code, weight float64, text string) (Cause, bool) {
		return newCause(code, weight, withheld.Public(text), nil), true
	}
	if e.Score == "low_bit" && (e.Kind != "digits" || e.Tail == "any") {
		return c, false // whether there is a number at all
	}
	switch e.Score {
	case "low_bit", "fineness":
		if e.coarse() {
			return say(Rounding, .95, "The numbers of each dataset have a remainder of their own over 1: the noise is whole numbers, and the answer is not.")
		}
		return say(FloatingPoint, .95, "The lowest bits of the numbers show the answer before noise.")
	case "exact":
		switch {
		case e.Kind == "form":
			return say(AnswerForm, .95, "A part of a text of the answer, or of what the server says beside it, shows the dataset.")
		case e.Kind != "digits":
			return say(AnswerForm, .4, "Exact values, digits or characters of the answer, or of what the server says beside it, show the dataset.")
		case e.coarse():
			return say(Rounding, .9, "The digits of the numbers show the answer: the noise, or the answer, is on a coarse grid.")
		}
		return say(FloatingPoint, .9, "The lowest digits of the numbers show the answer before noise.")
	case "fraction":
		return say(Rounding, .95, "Noise hides the size of the answer, but not its remainder over a round number: the noise, or the answer, is on a coarse grid.")
	case "order":
		return say(RowOrder, .95, "The rows come in an order that depends on the exact data.")
	case "total":
		return say(ExactTotal, .95, "A sum of the columns or groups varies far less than the noise of its parts allows: their noise cancels out, and the sum shows the answer before noise.")
	case "aggregate":
		return say(Aggregate, .5, "Each group may have its noise, but their smallest or largest value, which group has it, or how many values differ shows the dataset.")
	}
	switch {
	case e.Kind == "beyond":
		return say(Support, .65, "Each dataset has answers beyond the range of the other's.")
	case e.Score == "rows" && e.Keyed:
		return say(PartitionSelection, .7, "The number of groups in the answer shows the dataset.")
	}
	return c, false
}

// cutOff looks for numbers that are cut off at a bound, which is another one in each world: the greatest or the least
// number comes far more often than any other one.
func (e *Evidence) cutOff() (c Cause, ok bool) {
	for i := range e.Slots {
		s := &e.Slots[i]
		for _, side := range [...]float64{1, -1} {
			d0, share0 := s.atEnd(0, side)
			d1, share1 := s.atEnd(1, side)
			if share0 == 0 || share1 == 0 || d0 == d1 {
				continue
			}
			return newCause(Support, .98, withheld.Sprintf("In %s the %s number of each dataset is %.3g %% of its answers on D0, %.3g %% on D1, and not the same: the answers are cut off there.",
				s.Where, map[float64]string{1: "greatest", -1: "least"}[side], 100*share0, 100*share1), map[string]float64{"share_d0": share0, "share_d1": share1}), true
		}
	}
	return c, false
}

// atEnd returns the greatest number of a world, or with side -1 the least, and its share; 0 if it is less than
// leastAtEnd of the numbers, not twice as frequent as any other one, or if there are few others.
func (s *Slot) atEnd(world int, side float64) (end, share float64) {
	counts := map[float64]int{}
	xs := s.finite(world)
	for k, x := range xs {
		if counts[x]++; k == 0 || side*x > side*end {
			end = x
		}
	}
	others := 0
	for x, n := range counts {
		if x != end {
			others = max(others, n)
		}
	}
	if share = float64(counts[end]) / float64(len(xs)); len(counts) < 4 || share < leastAtEnd || counts[end] < 2*others+4 {
		return end, 0
	}
	return end, share
}

// leastAtEnd is the least share of the answers at a bound at which they are cut off.
const leastAtEnd = .2

// errorOnData looks for failures in one world.
func (e *Evidence) errorOnData() (c Cause, ok bool) {
	if !e.leaks(e.Failures, e.Trials) {
		return c, false
	}
	return newCause(ErrorOnData, .99, withheld.Sprintf("%d of %d trials fail on D0, %d on D1.", e.Failures[0], e.Trials, e.Failures[1]),
		map[string]float64{"failures_d0": float64(e.Failures[0]), "failures_d1": float64(e.Failures[1]), "trials": float64(e.Trials)}), true
}

// coarse reports whether the numbers of a slot have the same remainder over 1 in each world, and another one in the
// other world.
func (e *Evidence) coarse() bool {
	for i := range e.Slots {
		var remainder [2]float64
		same := true
		for w := range 2 {
			xs := e.Slots[i].finite(w)
			for k, x := range xs {
				r := x - math.Floor(x)
				if k == 0 {
					remainder[w] = r
				}
				d := math.Abs(r - remainder[w])
				same = same && min(d, 1-d) < 1e-9*max(1, math.Abs(x))
			}
			same = same && len(xs) >= 2
		}
		if same && remainder[0] != remainder[1] {
			return true
		}
	}
	return false
}

// emptySet looks for NULL or a missing row in one world.
func (e *Evidence) emptySet() (c Cause, ok bool) {
	for i := range e.Slots {
		s := &e.Slots[i]
		k := s.Null
		if !e.Keyed {
			k[0], k[1] = k[0]+s.Absent[0], k[1]+s.Absent[1]
		}
		if e.leaks(k, s.kept()) {
			d0, d1 := s.shares(k)
			return newCause(EmptySet, .98, withheld.Sprintf("The answers have no value in %s in %.3g %% of the trials on D0 and in %.3g %% on D1.", s.Where, 100*d0, 100*d1),
				map[string]float64{"share_d0": d0, "share_d1": d1}), true
		}
	}
	return c, false
}

// notANumber looks for a NaN or an infinity in one world.
func (e *Evidence) notANumber() (c Cause, ok bool) {
	for i := range e.Slots {
		if s := &e.Slots[i]; e.leaks(s.NotFinite, s.kept()) {
			d0, d1 := s.shares(s.NotFinite)
			return newCause(NotANumber, .985, withheld.Sprintf("The answers in %s are NaN or infinite in %.3g %% of the trials on D0 and in %.3g %% on D1.", s.Where, 100*d0, 100*d1),
				map[string]float64{"share_d0": d0, "share_d1": d1}), true
		}
	}
	return c, false
}

// partitions looks for groups that are in the answers of one world alone, or more often.
func (e *Evidence) partitions() (c Cause, ok bool) {
	if !e.Keyed {
		return c, false
	}
	n, never := 0, 0
	var first *Slot
	for i := range e.Slots {
		s := &e.Slots[i]
		if s.Column > 0 || !e.leaks(s.Absent, s.kept()) {
			continue
		}
		if n++; first == nil {
			first = s
		}
		if s.Absent[0] == s.kept() || s.Absent[1] == s.kept() {
			never++
		}
	}
	if n == 0 {
		return c, false
	}
	d0, d1 := first.shares(first.Absent)
	return newCause(PartitionSelection, .98, withheld.Sprintf("The answers lack %s in %.3g %% of the trials on D0 and in %.3g %% on D1; %d of %d groups differ so.",
		first.Where, 100*d0, 100*d1, n, e.Groups),
		map[string]float64{"groups": float64(n), "groups_never_in_one_dataset": float64(never), "missing_d0": d0, "missing_d1": d1}), true
}

// response looks for randomised response: one value with a few texts, or two numbers.
func (e *Evidence) response() (c Cause, ok bool) {
	if len(e.Slots) != 1 || e.Constant || e.Keyed {
		return c, false
	}
	counts, ok := e.Slots[0].categories()
	if !ok {
		return c, false
	}
	top, total := [2]int{}, [2]int{}
	for w := range counts {
		for i, k := range counts[w] {
			if total[w] += k; k > counts[w][top[w]] {
				top[w] = i
			}
		}
	}
	if top[0] == top[1] || total[0] < 20 || total[1] < 20 {
		return c, false
	}
	k := len(counts[0])
	p := (float64(counts[0][top[0]]) + float64(counts[1][top[1]]) + .5) / (float64(total[0]+total[1]) + 1)
	loss, truth := response.LossOf(k, p), response.Truth(k, e.Epsilon)
	if !(loss > e.Epsilon) {
		return c, false
	}
	other := float64(counts[1][top[0]]) / float64(total[1])
	figures := map[string]float64{"answers": float64(k), "truth_probability": p, "truth_probability_of_claim": truth, "epsilon": loss}
	debiased := withheld.Text{}
	if d := response.Share(other, k, truth); !math.IsNaN(d) {
		figures["debiased_share"] = d
		debiased = withheld.Sprintf(" With the claim's probability the debiased share of D0's answer on D1 would be %.2f, and it must be 0.", d)
	}
	return newCause(RandomisedResponse, .93, withheld.Sprintf("The answer is the true one with probability %.3g, and the claim allows %.3g for %d answers: epsilon is about %.3g.%s",
		p, truth, k, loss, debiased), figures), true
}

// maxAnswers is the greatest number of answers of randomised response.
const maxAnswers = 16

// categories returns the counts of the few answers of a slot, aligned between the worlds: texts, or two different whole
// numbers.
func (s *Slot) categories() (counts [2][]int, ok bool) {
	numbers := [2][]float64{s.finite(0), s.finite(1)}
	switch {
	case len(numbers[0])+len(numbers[1]) == 0:
		return s.Texts, len(s.Texts[0]) >= 2 && len(s.Texts[0]) <= maxAnswers
	case !s.Discrete || s.Null != [2]int{} || s.Absent != [2]int{} || s.Errors != [2]int{}:
		return counts, false
	}
	var known []float64
	for w, xs := range numbers {
		counts[w] = make([]int, 2)
		for _, x := range xs {
			at := -1
			for i, y := range known {
				if x == y {
					at = i
				}
			}
			if at < 0 {
				if at = len(known); at == 2 {
					return counts, false
				}
				known = append(known, x)
			}
			counts[w][at]++
		}
	}
	return counts, len(known) == 2
}
