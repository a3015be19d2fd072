package audit

import (
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
)

// useDesk calls a function with the desk, which one goroutine at a time may use: the function must not keep it.
type useDesk = func(func(*desk.Desk))

// sharedDesk is the desk of an auditor. New alone knows it: all others have its method use.
type sharedDesk struct {
	mu      sync.Mutex
	desk    *desk.Desk
	now     func() time.Time
	env     func() *environment.Environment
	perform func(desk.Effect)
}

// use calls f with the desk, and performs the effects of its decisions before the next use, so that they happen in
// order. It does so also if f panics.
func (s *sharedDesk) use(f func(d *desk.Desk)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desk.At(s.now(), time.Now(), s.env())
	defer s.drain()
	f(s.desk)
}

func (s *sharedDesk) drain() {
	for _, e := range s.desk.Drain() {
		s.perform(e)
	}
}
