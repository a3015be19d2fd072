package analysis

import "testing"

// TestNoGroupYet: results of which no group is read, because the first is too large to be kept and the others are
// empty.
func TestNoGroupYet(t *testing.T) {
	a, err := New(Claim{Epsilon: 1}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	empty := Outcome{Columns: []Column{{Name: "key", Discrete: true}, {Name: "value"}}}
	large := empty
	for i := range 20_000 {
		large.Rows = append(large.Rows, []Value{{Kind: Number, Num: float64(i)}, {Kind: Number, Num: 1}})
	}
	a.Add(large, large)
	for range 30 {
		a.Add(empty, empty)
	}
	if r := a.Report(); r.Trials.D0 != 31 {
		t.Errorf("%d trials", r.Trials.D0)
	}
}
