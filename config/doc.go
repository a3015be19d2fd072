// Package config reads dpwatch.yaml: types, defaults and validation.
//
// It owns the file's format and the reporting of faults: strictly (an unknown key is a fault), all at once, each with file
// and line. It does not depend on the packages that use the values; internal/app translates a Config to their Options. In:
// bytes and an environment. Out: a Config, or Faults.
package config
