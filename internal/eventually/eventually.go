// Package eventually waits in tests for conditions.
package eventually

import (
	"testing"
	"time"
)

// Patience is how long True waits: it only ends a test that hangs.
const Patience = 10 * time.Minute

// True polls until ok returns true. If that never happens, the test fails with what and with the state, if one is
// given.
func True(t testing.TB, what string, ok func() bool, state ...func() any) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		if len(state) > 0 {
			t.Fatalf("never: %s: %+v", what, state[0]())
		}
		t.Fatalf("never: %s", what)
	}
}
