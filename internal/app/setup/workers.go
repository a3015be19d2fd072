package setup

import (
	"errors"
	"fmt"

	"github.com/dpwatch/dpwatch/config"
)

// CheckWorkers returns an error if no process would run the audits of an engine.
func CheckWorkers(c config.Config) error {
	for _, one := range c.AllEngines() {
		switch {
		case one.Audit.Workers < 0:
			return errors.New("the number of workers must not be negative")
		case one.Audit.Observe:
		case one.Audit.Workers == 0 && one.LedgerDSN() == "":
			return fmt.Errorf("engine %s: without workers in this process (audit.workers, --workers) others must replay, and they take their turns from a ledger: set ledger.dsn or neighbours.target", one.EngineName())
		}
	}
	return nil
}
