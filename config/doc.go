// Package config reads dpwatch.yaml: types, defaults and validation.
//
// It owns the file's format. Decoding is strict (an unknown key is an error), and all errors are reported at once, with
// file and line. It does not depend on the packages that use the values; internal/app/setup translates a Config to
// their Options. In: bytes and an environment. Out: a Config, or Errors.
package config
