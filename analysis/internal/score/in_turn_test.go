package score

import (
	"slices"
	"testing"
)

// TestInTurn: every two of many things are looked at together after some blocks, and those that stay in each.
func TestInTurn(t *testing.T) {
	const n, most, run, stay = 40, 12, 3, 39
	var together [n][n]bool
	in := &Input{}
	for in.pairs = 64; in.pairs < 20_000; in.pairs += in.pairs / 8 {
		chosen := in.inTurn(n, most, run, stay)
		if len(chosen) != most || !slices.IsSorted(chosen) || len(slices.Compact(slices.Clone(chosen))) != most || !slices.Contains(chosen, stay) {
			t.Fatalf("after %d pairs: %v", in.pairs, chosen)
		}
		if again := in.inTurn(n, most, run, stay); !slices.Equal(chosen, again) {
			t.Errorf("after %d pairs: %v and %v", in.pairs, chosen, again)
		}
		for _, i := range chosen {
			for _, j := range chosen {
				together[i][j] = true
			}
		}
	}
	missed := 0
	for i := range n {
		if !together[i][i] {
			t.Errorf("%d is never looked at", i)
		}
		for j := range n {
			if !together[i][j] {
				missed++
			}
		}
	}
	if missed > n*n/10 {
		t.Errorf("%d of %d pairs are never looked at", missed, n*n)
	}
	if few := in.inTurn(most, most, run); len(few) != most {
		t.Errorf("of %d: %v", most, few)
	}
}
