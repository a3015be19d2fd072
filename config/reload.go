package config

import (
	"reflect"
	"slices"
	"strings"
)

// reloadable lists the keys, with all keys below them, that take effect when a running dpwatch reads its configuration
// again: what only the auditor processes use, and the names that the relay looks for. Everything else needs a restart.
var reloadable = []string{
	"alerts", "audit", "budgets", "claims", "neighbours", "shadow", "ledger.retention", "log.reveal", "privacy",
}

// fixed lists exceptions from reloadable: the relay uses them.
var fixed = []string{"claims.answer", "privacy.database"}

// Reloadable reports whether a change of a key takes effect without a restart. A key of an engine in engines is as the
// same key of the top level.
func Reloadable(key string) bool {
	if rest, of := strings.CutPrefix(key, "engines."); of {
		key = rest
	}
	under := func(list []string) bool {
		return slices.ContainsFunc(list, func(k string) bool { return key == k || strings.HasPrefix(key, k+".") })
	}
	return under(reloadable) && !under(fixed)
}

// Changed returns the keys whose values differ, sorted. Lists are compared as a whole, except engines with the same
// names.
func Changed(a, b Config) []string {
	var keys []string
	changed(reflect.ValueOf(a), reflect.ValueOf(b), "", &keys)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func changed(a, b reflect.Value, path string, keys *[]string) {
	switch {
	case path == "engines" && a.Len() == b.Len():
		for i := range a.Len() {
			changed(a.Index(i), b.Index(i), path, keys)
		}
	case a.Kind() == reflect.Struct && reflect.New(a.Type()).Type().Implements(reflect.TypeFor[setter]()), a.Kind() != reflect.Struct:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			*keys = append(*keys, path)
		}
	default:
		for name, i := range yamlFields(a.Type()) {
			if a.Type().Field(i).IsExported() {
				changed(a.Field(i), b.Field(i), join(path, name), keys)
			}
		}
	}
}
