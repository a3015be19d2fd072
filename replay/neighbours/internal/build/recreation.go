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

// AllRows is a world of a Recreation with all rows of the source: D0, or its twin.
const AllRows = -1

// Recreation makes copies anew, several times, so that what is random in a copy (a materialised view with noise, a
// default) is drawn anew. The copies have schemas, records and a lock of their own: the set of Create is neither needed
// nor changed. It is safe for concurrent use.
type Recreation struct {
	b      *Builder
	worlds []int
	made   atomic.Int64 // copies
}

// OpenRecreation copies the source and chooses the units. worlds has for each copy that Make makes the index of the unit
// that it lacks, or AllRows. The options are those of Options.Recreated.
func OpenRecreation(ctx context.Context, o spec.Options, worlds []int) (*Recreation, error) {
	b, err := prepare(ctx, &o, false)
	if err != nil {
		return nil, err
	}
	if err := b.makeBase(ctx); err != nil {
		return nil, errors.Join(b.Explain(err), (&Recreation{b: b}).Close(ctx))
	}
	return &Recreation{b: b, worlds: worlds}, nil
}

// Keys returns the keys of the units, in text form, which are personal data.
func (r *Recreation) Keys() [][]string {
	keys := make([][]string, len(r.b.units))
	for i, u := range r.b.units {
		keys[i] = u.Key
	}
	return keys
}

// Make makes the copies, to be dropped with Drop, and returns their schemas, which the roles of Options.Grant may read.
// Each copy has its own session, and their order is random: neither may tell the worlds apart. worlds are those of
// OpenRecreation unless others are given.
func (r *Recreation) Make(ctx context.Context, worlds ...int) (schemas []string, err error) {
	if len(worlds) == 0 {
		worlds = r.worlds
	}
	first := int(r.made.Add(int64(len(worlds)))) - len(worlds) + 1 // 0 is the copy of the source
	for i := range worlds {
		schemas = append(schemas, r.b.staging.stage(first+i))
	}
	for _, i := range rand.Perm(len(worlds)) {
		var unit *units.Chosen
		if w := worlds[i]; w != AllRows {
			unit = &r.b.units[w]
		}
		if err = r.b.makeD1(ctx, first+i, unit); err != nil {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		return schemas, errors.Join(err, r.Drop(ctx, schemas))
	}
	return schemas, err
}

// Drop drops what Make made, also after the end of ctx.
func (r *Recreation) Drop(ctx context.Context, schemas []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	conn, err := r.b.Session(ctx)
	if err == nil {
		defer conn.Close(ctx) //nolint:errcheck // nothing was left open
		err = connect.Run(ctx, conn, "DROP SCHEMA IF EXISTS "+ident.List(schemas)+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("drop the copies %v: %w", schemas, err)
	}
	return nil
}

// Close removes all copies and the copy of the source, also after the end of ctx.
func (r *Recreation) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
	defer cancel()
	r.b.Close(ctx) // the session may have been lost
	if err := Drop(ctx, *r.b.Options); err != nil {
		return fmt.Errorf("the copies that were made anew could not be removed: %w; the next `dpwatch audit`, or `dpwatch neighbours drop`, removes them", err)
	}
	return nil
}
