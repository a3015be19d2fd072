package supervise

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/link"
)

// countEvery is the interval at which the child receives the numbers of statements that were not sent to it.
const countEvery = time.Second

// counted holds the numbers that children have received.
type counted struct {
	mu   sync.Mutex // guards sent, and the order of frames
	sent map[string]uint64
}

// counts sends the numbers to the child until ctx ends or the link breaks.
func (c *child) counts(ctx context.Context, w *link.Writer) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.s.sendCounts(w) != nil {
				return
			}
		}
	}
}

// sendCounts sends the samples, which are lost if that fails, and what was counted since the last call that succeeded.
func (s *Supervisor) sendCounts(w *link.Writer) error {
	if s.opt.Uncaptured == nil {
		return nil
	}
	s.counted.mu.Lock()
	defer s.counted.mu.Unlock()
	now, since := s.opt.Uncaptured(), map[string]uint64{}
	for reason, n := range now {
		if n > s.counted.sent[reason] {
			since[reason] = n - s.counted.sent[reason]
		}
	}
	if samples := s.opt.Samples.Take(); len(samples) > 0 {
		payload, err := json.Marshal(samples)
		if err == nil {
			err = w.Send(link.Samples, payload)
		}
		if err != nil {
			return err
		}
	}
	if len(since) == 0 {
		return nil
	}
	payload, err := json.Marshal(since)
	if err == nil {
		err = w.Send(link.Counts, payload)
	}
	if err == nil {
		s.counted.sent = now
	}
	return err
}
