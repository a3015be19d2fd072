package relay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// reloads is what the metrics show of the latest attempts to read the configuration again.
type reloads struct {
	failed bool      // the latest one
	last   time.Time // that succeeded, or the start
}

// Reload gives the auditor processes a new configuration, all of it or nothing: with an error, the previous one stays
// in force. Sessions of clients are not affected. Each auditor process ends as at the end of Run, and another one goes
// on from the ledger; without a ledger, its audits begin again.
func (r *Relay) Reload(read func() (config.Config, config.Resolved, error)) (changed []string, err error) {
	r.loading.Lock()
	defer r.loading.Unlock()
	defer func() {
		state := reloads{failed: err != nil, last: r.reloaded.Load().last}
		if err == nil {
			state.last = time.Now()
			r.log.Info("the configuration was read again", zap.Strings("changed", changed))
		} else {
			r.log.Error("the configuration was not read again; the previous one stays in force", zap.Error(err))
		}
		r.reloaded.Store(&state)
	}()
	c, resolved, err := read()
	if err != nil {
		return nil, err
	}
	before := r.current.Load()
	changed = config.Changed(*before, c)
	if err := r.canReload(*before, c, changed); err != nil {
		return nil, err
	}
	if len(changed) == 0 {
		return nil, nil
	}
	greetings := make([][]byte, len(r.engines))
	for i, e := range r.engines {
		one := resolved
		if len(r.engines) > 1 {
			one = resolved.ForEngine(e.name())
		}
		if greetings[i], err = one.Encode(); err != nil {
			return nil, fmt.Errorf("encode the configuration for the auditor: %w", err)
		}
	}
	if err := r.setPages(c, resolved); err != nil {
		return nil, err
	}
	r.current.Store(&c)
	all := c.AllEngines()
	for i, e := range r.engines {
		e.setNames(setup.ProtectedNames(&all[i])) // until the new auditor reports its names
		e.supervisor.Renew(greetings[i])
	}
	return changed, nil
}

// canReload returns an error if a change needs a restart.
func (r *Relay) canReload(before, after config.Config, changed []string) error {
	restart := slices.DeleteFunc(slices.Clone(changed), config.Reloadable)
	if !slices.Equal(engineNames(before), engineNames(after)) {
		if len(restart) == 0 { // otherwise a key in it changes the names
			restart = append(restart, "engines")
		}
	} else {
		old, all := before.AllEngines(), after.AllEngines()
		for i := range all {
			if setup.HasStdout(all[i]) && !setup.HasStdout(old[i]) {
				restart = append(restart, "alerts.receivers (the first of type stdout)")
			}
		}
	}
	if len(restart) > 0 {
		slices.Sort(restart)
		return fmt.Errorf("restart dpwatch for changes of %s", strings.Join(slices.Compact(restart), ", "))
	}
	return setup.CheckWorkers(after)
}

func engineNames(c config.Config) (names []string) {
	for _, one := range c.AllEngines() {
		names = append(names, one.EngineName())
	}
	return names
}
