package oneoff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// renewal makes the copies of an audit anew, between the control of a suspicion and its confirmation: what was drawn
// for the first copies is not what shows the violation on the second ones.
type renewal struct {
	audit *audit
	open  *neighbours.Recreation // nil = none
}

// renewable reports whether the copies are those that the configuration describes, on one database.
func (f *audit) renewable() bool {
	return f.config != nil && f.config.Neighbours.Configured() && !f.Recreate && f.twin != nil && len(f.Engines) < 2 &&
		!slices.ContainsFunc([]string{"dsn", "d0", "from", "twin"}, func(name string) bool { return f.Given[name] }) &&
		!slices.ContainsFunc(f.D1, func(d1 string) bool { return !slices.Contains(f.config.Shadow.D1, d1) })
}

// make makes D0, the neighbours and the twin anew. It returns nil, and warns unless the reason is their size, if that
// cannot be done: the violation is then confirmed on the first copies.
func (r *renewal) make(ctx context.Context) (*step.Worlds, error) {
	w, err := r.try(ctx)
	if err != nil && ctx.Err() == nil {
		if !errors.Is(err, neighbours.ErrTooLarge) {
			fmt.Fprintln(r.audit.env.Stderr, "dpwatch: warning: the violation is confirmed on the same copies, as they could not be made anew:", err)
		}
		return nil, nil //nolint:nilnil // there are none
	}
	return w, err
}

func (r *renewal) try(ctx context.Context) (*step.Worlds, error) {
	r.close(ctx) // those of a suspicion that was not confirmed
	f := r.audit
	o, err := stages.NeighbourOptions(*f.config)
	if err != nil {
		return nil, err
	}
	_, members, err := neighbours.List(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.audit.env.Removes != nil {
		r.audit.env.Removes()
	}
	worlds := []int{neighbours.AllRows}
	for _, d1 := range f.D1 {
		worlds = append(worlds, slices.Index(o.D1, d1))
	}
	anew, err := neighbours.OpenRecreation(ctx, o, append(worlds, neighbours.AllRows), stages.SmallCopies)
	if err != nil {
		return nil, err
	}
	r.open = anew
	for _, w := range worlds[1:] {
		if err := sameUnit(members, anew, w, o.D1[w]); err != nil {
			return nil, err
		}
	}
	schemas, err := anew.Make(ctx)
	if err != nil {
		return nil, err
	}
	last := len(schemas) - 1
	w, err := onSchemas(f.statement, f.plans, schemas, last, false)
	if err != nil {
		return nil, err
	}
	options := f.replayOptions()
	options.Copies, options.Twin = schemas[:last], schemas[last]
	player, err := replay.New(options)
	w.Player = step.Replays(player)
	return &w, err
}

// sameUnit returns an error unless the unit that a new copy lacks is that of the neighbour with its name.
func sameUnit(members []neighbours.Member, anew *neighbours.Recreation, world int, d1 string) error {
	known := slices.IndexFunc(members, func(m neighbours.Member) bool { return m.Schema == d1 })
	if known < 0 || !slices.Equal(members[known].Key, anew.Keys()[world]) {
		return fmt.Errorf("the source has changed, and the unit of %s would be another one: run `dpwatch neighbours refresh`", d1)
	}
	return nil
}

// close removes the copies.
func (r *renewal) close(ctx context.Context) {
	if r.open != nil {
		closeRecreation(ctx, r.audit.env, r.open)
		r.open = nil
	}
}
