package builtin

import "slices"

// forms are the settings of the server that affect the result of a SELECT.
var forms = []string{
	"timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output", "lc_monetary", "lc_numeric",
	"lc_time", "xmlbinary", "xmloption", "transform_null_equals", "array_nulls", "default_text_search_config",
	"timezone_abbreviations", "row_security", "quote_all_identifiers", "gin_fuzzy_search_limit",
}

// Forms returns the settings of the server that affect the result of a SELECT, by lower-case name.
func Forms() []string { return forms }

// AffectsForm reports whether a setting is one of Forms.
func AffectsForm(name string) bool { return slices.Contains(forms, name) }
