package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/replay/neighbours/internal/build"
	"github.com/dpwatch/dpwatch/replay/neighbours/internal/source"
)

// compareSource compares D0 with what create would make of the source's present definitions. unread is the reason if it
// could not: the source cannot be reached or read.
func (v *verifier) compareSource(ctx context.Context) (faults []string, unread, err error) {
	o := *v.Options
	o.Note, o.Progress = nil, nil
	if o.Source == "" {
		return nil, errors.New("neighbours.source is not set"), nil
	}
	src, err := source.Open(ctx, &o)
	if err != nil {
		return nil, err, ctx.Err()
	}
	defer src.Close(ctx)
	types, err := source.ReadTypes(ctx, src.Conn, src.Model.Types, src.Model.Collations)
	if err != nil {
		return nil, fmt.Errorf("read the source's types: %w", src.Explain(err)), ctx.Err()
	}
	src.Close(ctx)
	b := &build.Builder{DB: v.DB, Options: &o, Model: src.Model}
	if err := b.Plan(); err != nil {
		return nil, nil, err
	}
	if err := source.CheckMeasures(src.Model, &o); err != nil {
		return []string{err.Error()}, nil, nil
	}
	r, err := b.DryRun(ctx, types)
	if err != nil {
		return nil, nil, err
	}
	if r.Faults != nil {
		return []string{"the source's present definitions cannot be created in the shadow database: " + r.Faults.Error()}, nil, nil
	}
	faults = differences(r.Made.Lines, v.d0.Lines, "the source", v.set.D0)
	for _, s := range src.Model.Sequences { // the source's sequence advances, a copy's does not
		copied, ok := v.d0.Sequences[s.Copy]
		ahead := copied.Last > s.Last || copied.Last == s.Last && copied.Called && !s.Called
		if s.Increment < 0 {
			ahead = copied.Last < s.Last || copied.Last == s.Last && copied.Called && !s.Called
		}
		if ok && ahead && !s.Cycle {
			faults = append(faults, fmt.Sprintf("sequence %s of %s is ahead of the source's", s.Copy, v.set.D0))
		}
	}
	if len(faults) > 0 {
		faults = append(faults, "either the source's definitions or the copies were changed since the copies were created: run `dpwatch neighbours create --replace`")
	}
	return faults, nil, nil
}
