package config

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of a configuration file, for editors. A test generates it from the
// types of this package and the comments in examples/dpwatch.yaml. What is valid is decided by Parse: the schema knows
// names and types, not ranges or what must go together.
func Schema() []byte { return schema }
