package replay

import (
	"context"
	"hash/maphash"
	"time"
)

// Pace says when trials may run; package replay/throttle has one. It is used by several goroutines.
type Pace interface {
	// Enter waits until one session may run trials, and returns how many of the n that it asks for. each is about how
	// long a trial takes, 0 when that is not known. The error is ctx's.
	Enter(ctx context.Context, n int, each time.Duration) (int, error)
	// Leave tells that these trials ran. slowdown is how long each took as a multiple of the least time that trials of
	// the same query took before.
	Leave(slowdown float64)
}

// maxBaselines bounds the queries whose least time is remembered.
const maxBaselines = 1000

// baseline identifies a query among the least times, without keeping its text.
func (p *Player) baseline(query string) uint64 { return maphash.String(p.seed, query) }

// leastTime returns the least mean time of a trial of this query, 0 before the first.
func (p *Player) leastTime(query uint64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.least[query]
}

// slowdown compares the mean time of a trial with the least seen of this query.
func (p *Player) slowdown(query uint64, mean time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	least, known := p.least[query]
	if !known || mean < least {
		if !known && len(p.least) >= maxBaselines {
			clear(p.least)
		}
		p.least[query] = mean
		return 1
	}
	return float64(mean) / float64(max(least, 1))
}
