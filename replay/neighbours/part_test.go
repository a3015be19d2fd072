package neighbours_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// TestPart: copies of a part of the rows keep the foreign keys, differ by rows of the unit alone, and are made again by
// their script; parts without a row of the unit are none; nothing is left.
func TestPart(t *testing.T) {
	t.Parallel()
	o := shop(t)
	before := state(t, o.Target)
	copies, err := neighbours.OpenRecreation(t.Context(), o, []int{neighbours.AllRows, 0}, 0)
	if err != nil {
		t.Fatal(err)
	}
	part, err := copies.Part(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	all, own, err := part.Rows(t.Context())
	if err != nil || own == 0 || own >= all {
		t.Fatalf("%d of %d rows belong to the unit, error %v", own, all, err)
	}
	if ok, err := part.Without(t.Context(), all-own, all); ok || err != nil {
		t.Errorf("a part without the unit: %t, error %v", ok, err)
	}
	r := rand.New(rand.NewPCG(7, 0))
	kept := 0
	for step := 0; kept < 3; step++ {
		from := r.Int64N(all)
		ok, err := part.Without(t.Context(), from, from+max(1, all/int64(3+step)))
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			continue
		}
		schemas, err := copies.Make(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		run(t, o.Target, lines(t, o.Target, `SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %I', conrelid::regclass, conname) FROM pg_constraint
			WHERE contype = 'f' AND NOT convalidated AND connamespace = to_regnamespace($1)`, schemas[0])...)
		script, err := copies.Script(t.Context(), schemas[0], "again", lines(t, o.Target, `SELECT relname::text FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace = to_regnamespace($1)
			UNION SELECT proname FROM pg_proc WHERE pronamespace = to_regnamespace($1)`, schemas[0]))
		if err != nil {
			t.Fatal(err)
		}
		run(t, o.Target, script...)
		rows := func(schema string) []string {
			query := lines(t, o.Target, `SELECT string_agg(format('SELECT %L || x::text AS line FROM ONLY %I.%I x', relname, relnamespace::regnamespace, relname), ' UNION ALL ')
				FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace($1)`, schema)
			return lines(t, o.Target, query[0]+" ORDER BY line")
		}
		d0, d1 := rows(schemas[0]), rows(schemas[1])
		if again := rows("again"); !slices.Equal(d0, again) {
			t.Errorf("%d rows, and the script makes %d, or others", len(d0), len(again))
		}
		for _, x := range d1 {
			if !slices.Contains(d0, x) {
				t.Errorf("D1 has a row that D0 lacks")
			}
		}
		run(t, o.Target, "DROP SCHEMA again CASCADE")
		if err := copies.Drop(t.Context(), schemas); err != nil {
			t.Fatal(err)
		}
		part.Keep()
		left, unit, err := part.Rows(t.Context())
		if err != nil || int64(len(d0)) != left || int64(len(d0)-len(d1)) != unit || left >= all {
			t.Errorf("step %d: D0 has %d rows, D1 %d less; the part of %d has %d, the unit %d, error %v", step, len(d0), len(d0)-len(d1), all, left, unit, err)
		}
		all = left
		kept++
	}
	for range 3 {
		if !part.Back() {
			t.Error("there is no part before")
		}
	}
	if left, _, err := part.Rows(t.Context()); err != nil || left <= all || part.Back() {
		t.Errorf("the first part has %d rows, the last one %d, error %v", left, all, err)
	}
	if err := copies.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := state(t, o.Target); !slices.Equal(before, after) {
		t.Errorf("left %q of %q", after, before)
	}
}
