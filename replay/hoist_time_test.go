package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// TestHoistingDecides: a query is hoisted if that is three times as fast. Single stalls do not decide.
func TestHoistingDecides(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	const ms = time.Millisecond
	for name, tc := range map[string]struct {
		whole, hoisted time.Duration
		stalls         bool // every fifth round takes 900 ms more
		reason         string
	}{
		"faster":               {20 * ms, ms, false, ""},
		"faster with stalls":   {20 * ms, ms, true, ""},
		"not fast enough":      {20 * ms, 10 * ms, false, "not 3 times as fast (2 times)"},
		"not with stalls":      {20 * ms, 10 * ms, true, "not 3 times as fast (2 times)"},
		"slower":               {20 * ms, 40 * ms, false, "not 3 times as fast (0.5 times)"},
		"whole rounds are few": {2 * time.Second, time.Second, false, "not 3 times as fast (2 times)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			s := replay.Statement{Hoist: replay.TimedHoisting(func(hoisted bool) time.Duration {
				took := tc.whole
				if hoisted {
					took = tc.hoisted
				}
				if n++; tc.stalls && n%5 == 0 {
					took += 900 * ms
				}
				return took
			})}
			got, err := rounds(t, player(t, options(dsn)), s, `SELECT count(*) + noise() FROM %s.u`, 150)
			if err != nil || len(got) != 150 {
				t.Fatalf("%d rounds, %v", len(got), err)
			}
			r := s.Hoist.Report()
			if hoisted := tc.reason == ""; r.Hoisted != hoisted || !strings.Contains(r.Reason, tc.reason) || (r.Reason == "") != hoisted {
				t.Errorf("%+v, want hoisted %v, reason %q", r, hoisted, tc.reason)
			}
			if !r.Hoisted && r.UnmodifiedRounds != 150 {
				t.Errorf("%+v, want whole rounds alone", r)
			}
		})
	}
}
