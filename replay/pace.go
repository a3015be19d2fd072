package replay

import (
	"context"
	"hash/maphash"
	"sync"
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

// means are the shortest mean times of trials, by query.
type means struct {
	seed     maphash.Seed
	mu       sync.Mutex // guards shortest
	shortest map[uint64]time.Duration
}

func newMeans() means { return means{seed: maphash.MakeSeed(), shortest: map[uint64]time.Duration{}} }

// maxMeans bounds means.shortest, which is cleared when it is full.
const maxMeans = 1000

// key returns a hash of a query's text, so that no text is kept.
func (m *means) key(query string) uint64 { return maphash.String(m.seed, query) }

// least returns the shortest mean time of a trial of this query, 0 before the first.
func (m *means) least(query uint64) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shortest[query]
}

// record records the mean time of some trials of a query if it is the shortest so far.
func (m *means) record(query uint64, mean time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	least, known := m.shortest[query]
	if known && mean >= least {
		return
	}
	if !known && len(m.shortest) >= maxMeans {
		clear(m.shortest)
	}
	m.shortest[query] = mean
}
