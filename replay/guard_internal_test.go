package replay

import (
	"errors"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

func TestGuarded(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	if err := guarded(func() error { return own }); !errors.Is(err, own) {
		t.Error(err)
	}
	err := guarded(func() error { panic("row MRN777") })
	if err == nil || strings.Contains(err.Error(), "MRN777") || !strings.Contains(err.Error(), "replay/guard_internal_test.go:") ||
		!strings.Contains(withheld.Reveal(err), "row MRN777") {
		t.Errorf("%v; revealed %s", err, withheld.Reveal(err))
	}
	var row []byte
	err = guarded(func() error { row[7] = 1; return nil })
	if err == nil || !strings.Contains(err.Error(), "index out of range [7]") {
		t.Error(err)
	}
}
