package capture_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// TestParseStated: a text is a claim only as a whole. What quotes a client is none, and the error holds nothing of it.
func TestParseStated(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]capture.Stated{
		"":                                 {},
		"dp.epsilon=1.5":                   {Epsilon: 1.5},
		"dp.epsilon=1.5 dp.delta=1e-6":     {Epsilon: 1.5, Delta: 1e-6},
		" dp.delta=1e-6,  dp.epsilon=1.5,": {Epsilon: 1.5, Delta: 1e-6},
		"dp.epsilon=1, dp.delta=0":         {Epsilon: 1},
		"dp.rho=0.1":                       {Rho: 0.1},
		"dp.mu=.5":                         {Mu: 0.5},
		"dp.epsilons=1":                    {},
		"xdp.epsilon=1":                    {},
		"epsilon=1":                        {},
		"DP.epsilon=1":                     {},
		"12 rows":                          {},
		`identifier "dp.epsilon=9 and more" will be truncated to "dp.epsilon=9"`: {},
		`table "dp.epsilon=9" does not exist, skipping`:                          {},
		"value secret dp.epsilon=9":                                              {},
	} {
		if got, err := capture.ParseStated("dp", text); got != want || err != nil {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"dp.epsilon", "dp.epsilon=", "dp.epsilon=secret", "dp.epsilon=NaN", "dp.epsilon=Inf", "dp.epsilon=1e999", "dp.epsilon=-1", "dp.epsilon=0", "dp.rho=0",
		"dp.epsilon=0x1p4", "dp.epsilon=1_0", "dp.epsilon=1 secret", "dp.epsilon=1 dp.epsilon=2", "dp.epsilon=1 dp.delta=1", "dp.epsilon = 1", "dp.epsilon=1;dp.delta=0",
	} {
		if got, err := capture.ParseStated("dp", text); !got.None() || err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if got := (capture.Stated{Epsilon: 1, Rho: 2}).Max(capture.Stated{Epsilon: 2, Rho: 1, Delta: 0.1}); got != (capture.Stated{Epsilon: 2, Rho: 2, Delta: 0.1}) {
		t.Errorf("the larger numbers: %+v", got)
	}
}
