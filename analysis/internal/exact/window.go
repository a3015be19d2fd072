package exact

import "math"

// Edges are those of the scores' bins: an event is that a score is beyond one of them.
var Edges = func() (edges []float64) {
	cuts := [...]float64{.25, .7, 1.5, 2.5, 4, 6, 9}
	for i := range cuts {
		edges = append(edges, math.Nextafter(-cuts[len(cuts)-1-i], 0)) // -9 is beyond -9
	}
	return append(edges, cuts[:]...)
}()

const scoreBins = 15

// window counts the scores of about the latest half of the pairs: by then the questions are known.
type window struct {
	start          int // pairs when the recent counts began
	pairs          int
	before, recent [2][scoreBins]int32
}

const firstWindow = 32

func (w *window) add(d0, d1 float64) {
	for world, s := range [2]float64{d0, d1} {
		w.recent[world][binOf(s)]++
	}
	w.pairs++
	if w.pairs >= max(firstWindow, 2*w.start) {
		w.before, w.recent, w.start = w.recent, [2][scoreBins]int32{}, w.pairs
	}
}

func binOf(score float64) int {
	n := 0
	for _, e := range Edges {
		if e <= score {
			n++
		}
	}
	return n
}

// Past adds the counts of earlier scores by bin, and returns the number of pairs. While few pairs have had scores, these
// are the ones that earlier answers to the best question would have had.
func (a *Answers) Past(counts *[2][]int32) (pairs int) {
	w := &a.window
	if best := a.best(); a.pairs <= wholePairs || w.pairs < firstWindow {
		if q := &a.asked[best]; len(q.leads) > 0 && q.gain() >= a.values.gain {
			return q.others(counts, min(a.pairs, wholePairs))
		}
	}
	for world := range counts {
		for b := range scoreBins {
			counts[world][b] += w.before[world][b] + w.recent[world][b]
		}
	}
	for b := range scoreBins {
		pairs += int(w.before[0][b] + w.recent[0][b])
	}
	return pairs
}

// others adds what the score of each answer to the best question would have been by all other answers, and of so many
// pairs at least.
func (q *questions) others(counts *[2][]int32, pairs int) int {
	slot := q.leads[0]
	for w := range counts {
		all := &q.totals[w][slot]
		pairs = max(pairs, int(*all))
	}
	for w := range counts {
		all := &q.totals[w][slot]
		counts[w][binOf(0)] += int32(pairs) - int32(*all)
		for k := range q.answers {
			n := &q.counts[w][int(slot)*q.answers+k]
			if *n == 0 {
				continue
			}
			*n--
			*all--
			b := binOf(q.odds(slot, uint8(k)))
			*n++
			*all++
			counts[w][b] += int32(*n)
		}
	}
	return pairs
}
