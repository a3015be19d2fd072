package build

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/spec"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/units"
)

// Pairs makes pairs of copies that are made anew for one pair of trials each, so that what is random in a copy (a
// materialised view with noise, a default) is drawn for each trial. The pairs have schemas, records and a lock of their
// own: the set of Create is neither needed nor changed. It is safe for concurrent use.
type Pairs struct {
	b    *Builder
	unit *units.Chosen
	made atomic.Int64 // pairs
}

// Pair names the schemas of two copies that the roles of Options.Grant may read.
type Pair struct{ D0, D1 string }

// OpenPairs copies the source and chooses the units; neighbour is the index of the unit that D1 lacks. The options are
// those of Options.Recreated.
func OpenPairs(ctx context.Context, o spec.Options, neighbour int) (*Pairs, error) {
	b, err := prepare(ctx, &o, false)
	if err != nil {
		return nil, err
	}
	if err := b.makeBase(ctx); err != nil {
		return nil, errors.Join(b.Explain(err), (&Pairs{b: b}).Close(ctx))
	}
	return &Pairs{b: b, unit: &b.units[neighbour]}, nil
}

// Make makes a pair, to be dropped with Drop. Each copy has its own session, and which one is first is random:
// neither may tell the worlds apart.
func (p *Pairs) Make(ctx context.Context) (Pair, error) {
	d0 := int(2*p.made.Add(1)) - 1 // 0 is the copy of the source
	pair := Pair{p.b.staging.stage(d0), p.b.staging.stage(d0 + 1)}
	making := []func() error{
		func() error { return p.b.makeD1(ctx, d0, nil) },
		func() error { return p.b.makeD1(ctx, d0+1, p.unit) },
	}
	first := rand.IntN(2)
	err := making[first]()
	if err == nil {
		err = making[1-first]()
	}
	if err != nil && ctx.Err() == nil {
		return pair, errors.Join(err, p.Drop(ctx, pair))
	}
	return pair, err
}

// Drop drops a pair, also after the end of ctx.
func (p *Pairs) Drop(ctx context.Context, pair Pair) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	conn, err := p.b.Session(ctx)
	if err == nil {
		defer conn.Close(ctx) //nolint:errcheck // nothing was left open
		err = connect.Run(ctx, conn, "DROP SCHEMA IF EXISTS "+ident.List([]string{pair.D0, pair.D1})+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("drop the copies %s and %s: %w", pair.D0, pair.D1, err)
	}
	return nil
}

// Close removes all pairs and the copy of the source, also after the end of ctx.
func (p *Pairs) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	p.b.Close(ctx) // the session may have been lost
	if err := Drop(ctx, *p.b.Options); err != nil {
		return fmt.Errorf("the copies that were made anew could not be removed: %w; the next `dpwatch audit --recreate`, or `dpwatch neighbours drop`, removes them", err)
	}
	return nil
}
