package setup

import (
	"slices"

	"github.com/dpwatch/dpwatch/config"
)

// Ledgers returns one of the engines' configurations for each ledger of a configuration: they share one unless
// ledger.dsn is unset and each has its own neighbours.target.
func Ledgers(c config.Config) []config.Config {
	var out []config.Config
	for _, one := range c.AllEngines() {
		if !slices.ContainsFunc(out, func(other config.Config) bool { return other.LedgerDSN() == one.LedgerDSN() }) {
			out = append(out, one)
		}
	}
	return out
}

// LedgerEngine returns the configuration with whose ledger an engine is looked up: the engine's own or, for "*" and
// names that only the ledger has, that of the first engine. "" is the only engine; of several, one must be named.
func LedgerEngine(c config.Config, name string) (config.Config, error) {
	one, err := c.ForEngine(name)
	if err != nil && name != "" {
		return c.AllEngines()[0], nil
	}
	return one, err
}

// EngineOf returns the configuration for an audit that the ledger has under the name of an engine. That of a single
// engine is for every name, because the name of an engine may have changed.
func EngineOf(c config.Config, name string) (config.Config, error) {
	if all := c.AllEngines(); len(all) == 1 {
		return all[0], nil
	}
	return c.ForEngine(name)
}
