package replay

import (
	"context"
	"hash/maphash"
	"time"
)

// Pace decides when trials may run; package replay/throttle implements it. It must be safe for concurrent use.
type Pace interface {
	// Enter waits until one session may run trials, and returns how many of the requested n it may run. each is the
	// approximate time of a trial, 0 if unknown. The error is ctx's.
	Enter(ctx context.Context, n int, each time.Duration) (int, error)
	// Leave reports that these trials have run. slowdown is the mean time of a trial divided by the shortest mean time of
	// earlier trials of the same query.
	Leave(slowdown float64)
}

// maxBaselines bounds the number of queries whose shortest time is kept.
const maxLeastTimes = 1000

// baseline returns the key of a query in Player.least; the text is not kept.
func (p *Player) queryKey(query string) uint64 { return maphash.String(p.seed, query) }

// leastTime returns the shortest mean time of a trial of this query, 0 before the first.
func (p *Player) leastTime(query uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.least[query]
}

// slowdown divides the mean time of a trial by the shortest one of this query.
func (p *Player) recordMean(query uint64, mean time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	least, known := p.least[query]
	if !known || mean < least {
		if !known && len(p.least) >= maxLeastTimes {
			clear(p.least)
		}
		p.least[query] = mean
		return 1
	}
	return float64(mean) / float64(max(least, 1))
}
