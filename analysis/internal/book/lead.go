package book

import (
	"iter"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Lead is the process at the claim: its bets are placed once per epoch, so that its wealth can be read after any pair.
type Lead struct {
	Process
	Bets   []Bet // per entry and view
	now    []float64
	Latest float64   // log-wealth at the last look
	most   []float64 // per place: the most that a pair adds to it, if anything; empty where it is not known yet
	then   []float64 // what places have at most after some pairs more
}

// Begin places the bets of an epoch.
func (l *Lead) Begin(k *Book, e *Epoch) {
	l.Process.Begin(k, e)
	l.most = l.most[:0]
	l.Place(k, e)
}

// Place places the bets of an epoch. They follow from its tables.
func (l *Lead) Place(k *Book, e *Epoch) {
	n := 0
	for _, en := range e.Entries {
		s := &k.stakes[en.Score]
		for v := range s.views {
			if n == len(l.Bets) {
				l.Bets = append(l.Bets, Bet{})
			}
			l.Bets[n].place(l.Null, en, s, v, k)
			n++
		}
	}
	l.Bets = l.Bets[:n]
}

// current writes the log-wealth of every place, with what the unfinished epoch gained so far.
func (l *Lead) current(k *Book, e *Epoch) []float64 {
	l.now = append(l.now[:0], l.Logw...)
	l.each(k, e, l.now, (*Bet).collect)
	return l.now
}

// each calls a method of every bet with its table and its part of a list that has one number for each place.
func (l *Lead) each(k *Book, e *Epoch, places []float64, do func(*Bet, *event.Table, []float64)) {
	n := 0
	for _, en := range e.Entries {
		s := &k.stakes[en.Score]
		for v := range s.views {
			at := s.at + v*len(s.mix)
			do(&l.Bets[n], en.Table, places[at:at+len(s.mix)])
			n++
		}
	}
}

// Now returns the log-wealth with what the unfinished epoch gained so far.
func (l *Lead) Now(k *Book, e *Epoch) float64 {
	return eprocess.LogAdd(l.cash, eprocess.LogSumExp(l.current(k, e)))
}

// Look records the log-wealth now, and returns it.
func (l *Lead) Look(k *Book, e *Epoch) float64 {
	l.Latest = l.Now(k, e)
	if l.Latest > l.Highest {
		l.Highest = l.Latest
	}
	return l.Latest
}

// End closes the epoch.
func (l *Lead) End(k *Book, e *Epoch) {
	copy(l.Logw, l.current(k, e))
	for _, en := range e.Entries {
		s := &k.stakes[en.Score]
		w := l.of(k, en.Score)
		s.shareOut(w, e.Share)
		l.sums[en.Score] = eprocess.LogSumExp(w)
	}
	l.Latest = l.Total()
	if l.Latest > l.Highest {
		l.Highest = l.Latest
	}
}

// maxAhead bounds how many pairs go by between two looks.
const maxAhead = 1 << 10

// LowFor returns a number of pairs, at least 1, before which the wealth stays below a level, whatever their outcomes.
// It must follow a look: no place grows by more than the most that a pair adds to it.
func (l *Lead) LowFor(k *Book, e *Epoch, level float64) int {
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
		if !(all < level) || !(eprocess.LogAdd(l.cash, all) < level-1e-6) { // or it is NaN
			break
		}
		low = n
	}
	return low
}

// bound finds the most that a pair adds to each place in an epoch.
func (l *Lead) bound(k *Book, e *Epoch) {
	l.most = append(l.most, make([]float64, len(l.now))...)
	l.each(k, e, l.most, (*Bet).most)
}

// Standing is what a view of a score has at a moment of an epoch.
type Standing struct {
	Entry  Entry
	Wealth float64 // its logarithm
	Events *event.Events
}

// Standings yields what every view of an epoch has now, in the order of the entries.
func (l *Lead) Standings(k *Book, e *Epoch) iter.Seq[Standing] {
	return func(yield func(Standing) bool) {
		now, n := l.current(k, e), 0
		for _, en := range e.Entries {
			s := &k.stakes[en.Score]
			for v := range s.views {
				w := eprocess.LogSumExp(now[s.at+v*len(s.mix) : s.at+(v+1)*len(s.mix)])
				if !yield(Standing{en, w, &l.Bets[n].events}) {
					return
				}
				n++
			}
		}
	}
}

// Size returns about how many bytes of memory the wealth and the bets take.
func (l *Lead) Size() int {
	n := l.Process.Size()
	for i := range l.Bets {
		b := &l.Bets[i]
		n += int(unsafe.Sizeof(Bet{})) + 8*cap(b.Odds) + int(unsafe.Sizeof(eprocess.Factors{}))*cap(b.Factors)
	}
	return n
}
