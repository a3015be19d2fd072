package judge

import (
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/builtin"
)

// AffectsResult reports whether a setting, by its lower-case name, affects the result of a SELECT: it is one of the
// server's own that does, or it belongs to an extension or application (it has a dot in its name). Replays set these
// settings.
func AffectsResult(name string) bool { return builtin.AffectsForm(name) || strings.Contains(name, ".") }
