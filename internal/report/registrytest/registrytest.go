// Package registrytest checks records against the schema of the registry of deployments of differential privacy.
package registrytest

import (
	"bytes"
	_ "embed" // the schema
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed deployments-schema.yaml
var schema []byte

var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := read(schema)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("registry.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("registry.json")
})

func read(text []byte) (any, error) {
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
}

// Validate returns an error unless a record keeps the schema.
func Validate(record []byte) error {
	s, err := compiled()
	if err != nil {
		return err
	}
	v, err := read(record)
	if err != nil {
		return err
	}
	return s.Validate(v)
}
