package keep

import (
	"context"
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

	mu    sync.Mutex // guards the fields below
	spool *ledger.Spool
	tried time.Time
	said  string // the last trouble
}

// Spool returns the spool, nil if there is none or it cannot be opened.
func (k *Keeper) Spool() *ledger.Spool {
	s := &k.spool
	if s.open == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool != nil || !s.tried.IsZero() && time.Since(s.tried) < reopenSpool {
		return s.spool
	}
	s.tried = time.Now()
	var err error
	if s.spool, err = s.open(); err == nil {
		return s.spool
	}
	s.spool = nil
	if text := k.text(err); text != s.said {
		s.said = text
		k.log.Error("the spool cannot be used: while the ledger is away, observations are kept in memory only", zap.String("error", text))
	}
	return nil
}

// CloseSpool closes the spool, if there is one.
func (k *Keeper) CloseSpool() {
	s := &k.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool != nil {
		_ = s.spool.Close()
		s.spool = nil
	}
}

// SaySpoolFull logs that the spool cannot take more.
func (k *Keeper) SaySpoolFull(err error) {
	k.spool.mu.Lock()
	defer k.spool.mu.Unlock()
	if text := k.text(err); text != k.spool.said {
		k.spool.said = text
		k.log.Error("the spool cannot take what the ledger misses: the rest is counted as lost, or skipped as backlog (raise ledger.spool.max_bytes)", zap.String("error", text))
	}
}

// SpoolObservations moves observations that could not be written to the spool, as far as it has room.
func (k *Keeper) SpoolObservations() {
	k.recording.Lock()
	defer k.recording.Unlock()
	s := k.Spool()
	if s == nil {
		return
	}
	for b := k.batch(); b != nil && b.File == "" && b.Captured == 0; b = k.batch() { // what comes from a file, or from another process, is still there
		b.WithoutTexts()
		if err := s.PutBatch(*b); err != nil {
			k.SaySpoolFull(err)
			return
		}
		k.done()
	}
}

// recordSpooled writes the spooled observations. The caller holds k.recording.
func (k *Keeper) recordSpooled(ctx context.Context) error {
	s := k.Spool()
	if s == nil {
		return nil
	}
	for {
		name, b, err := s.FirstBatch()
		switch {
		case err != nil:
			k.log.Error("observations in the spool cannot be written to the ledger", zap.String("error", k.text(err)))
			continue
		case name == "":
			return nil
		}
		if b.Term == 0 {
			b.File = name
		}
		if err = k.Writer().Record(ctx, b); err != nil {
			return err
		}
		if err := s.Remove(name); err != nil {
			k.log.Warn("a spooled file cannot be removed; it does not count twice", zap.String("error", k.text(err)))
		}
	}
}
