package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
)

// Print returns the configuration as YAML with all defaults filled in and every secret as "***".
func Print(c Config) ([]byte, error) {
	out, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out, nil
}

// Keys returns every valid key as a path (proxy.listen), sorted.
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
