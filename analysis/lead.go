package analysis

// lead is the process at the claim: its bets are placed once per epoch, so that it can be looked at after any pair.
type lead struct {
	process
	bets   []bet // per entry and view
	now    []float64
	latest float64 // log-wealth at the last look
}

// begin places the bets of an epoch.
func (l *lead) begin(k *book, e *epoch) {
	l.process.begin(k, e)
	n := 0
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		for v := range s.views {
			if n == len(l.bets) {
				l.bets = append(l.bets, bet{})
			}
			l.bets[n].place(l.null, en, s, v, k)
			n++
		}
	}
	l.bets = l.bets[:n]
}

// current writes the log-wealth of every place, with what the unfinished epoch gained so far.
func (l *lead) current(k *book, e *epoch) []float64 {
	l.now = append(l.now[:0], l.logw...)
	n := 0
	for _, en := range e.entries {
		s := &k.stakes[en.score]
		for v := range s.views {
			at := s.at + v*len(s.mix)
			l.bets[n].collect(en.table, l.now[at:at+len(s.mix)])
			n++
		}
	}
	return l.now
}

// look returns the log-wealth now.
func (l *lead) look(k *book, e *epoch) float64 {
	l.latest = logAdd(l.cash, logSumExp(l.current(k, e)))
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
		l.sums[en.score] = logSumExp(w)
	}
	l.latest = l.total()
	if l.latest > l.highest {
		l.highest = l.latest
	}
}
