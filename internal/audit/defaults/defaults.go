// Package defaults follows the initial settings of sessions: ALTER ROLE and ALTER DATABASE change those of sessions
// that begin later, and no statement of these shows it.
//
// In: queries with the beginnings of their sessions, and a function that reads the catalog. Out: the queries with the
// settings with which their sessions began; those that changed around that time are in doubt.
package defaults

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

const (
	share      = 20          // readings take at most 1/share of the time, because queries wait for them:
	maxPause   = time.Second // the pause after one is share times as long, within these limits
	minPause   = 10 * time.Millisecond
	maxPeriods = 64 // remembered; sessions that began before are taken to have begun in the first one
)

// Defaults remembers readings. It is safe for concurrent use; nil knows nothing.
type Defaults struct {
	read func(context.Context) ([]catalog.Default, error)

	mu      sync.Mutex // guards the fields below, and read
	periods []period   // oldest first
	next    time.Time  // the earliest beginning of the next reading
}

// period is a time in which all readings gave the same settings: the first one ended at from, the last one began at to.
type period struct {
	from, to time.Time
	settings []catalog.Default
}

// New returns Defaults that read with a function.
func New(read func(context.Context) ([]catalog.Default, error)) *Defaults {
	return &Defaults{read: read}
}

// Resolve adds the initial settings of its session to a query. If the session began after the last reading, it reads
// them again. What is not known, because they changed around the beginning or cannot be read, is in doubt.
func (d *Defaults) Resolve(ctx context.Context, q capture.Query) capture.Query {
	if d == nil || q.Began.IsZero() || q.Whole {
		return q
	}
	before, after := d.around(ctx, q.Began)
	if before == nil {
		return q
	}
	was, own := catalog.WithDefaults(before, q.User, nil), q.Settings
	var changed []string
	if after == nil {
		after = before
		changed = slices.Collect(maps.Keys(was))
	} else {
		is := catalog.WithDefaults(after, q.User, nil)
		for _, settings := range [...]map[string]string{was, is} {
			for name := range settings {
				v, existed := was[name]
				if w, exists := is[name]; v != w || existed != exists {
					changed = append(changed, name)
				}
			}
		}
	}
	changed = slices.DeleteFunc(changed, func(name string) bool { _, set := own[name]; return set })
	slices.Sort(changed)
	q.Settings, q.Whole, q.Began = catalog.WithDefaults(after, q.User, own), true, time.Time{}
	q.Doubt = q.Doubt.Add(capture.Doubt{Names: changed})
	return q
}

// around returns the settings of the periods before and after a time; both are the same if it is in one. Those that no
// reading gave are nil.
func (d *Defaults) around(ctx context.Context, at time.Time) (before, after []catalog.Default) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.periods); n == 0 || d.periods[n-1].to.Before(at) {
		d.again(ctx, at)
	}
	for i, p := range d.periods {
		switch {
		case p.to.Before(at):
			before = p.settings
			continue
		case i == 0 || !at.Before(p.from):
			before = p.settings
		}
		return before, p.settings
	}
	return before, nil
}

// again reads, after the pause, with a reading that begins after a time.
func (d *Defaults) again(ctx context.Context, at time.Time) {
	wait := time.NewTimer(max(time.Until(d.next), min(time.Until(at), maxPause))) // the relay's clock may be another
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return
	case <-wait.C:
	}
	began := time.Now()
	settings, err := d.read(ctx)
	d.next = time.Now().Add(min(max(share*time.Since(began), minPause), maxPause))
	if err != nil {
		return
	}
	if settings == nil {
		settings = []catalog.Default{}
	}
	if n := len(d.periods); n > 0 && slices.EqualFunc(d.periods[n-1].settings, settings, equal) {
		d.periods[n-1].to = began
		return
	}
	d.periods = append(d.periods, period{time.Now(), began, settings})
	d.periods = d.periods[max(0, len(d.periods)-maxPeriods):]
}

func equal(x, y catalog.Default) bool { return x.Role == y.Role && maps.Equal(x.Settings, y.Settings) }
