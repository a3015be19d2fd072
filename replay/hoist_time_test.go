package replay_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// script is a clock for hoisting: the timed batches take the listed durations, then 20 ms each.
type script struct {
	at    time.Time
	took  []time.Duration
	calls int
}

func (s *script) now() time.Time {
	if s.calls++; s.calls%2 == 0 { // the end of a batch
		took := 20 * time.Millisecond
		if i := s.calls/2 - 1; i < len(s.took) {
			took = s.took[i]
		}
		s.at = s.at.Add(took)
	}
	return s.at
}

// TestHoistingDecides: a single stall does not decide, and a decision against hoisting is repeated.
func TestHoistingDecides(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	ms := func(n int, d int) []time.Duration {
		return slices.Repeat([]time.Duration{time.Duration(d) * time.Millisecond}, n)
	}
	for name, tc := range map[string]struct {
		took    []time.Duration // of batches of 20 rounds: unmodified ones up to 100, then hoisted ones
		rounds  int
		hoisted bool
		reason  string
	}{
		"faster":                 {slices.Concat(ms(5, 20), ms(5, 1)), 120, true, ""},
		"stalls when hoisted":    {slices.Concat(ms(5, 20), ms(3, 1), ms(2, 900)), 120, true, ""},
		"stalls when unmodified": {slices.Concat(ms(3, 20), ms(2, 900), ms(5, 19)), 120, false, "not faster (1.1 times)"},
		"not faster":             {slices.Concat(ms(5, 20), ms(5, 40)), 480, false, "not faster (0.5 times)"},
		"faster the second time": {slices.Concat(ms(5, 20), ms(5, 40), ms(20, 20), ms(5, 1)), 520, true, ""},
		"slower every time": {
			slices.Concat(ms(5, 20), ms(5, 40), ms(20, 20), ms(5, 40), ms(100, 20), ms(5, 80)), 2600, false, "not faster (0.25 times)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &script{took: tc.took}
			s := replay.Statement{Hoist: replay.TimedHoisting(clock.now)}
			got, err := rounds(t, player(t, options(dsn)), s, `SELECT count(*) + noise() FROM %s.u`, tc.rounds)
			if err != nil || len(got) != tc.rounds {
				t.Fatalf("%d rounds, %v", len(got), err)
			}
			r := s.Hoist.Report()
			if r.Hoisted != tc.hoisted || !strings.Contains(r.Reason, tc.reason) || (r.Reason == "") != tc.hoisted {
				t.Errorf("%+v, want hoisted %v, reason %q", r, tc.hoisted, tc.reason)
			}
			if !tc.hoisted && r.UnmodifiedRounds != tc.rounds {
				t.Errorf("%+v, want unmodified rounds alone", r)
			}
		})
	}
}
