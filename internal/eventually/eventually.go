// Package eventually waits in tests for conditions.
package eventually

import (
	"testing"
	"time"
)

// Patience is how long True waits: it only ends a test that hangs.
const Patience = 10 * time.Minute

// Pause returns how long to wait until the next look when the first was so long ago: looks take processor time from what
// they wait for.
func Pause(waited time.Duration) time.Duration {
	return min(max(waited/20, 5*time.Millisecond), 25*time.Millisecond)
}

// True polls until ok returns true. If that never happens, the test fails with what and with the state, if one is
// given.
func True(t testing.TB, what string, ok func() bool, state ...func() any) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(Pause(time.Since(began))) {
		if time.Since(began) < Patience {
			continue
		}
		if len(state) > 0 {
			t.Fatalf("never: %s: %+v", what, state[0]())
		}
		t.Fatalf("never: %s", what)
	}
}
