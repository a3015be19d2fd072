package verify

import (
	"context"
	"fmt"
	"slices"
)

// Twin is the result of verifying the second copy of D0, or the third one.
type Twin struct {
	Schema string
	Faults []string // empty = it has the rows and the definitions of D0
}

// compareTwin verifies that the twin, or the guard, has the rows and definitions of D0. Rows of materialised views
// are not compared: each copy computes its own.
func (v *verifier) compareTwin(ctx context.Context, schema string) (*Twin, error) {
	if schema == "" {
		return nil, nil //nolint:nilnil // the set has none
	}
	t := &Twin{Schema: schema}
	var err error
	if t.Faults, err = v.definitions(ctx, t.Schema); err != nil {
		return nil, err
	}
	own, err := v.sums(ctx, t.Schema, nil)
	if err != nil {
		return nil, err
	}
	faults, err := v.condition(ctx, t.Schema, own)
	if err != nil {
		return nil, err
	}
	t.Faults = slices.Concat(t.Faults, faults)
	for _, r := range v.m.Tables() {
		if a, b := v.worlds[v.set.D0].all[r.Name], own.all[r.Name]; r.Stores() && a != b {
			t.Faults = append(t.Faults, fmt.Sprintf("table %s: other rows than in D0 (%d in D0, %d here)", r.Name, a.Rows, b.Rows))
		}
	}
	return t, nil
}
