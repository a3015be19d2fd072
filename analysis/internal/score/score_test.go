package score

import "testing"

// TestKinds: in every setting the shares that scores start with are at most the whole wealth, and what describes a kind
// is complete.
func TestKinds(t *testing.T) {
	several, number, text := slotScore.several, slotScore.single, slotScore.single
	for i, k := range kinds {
		if k == formScore { // nothing is bet on it
			continue
		}
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
