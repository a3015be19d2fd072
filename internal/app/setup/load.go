package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
)

// Load reads and validates a configuration file. The error lists all errors of the file. The Resolved is the same
// configuration in a form for the auditor process.
func Load(env Environment, path string) (config.Config, config.Resolved, error) {
	data, err := ReadFile(path)
	if err != nil {
		return config.Config{}, config.Resolved{}, err
	}
	c, resolved, err := config.ParseAndCheck(path, data, env.Getenv)
	if err != nil {
		return c, resolved, fmt.Errorf("the configuration is not valid:\n%w", err)
	}
	for _, l := range c.Admin {
		if l.TokenFile == "" {
			continue
		}
		if err := web.CheckTokenFile(l.TokenFile); err != nil {
			return c, resolved, fmt.Errorf("%s: admin.token_file: %w", path, err)
		}
	}
	return c, resolved, nil
}

// LoadEngine is Load for what concerns one engine: the one with this name, or the only one.
func LoadEngine(env Environment, path, engine string) (config.Config, error) {
	c, _, err := Load(env, path)
	if err != nil {
		return c, err
	}
	one, err := c.ForEngine(engine)
	if err != nil {
		return c, fmt.Errorf("%s: %w (--engine NAME)", path, err)
	}
	return one, nil
}

// ReadFile reads a configuration file and removes a byte order mark.
func ReadFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: start from examples/dpwatch.yaml", path)
	case err != nil:
		return nil, fmt.Errorf("read the configuration: %w", err)
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return nil, fmt.Errorf("%s is UTF-16: save it as UTF-8", path)
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF")), nil
}
