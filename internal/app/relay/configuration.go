package relay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// Configuration is what the auditors run with: the one of the start until the first Reload.
type Configuration struct {
	current  atomic.Pointer[config.Config]
	resolved atomic.Pointer[json.RawMessage] // current for another process; see config.Resolved.Encode
	engines  *Engines
	log      *zap.Logger

	loading  sync.Mutex // of a Reload
	reloaded atomic.Pointer[reloads]
	read     func() (config.Config, config.Resolved, error) // for POST /api/reload; nil = there is no file
}

// newConfiguration returns the configuration of the start.
func newConfiguration(c config.Config, resolved config.Resolved, engines *Engines, log *zap.Logger) (*Configuration, error) {
	conf := &Configuration{engines: engines, log: log}
	conf.reloaded.Store(&reloads{last: time.Now()})
	return conf, conf.publish(c, resolved)
}

// SetRead sets how the configuration is read again for POST /api/reload.
func (conf *Configuration) SetRead(read func() (config.Config, config.Resolved, error)) {
	conf.read = read
}

// publish makes c the current one, for pages and for the processes that read audits for them.
func (conf *Configuration) publish(c config.Config, resolved config.Resolved) error {
	text, err := resolved.Encode()
	if err != nil {
		return fmt.Errorf("encode the configuration for pages: %w", err)
	}
	conf.resolved.Store((*json.RawMessage)(&text))
	if c.Log.ShowsSQL() {
		conf.engines.mayHoldValues()
	}
	conf.current.Store(&c)
	return nil
}

// ofEngines returns the configuration in force of an engine, or those of all with the name "".
func (conf *Configuration) ofEngines(engine string) ([]config.Config, error) {
	c := *conf.current.Load()
	if engine == "" {
		return c.AllEngines(), nil
	}
	one, err := c.ForEngine(engine)
	return []config.Config{one}, err
}

// Effective returns the configuration in force as a file, without secrets.
func (conf *Configuration) Effective() ([]byte, error) { return config.Print(*conf.current.Load()) }

// Reload gives the auditor processes a new configuration, all of it or nothing: with an error, the previous one stays
// in force. Sessions of clients are not affected. Each auditor process ends as at the end of Run, and another one goes
// on from the ledger; without a ledger, its audits begin again.
func (conf *Configuration) Reload(read func() (config.Config, config.Resolved, error)) (changed []string, err error) {
	conf.loading.Lock()
	defer conf.loading.Unlock()
	defer func() {
		state := reloads{failed: err != nil, last: conf.reloaded.Load().last}
		if err == nil {
			state.last = time.Now()
			conf.log.Info("the configuration was read again", zap.Strings("changed", changed))
		} else {
			conf.log.Error("the configuration was not read again; the previous one stays in force", zap.Error(err))
		}
		conf.reloaded.Store(&state)
	}()
	c, resolved, err := read()
	if err != nil {
		return nil, err
	}
	before := *conf.current.Load()
	changed = config.Changed(before, c)
	if err := canReload(before, c, changed); err != nil {
		return nil, err
	}
	if len(changed) == 0 {
		return nil, nil
	}
	greetings := make([][]byte, len(conf.engines.all))
	for i, e := range conf.engines.all {
		one := resolved
		if len(conf.engines.all) > 1 {
			one = resolved.ForEngine(e.name())
		}
		if greetings[i], err = one.Encode(); err != nil {
			return nil, fmt.Errorf("encode the configuration for the auditor: %w", err)
		}
	}
	if err := conf.publish(c, resolved); err != nil {
		return nil, err
	}
	all := c.AllEngines()
	for i, e := range conf.engines.all {
		e.awaitNames(all[i])
		e.supervisor.Renew(greetings[i])
	}
	return changed, nil
}

// canReload returns an error if a change needs a restart.
func canReload(before, after config.Config, changed []string) error {
	restart := slices.DeleteFunc(slices.Clone(changed), config.Reloadable)
	if !slices.Equal(before.EngineNames(), after.EngineNames()) {
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
