package analysis

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// lead is the process at the claim: its bets are placed once per epoch, so that it can be looked at after any pair.
type lead struct {
	process
	bets   []bet // per entry and view
	now    []float64
	latest float64   // log-wealth at the last look
	most   []float64 // per place: the most that a pair adds to it, if anything; empty where it is not known yet
	then   []float64 // what places have at most after some pairs more
}

// begin places the bets of an epoch.
func (l *lead) begin(k *book, e *epoch) {
	l.process.begin(k, e)
	l.most = l.most[:0]
	l.place(k, e)
}

// place places the bets of an epoch. They follow from its tables.
func (l *lead) place(k *book, e *epoch) {
	n := 0
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		for v := range s.views {
			if n == len(l.bets) {
				l.bets = append(l.bets, bet{})
			}
			l.bets[n].place(l.Null, en, s, v, k)
			n++
		}
	}
	l.bets = l.bets[:n]
}

// current writes the log-wealth of every place, with what the unfinished epoch gained so far.
func (l *lead) current(k *book, e *epoch) []float64 {
	l.now = append(l.now[:0], l.logw...)
	l.each(k, e, l.now, (*bet).collect)
	return l.now
}

// each calls a method of every bet with its table and its part of a list that has one number for each place.
func (l *lead) each(k *book, e *epoch, places []float64, do func(*bet, *event.Table, []float64)) {
	n := 0
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		for v := range s.views {
			at := s.at + v*len(s.mix)
			do(&l.bets[n], en.table, places[at:at+len(s.mix)])
			n++
		}
	}
}

// look returns the log-wealth now.
func (l *lead) look(k *book, e *epoch) float64 {
	l.latest = eprocess.LogAdd(l.cash, eprocess.LogSumExp(l.current(k, e)))
	if l.latest > l.highest {
		l.highest = l.latest
	}
	return l.latest
}

// end closes the epoch.
func (l *lead) end(k *book, e *epoch) {
	copy(l.logw, l.current(k, e))
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		w := l.of(k, en.score)
		s.shareOut(w, e.share)
		l.sums[en.score] = eprocess.LogSumExp(w)
	}
	l.latest = l.total()
	if l.latest > l.highest {
		l.highest = l.latest
	}
}

// maxAhead bounds how many pairs go by between two looks.
const maxAhead = 1 << 10

// lowFor returns a number of pairs, at least 1, before which the wealth stays below a level whatever they are. It follows a look: no
// place grows by more than the most that a pair adds to it.
func (l *lead) lowFor(k *book, e *epoch, level float64) int {
	if len(l.most) == 0 {
		l.bound(k, e)
	}
	low := 1
	for n := 2; n <= maxAhead; n *= 4 {
		l.then = l.then[:0]
		for i, w := range l.now {
			l.then = append(l.then, w+float64(n)*l.most[i])
		}
		all := eprocess.LogSumExp(l.then)
		if !(all < level) || !(eprocess.LogAdd(l.cash, all) < level-1e-6) { // or it is no number
			break
		}
		low = n
	}
	return low
}

// bound finds the most that a pair adds to each place in an epoch.
func (l *lead) bound(k *book, e *epoch) {
	l.most = append(l.most, make([]float64, len(l.now))...)
	l.each(k, e, l.most, (*bet).most)
}

// standing is what a view of a score has at a moment of an epoch.
type standing struct {
	entry  entry
	wealth float64 // its logarithm
	events *event.Events
}

// standings returns what every view of an epoch has now, in the order of the entries.
func (l *lead) standings(k *book, e *epoch) (all []standing) {
	now := l.current(k, e)
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		for v := range s.views {
			w := eprocess.LogSumExp(now[s.at+v*len(s.mix) : s.at+(v+1)*len(s.mix)])
			all = append(all, standing{en, w, &l.bets[len(all)].events})
		}
	}
	return all
}

// size returns about how many bytes of memory the wealth and the bets take.
func (l *lead) size() int {
	n := l.process.size()
	for i := range l.bets {
		b := &l.bets[i]
		n += int(unsafe.Sizeof(bet{})) + 8*cap(b.odds) + int(unsafe.Sizeof(eprocess.Factors{}))*cap(b.factors)
	}
	return n
}
