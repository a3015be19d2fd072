package supervise

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/link"
)

// countEvery is the interval at which the child receives the numbers of statements that were not sent to it.
const countEvery = time.Second

// counted holds the numbers that children have received.
type counted struct {
	mu   sync.Mutex // guards sent, the order of frames, and those fields of a child
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
			if c.sendCounts(w) != nil {
				return
			}
		}
	}
}

// countsFrame is what one frame reported to a child.
type countsFrame struct {
	statements map[string]uint64
	total      uint64 // of this frame and those before
}

// uncount takes back the counts of which the child, which has ended, had no lasting record: the next child gets them.
func (c *child) uncount() {
	counted := &c.s.counted
	counted.mu.Lock()
	defer counted.mu.Unlock()
	c.forget()
	for _, f := range c.frames {
		for reason, n := range f.statements {
			counted.sent[reason] -= min(n, counted.sent[reason])
		}
	}
}

// forget drops the frames of which the child has a lasting record. The caller holds counted.mu.
func (c *child) forget() {
	c.frames = slices.DeleteFunc(c.frames, func(f countsFrame) bool { return f.total <= c.settled.Counted })
}

// sendCounts sends the samples, which are lost if that fails, and what was counted since the last call that succeeded.
func (c *child) sendCounts(w *link.Writer) error {
	s := c.s
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
		for _, n := range since {
			c.counted += n
		}
		c.forget()
		c.frames = append(c.frames, countsFrame{since, c.counted})
	}
	return err
}
