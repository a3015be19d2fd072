package config

import (
	"fmt"

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
