package score

import "testing"

// TestRepeatsAreRememberedForEver: the first result comes again after more different ones than are remembered.
func TestRepeatsAreRememberedForEver(t *testing.T) {
	t.Parallel()
	var early, late Repeats
	const n = 300_000
	for i := range uint64(n) {
		early.add(0, i, true)
		late.add(0, i, true)
	}
	for i := range uint64(1000) {
		early.add(0, i, true)    // those that came first
		late.add(0, n-1-i, true) // those that came last
	}
	// Each is in the sample with probability 2^-thinned = 1/8 or less; of 1000 fewer than 40 of about 125 have 1e-15.
	for name, r := range map[string]Repeats{"early": early, "late": late} {
		got := r.Alone[0]
		t.Logf("%s: %d repeats found, one in %d remembered", name, got, 1<<r.thinned)
		if got < 40 || got > 250 {
			t.Errorf("%s: %d of 1000 repeats are found", name, got)
		}
	}
	if n := early.different[0]; n > 1<<16 {
		t.Errorf("%d results are remembered", n)
	}
}
