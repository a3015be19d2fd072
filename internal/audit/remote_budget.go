package audit

// sessionsPerTurn is the number of sessions of one turn: see replay.Options.
const sessionsPerTurn = 2

// charge takes what the trials of another process used from the buckets; until that has flowed in again, turns wait.
func (b *Budget) charge(trials int, seconds float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance()
	trials = max(0, trials)
	b.trials.level -= float64(trials)
	b.seconds.level -= seconds
	b.count(trials, seconds)
}
