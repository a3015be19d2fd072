package analysis

import "testing"

// TestKinds: in every setting the shares that scores start with are at most the whole wealth, and what describes a kind is complete.
func TestKinds(t *testing.T) {
	several, number, text := slotScore.several, slotScore.single, slotScore.single
	for i, k := range kinds {
		if k.name == "" || k.event == "" && k.eventOf == nil || k.make(0) == nil {
			t.Errorf("kind %d (%q) lacks a name, a kind of event or a statistic", i, k.name)
		}
		if k == slotScore {
			continue
		}
		if k.where == 0 || len(k.views) == 0 {
			t.Errorf("kind %d (%q) is in no setting, or has no view", i, k.name)
		}
		several, number = several+k.several, number+k.single
		switch {
		case k.texts > 0:
			text += k.texts
		case k.where&singleNumber == 0:
			text += k.single
		}
	}
	for name, sum := range map[string]float64{"several": several, "number": number, "text": text} {
		if sum > 1+1e-12 {
			t.Errorf("the shares sum to %v where %s", sum, name)
		}
	}
}

// TestNoGroupYet: results of which no group is read, because the first is too large to be kept and the others are empty.
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
