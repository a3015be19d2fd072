// Package environment reads what trials depend on besides the query: the copies, the engine on which trials run and the
// one that clients use, the label of the last deploy, and the catalogs. It publishes the first four as one immutable
// Environment.
package environment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/engine"
)

// Environment is what was read last. It is immutable.
type Environment struct {
	Copies             string           // their version; "" = not read yet
	Twin               bool             // there is a twin of D0 that can be used, which is part of the version
	Guard              bool             // and a second one, which guards control audits
	Shadow, Production *engine.Snapshot // the engine of the trials, and that of the clients; nil = not read yet, or unknown
	Label              string           // of the last deploy; "" = none
	ShadowKnown        bool             // Shadow can be read
	// ShadowRead and ProductionRead are when the last reading of each began that had a result, and Read when the last
	// one of Copies and Shadow together began.
	ShadowRead, ProductionRead, Read time.Time
}

// Version returns the version of the engine for a query that makes the given calls; "" = not known yet.
func (e *Environment) Version(calls engine.Calls) string {
	if e.ShadowKnown && e.Shadow == nil {
		return ""
	}
	text := e.Label + "\x00"
	if e.Shadow != nil {
		text += e.Shadow.Epoch(calls)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Sources read the parts of an Environment. Engine and Production may be nil: then they are not known.
type Sources struct {
	Copies             func(context.Context) (Copies, error)
	Engine, Production func(context.Context) (*engine.Snapshot, error)
}

// Copies is what a Source reads of the copies: see Environment.
type Copies struct {
	Version     string
	Twin, Guard bool
}

// Reader reads an Environment and publishes it. It is safe for concurrent use.
type Reader struct {
	sources Sources
	changed func(before, after *Environment)
	now     atomic.Pointer[Environment]
	mu      sync.Mutex // guards publishing
}

// New returns a Reader. It calls changed after the copies or the engine of the trials were read that are not those
// before, also when none were read before.
func New(sources Sources, changed func(before, after *Environment)) *Reader {
	r := &Reader{sources: sources, changed: changed}
	r.now.Store(&Environment{ShadowKnown: sources.Engine != nil})
	return r
}

// Now returns what was read last.
func (r *Reader) Now() *Environment { return r.now.Load() }

// publish applies a change to the present Environment.
func (r *Reader) publish(change func(*Environment)) (before, after *Environment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before = r.now.Load()
	e := *before
	change(&e)
	r.now.Store(&e)
	return before, &e
}

// ReadCopies reads the version of the copies.
func (r *Reader) ReadCopies(ctx context.Context) error {
	now, err := r.sources.Copies(ctx)
	if err != nil {
		return err
	}
	before, after := r.publish(func(e *Environment) { e.Copies, e.Twin, e.Guard = now.Version, now.Twin, now.Guard })
	if before.Copies != now.Version {
		r.changed(before, after)
	}
	return nil
}

// ReadEngine reads the engine on which trials run.
func (r *Reader) ReadEngine(ctx context.Context) error {
	if r.sources.Engine == nil {
		return nil
	}
	began := time.Now()
	now, err := r.sources.Engine(ctx)
	if err != nil {
		return err
	}
	before, after := r.publish(func(e *Environment) {
		if began.Before(e.ShadowRead) { // a reading that began later has its result already
			return
		}
		e.Shadow, e.ShadowRead = now, began
	})
	if before.Shadow != after.Shadow {
		r.changed(before, after)
	}
	return nil
}

// ReadProduction reads the engine that clients use. With an error the last reading stays.
func (r *Reader) ReadProduction(ctx context.Context) error {
	if r.sources.Production == nil {
		return nil
	}
	began := time.Now()
	now, err := r.sources.Production(ctx)
	if err == nil && now != nil {
		r.publish(func(e *Environment) { e.Production, e.ProductionRead = now, began })
	}
	return err
}

// Read reads the copies and the engine on which trials run.
func (r *Reader) Read(ctx context.Context) (*Environment, error) {
	began := time.Now()
	if err := r.ReadCopies(ctx); err != nil {
		return nil, err
	}
	if err := r.ReadEngine(ctx); err != nil {
		return nil, err
	}
	_, after := r.publish(func(e *Environment) { e.Read = began })
	return after, nil
}

// lately is the age up to which a reading is used again when a turn begins. Reading opens a session.
const lately = 200 * time.Millisecond

// Lately is Read, unless both were read just now.
func (r *Reader) Lately(ctx context.Context) (*Environment, error) {
	if e := r.Now(); time.Since(e.Read) < lately {
		return e, nil
	}
	return r.Read(ctx)
}

// SetLabel sets the label of the last deploy, and reports whether it is another one.
func (r *Reader) SetLabel(label string) (changed bool) {
	before, _ := r.publish(func(e *Environment) { e.Label = label })
	return before.Label != label
}
