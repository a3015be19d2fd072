package spelling_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/spelling"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"max-trials", "epsilon", "d0", "d1", "dsn"}
	for word, want := range map[string]string{
		"max-trails": "max-trials", "epsilo": "epsilon", "epsilon": "epsilon", "d2": "d0", "x": "", "": "", "confidence": "", "dssn": "dsn",
	} {
		if got := spelling.Nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
