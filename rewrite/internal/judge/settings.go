package judge

import (
	"slices"
	"strings"
)

// forms are the settings of the server that affect the result of a SELECT.
var forms = [...]string{
	"timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output", "lc_monetary", "lc_numeric",
	"lc_time", "xmlbinary", "xmloption", "transform_null_equals", "array_nulls", "default_text_search_config",
	"timezone_abbreviations", "row_security", "quote_all_identifiers", "gin_fuzzy_search_limit",
}

// AffectsResult reports whether a setting, by its lower-case name, affects the result of a SELECT: it is one of the
// server's own that does, or it belongs to an extension or application (it has a dot in its name). Replays set these
// settings.
func AffectsResult(name string) bool {
	return slices.Contains(forms[:], name) || strings.Contains(name, ".")
}
