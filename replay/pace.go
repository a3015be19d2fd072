package replay

import (
	"context"
	"hash/maphash"
	"time"
)

// Pace decides when trials may run; package replay/throttle implements it. It must be safe for concurrent use.
type Pace interface {
	// Enter waits until a session may run trials, and returns how many of the requested n it may run. each is the
	// approximate time of a trial, 0 if unknown. The error is that of ctx.
	Enter(ctx context.Context, n int, each time.Duration) (int, error)
	// Leave must be called exactly once after each successful Enter, even if no trial has run.
	Leave()
}

// maxLeastTimes bounds Player.least, which is cleared when it is full.
const maxLeastTimes = 1000

// queryKey returns a hash of a query's text, its key in Player.least, so that no text is kept.
func (p *Player) queryKey(query string) uint64 { return maphash.String(p.seed, query) }

// leastTime returns the shortest mean time of a trial of this query, 0 before the first.
func (p *Player) leastTime(query uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.least[query]
}

// recordMean records the mean time of some trials of a query if it is the shortest so far.
func (p *Player) recordMean(query uint64, mean time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	least, known := p.least[query]
	if known && mean >= least {
		return
	}
	if !known && len(p.least) >= maxLeastTimes {
		clear(p.least)
	}
	p.least[query] = mean
}
