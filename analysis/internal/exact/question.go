package exact

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// reading is a way to read a result.
type reading uint8

// The readings.
const (
	seenBefore reading = iota // exact bytes: whether, how often and in which world they came before
	numberBin                 // a number among the first ones of its cell, compared by all digits
	character                 // a character, by its place from both ends, and the length
	residue                   // what all digits leave over small moduli
	together                  // whether two cells whose pasts coincide are equal, and their difference
	readings                  // their number
)

// spec is what the questions of a reading have in common.
type spec struct {
	name     string
	answers  int
	capacity int     // questions that are asked at a time
	block    int     // questions of one cell that come and go together
	prior    float64 // added to every count
}

var specs = [readings]spec{
	seenBefore: {"exact values", 8, 256, 1, .25},
	numberBin:  {"numbers", edgeCount + 2, 1024, 1, .5},
	character:  {"characters", 32, 512, 1, .2},
	residue:    {"remainders", 16, 256 / len(moduli) * len(moduli), len(moduli), .3},
	together:   {"pairs of cells", 8, 2 * maxCandidates, 2, .25},
}

// Limits of a tournament.
const (
	kept         = 64 // of the questions of a reading, the best stay when the slice moves
	most         = 4  // questions of a reading that a score is made of
	slicePairs   = 24 // pairs before the slice moves
	championStep = 4  // pairs before the best questions are chosen again
	leastGain    = 1  // nats that a question must have gained
	oddsLimit    = 6  // of the log-odds of one answer
	maxCount     = 1 << 11
)

// questions are those of a reading that are asked now, each in a slot.
type questions struct {
	*spec
	logs          *logTables
	used          int         // slots that were ever in use
	free          []int32     // first slots of blocks that are not in use now
	counts        [2][]uint16 // per world, slot and answer
	totals        [2][]uint16 // per world and slot
	gains         []float32   // see learn
	best          []bool      // per slot: whether it counts in a score
	leads         []int32     // the slots that do, best first
	slices, phase int         // into how many slices questions are divided, and which of them is asked
	cells         int         // questions of the latest result, with those that are not asked
	wanted        int         // questions that a result has at most, as far as known
	missed        bool        // a question found no room
}

// logTables are logarithms of counts with priors, for one reading.
type logTables struct {
	own, both       []float32 // of a count, and of the count of both worlds
	ownAll, bothAll []float32 // of totals
}

var allLogs = sync.OnceValue(func() (all [readings]logTables) {
	for r, s := range specs {
		table := func(size int, add float64) []float32 {
			t := make([]float32, size)
			for i := range t {
				t[i] = float32(math.Log(float64(i) + add))
			}
			return t
		}
		a := float64(s.answers)
		all[r] = logTables{table(maxCount+1, s.prior), table(2*maxCount+1, 2*s.prior), table(maxCount+1, a*s.prior), table(2*maxCount+1, 2*a*s.prior)}
	}
	return all
})

func newQuestions(r reading) questions {
	logs := allLogs()
	return questions{spec: &specs[r], logs: &logs[r], slices: 1}
}

// active reports whether a cell, or a part of it, is in the slice that is asked now.
func (q *questions) active(id uint64) bool {
	return q.slices == 1 || int(id>>32%uint64(q.slices)) == q.phase
}

// take returns the first slot of a block that is free, -1 for none.
func (q *questions) take() int32 {
	if n := len(q.free); n > 0 {
		at := q.free[n-1]
		q.free = q.free[:n-1]
		return at
	}
	if q.isFull() {
		return -1
	}
	at := q.used
	q.used += q.block
	if q.used > len(q.gains) {
		n := min(max(2*len(q.gains), 8*q.block), q.capacity)
		for w := range 2 {
			q.counts[w] = append(q.counts[w], make([]uint16, n*q.answers-len(q.counts[w]))...)
			q.totals[w] = append(q.totals[w], make([]uint16, n-len(q.totals[w]))...)
		}
		q.gains = append(q.gains, make([]float32, n-len(q.gains))...)
		q.best = append(q.best, make([]bool, n-len(q.best))...)
	}
	return int32(at)
}

// isFull reports whether there is no room for another block. Then there is a second slice at least.
func (q *questions) isFull() bool {
	full := len(q.free) == 0 && q.used+q.block > q.capacity
	q.missed = q.missed || full
	return full
}

// release frees a block.
func (q *questions) release(at int32) {
	for i := int(at); i < int(at)+q.block; i++ {
		for w := range 2 {
			clear(q.counts[w][i*q.answers : (i+1)*q.answers])
			q.totals[w][i] = 0
		}
		q.gains[i], q.best[i] = 0, false
	}
	q.free = append(q.free, at)
}

// odds returns the log-odds of an answer: how much more likely it is on D0 than on D1, by the past.
func (q *questions) odds(slot int32, answer uint8) float64 {
	i := int(slot)*q.answers + int(answer)
	x := q.logs.own[q.counts[0][i]] - q.logs.ownAll[q.totals[0][slot]] - q.logs.own[q.counts[1][i]] + q.logs.ownAll[q.totals[1][slot]]
	return min(max(float64(x), -oddsLimit), oddsLimit)
}

// learn counts an answer on a world. The gain of a question is that of predicting its answers by the counts of their
// world, and not by those of both: an answer that is a new one every time gains nothing, however many there are.
func (q *questions) learn(world int, slot int32, answer uint8) {
	i := int(slot)*q.answers + int(answer)
	own, other := &q.counts[world][i], q.counts[1-world][i]
	all, rest := &q.totals[world][slot], q.totals[1-world][slot]
	q.gains[slot] += q.logs.own[*own] - q.logs.ownAll[*all] - q.logs.both[int(*own)+int(other)] + q.logs.bothAll[int(*all)+int(rest)]
	*own++
	if *all++; *all >= maxCount {
		q.halve(int(slot))
	}
}

// halve halves the counts of a slot.
func (q *questions) halve(slot int) {
	for w := range 2 {
		all := uint16(0)
		for i := slot * q.answers; i < (slot+1)*q.answers; i++ {
			q.counts[w][i] /= 2
			all += q.counts[w][i]
		}
		q.totals[w][slot] = all
	}
}

// choose chooses the best questions.
func (q *questions) choose() {
	for _, i := range q.leads {
		q.best[i] = false
	}
	q.leads = q.leads[:0]
	var top [most]int32
	n := 0
	for i := range q.used {
		g := q.gains[i]
		if g <= leastGain || n == most && g <= q.gains[top[n-1]] {
			continue
		}
		at := min(n, most-1)
		for ; at > 0 && q.gains[top[at-1]] < g; at-- {
			top[at] = top[at-1]
		}
		top[at] = int32(i)
		n = min(n+1, most)
	}
	for _, i := range top[:n] {
		if q.gains[i] > q.gains[top[0]]/2 {
			q.leads = append(q.leads, i)
			q.best[i] = true
		}
	}
}

// gain is that of the best question.
func (q *questions) gain() float32 {
	if len(q.leads) == 0 {
		return 0
	}
	return q.gains[q.leads[0]]
}

// move sets the slice that is asked from now on, and returns the blocks that stay; none if nothing moves. start is set
// when a slice is chosen for the first time.
func (q *questions) move(pairs int, start bool) (stays map[int32]bool, moves bool) {
	need := max(1, (q.wanted+q.capacity-kept-1)/(q.capacity-kept))
	if q.missed {
		need = max(need, 2)
	}
	if need <= q.slices && q.slices == 1 || !start && pairs%slicePairs != 0 {
		return nil, false
	}
	q.slices, q.missed = max(q.slices, need), false
	q.phase = pairs / slicePairs % q.slices
	var blocks []int32
	for at := 0; at < q.used; at += q.block {
		if q.blockGain(int32(at)) > leastGain {
			blocks = append(blocks, int32(at))
		}
	}
	slices.SortStableFunc(blocks, func(a, b int32) int { return cmp.Compare(q.blockGain(b), q.blockGain(a)) })
	stays = map[int32]bool{}
	for _, at := range blocks[:min(len(blocks), kept/q.block)] {
		stays[at] = true
	}
	return stays, true
}

func (q *questions) blockGain(at int32) float32 {
	return slices.Max(q.gains[at : at+int32(q.block)])
}

func (q *questions) size() int {
	return 2*(cap(q.counts[0])+cap(q.counts[1])+cap(q.totals[0])+cap(q.totals[1])) + 5*cap(q.gains) + 4*cap(q.free)
}
