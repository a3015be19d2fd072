package config

import (
	"reflect"
	"slices"
)

// Keys returns every valid key as a path (proxy.listen), sorted: tests compare them with documents and examples.
func Keys() []string {
	keys := keysOf(reflect.TypeFor[Config](), "")
	slices.Sort(keys)
	return keys
}

func keysOf(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return keysOf(t.Elem(), path)
	case reflect.Struct:
	default:
		return nil
	}
	if _, ok := reflect.New(t).Interface().(setter); ok {
		return nil
	}
	var keys []string
	for name, i := range yamlFields(t) {
		keys = append(keys, join(path, name))
		keys = append(keys, keysOf(t.Field(i).Type, join(path, name))...)
	}
	return keys
}
