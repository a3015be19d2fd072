// Package config reads dpwatch.yaml: its types, defaults and validation.
//
// It owns what the file may say and how faults are told: strictly (an unknown key is a fault), all at once,
// each with file and line. It does not know what the other packages do with a value; cmd/dpwatch translates
// a Config to each package's Options. In: bytes and an environment. Out: a Config, or Faults.
package config
