package keep

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// reopenSpool is the interval at which a spool that cannot be opened is tried again: another process may still use it.
const reopenSpool = 10 * time.Second

// spool is where observations and captured queries wait on disk while the ledger is away. It is safe for concurrent
// use.
type spool struct {
	open func() (*ledger.Spool, error) // nil = there is none
	log  *zap.Logger
	text func(error) string // see Keeper

	mu     sync.Mutex // guards the fields below
	opened *ledger.Spool
	tried  time.Time
	said   string // the last trouble
}

// Spool returns the spool, nil if there is none or it cannot be opened.
func (s *spool) Spool() *ledger.Spool {
	if s.open == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil || !s.tried.IsZero() && time.Since(s.tried) < reopenSpool {
		return s.opened
	}
	s.tried = time.Now()
	var err error
	if s.opened, err = s.open(); err == nil {
		return s.opened
	}
	s.opened = nil
	if text := s.text(err); text != s.said {
		s.said = text
		s.log.Error("the spool cannot be used: while the ledger is away, observations are kept in memory only", zap.String("error", text))
	}
	return nil
}

// CloseSpool closes the spool, if there is one.
func (s *spool) CloseSpool() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil {
		_ = s.opened.Close()
		s.opened = nil
	}
}

// SaySpoolFull logs that the spool cannot take more.
func (s *spool) SaySpoolFull(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := s.text(err); text != s.said {
		s.said = text
		s.log.Error("the spool cannot take what the ledger misses: the rest is counted as lost, or skipped as backlog (raise ledger.spool.max_bytes)", zap.String("error", text))
	}
}

// bytes returns the size of what waits in the spool.
func (s *spool) bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != nil {
		_, n = s.opened.Len()
	}
	return n
}
