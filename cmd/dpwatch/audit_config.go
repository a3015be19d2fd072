package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/dpwatch/dpwatch/replay"
)

// resolve fills in from the configuration what no flag gives, and refuses flags that fit nothing.
func (f *auditFlags) resolve(env environment, fs *pflag.FlagSet) error {
	f.given = map[string]bool{}
	fs.Visit(func(flag *pflag.Flag) { f.given[flag.Name] = true })
	f.source = "flag"
	if f.config != "" {
		c, _, err := loadConfig(env, f.config)
		if err != nil {
			return err
		}
		f.cfg = &c
		f.fill()
	}
	return f.validate()
}

// fill takes the values of the configuration for flags that were not given.
func (f *auditFlags) fill() {
	c := f.cfg
	set := func(name string, take func()) {
		if !f.given[name] {
			take()
		}
	}
	set("dsn", func() { f.dsn = c.Shadow.DSN.Reveal() })
	set("d0", func() { f.d0 = c.Shadow.D0 })
	set("d1", func() { f.d1 = c.Shadow.D1 })
	set("search-path", func() { f.searchPath = c.Shadow.SearchPath })
	set("confidence", func() { f.confidence = c.Audit.Confidence })
	set("max-trials", func() { f.maxTrials = c.Audit.MaxTrials })
	set("statement-timeout", func() { f.timeout = time.Duration(c.Shadow.StatementTimeout) })
	set("deterministic", func() { f.deterministic = c.Audit.Deterministic })
	set("vary-text", func() { f.varyText = c.Audit.Confirm.VaryText })
	set("hoist", func() { f.hoist = c.Audit.Hoist })
	if c.Shadow.Protocol != "captured" {
		set("protocol", func() { f.protocol = c.Shadow.Protocol })
	}
	set("engine", func() { f.engines = f.configuredEngines() })
}

// configuredEngines returns the engine for every world, or one for each: those of the schemas at hand.
func (f *auditFlags) configuredEngines() []string {
	s := f.cfg.Shadow
	if len(s.Worlds) == 0 {
		return s.Engines()
	}
	var engines []string
	for _, schema := range f.schemas() {
		for _, w := range s.Worlds {
			if w.Schema == schema {
				engines = append(engines, w.Engine.Reveal())
			}
		}
	}
	return engines
}

// schemas are those of the worlds, D0 first.
func (f *auditFlags) schemas() []string { return append([]string{f.d0}, f.d1...) }

func (f *auditFlags) validate() error {
	var missing []string
	for name, there := range map[string]bool{"dsn": f.dsn != "", "d0": f.d0 != "", "d1": len(f.d1) > 0, "epsilon": f.cfg != nil || f.given["epsilon"]} {
		if !there {
			missing = append(missing, "--"+name)
		}
	}
	slices.Sort(missing)
	switch {
	case f.given["sql"] == f.given["file"]:
		return errors.New("give the query with --sql or with --file (- for standard input), one of the two")
	case len(missing) > 0:
		return fmt.Errorf("%s missing: give each, or --config FILE, which has them", strings.Join(missing, ", "))
	case !(f.epsilon >= 0) || math.IsInf(f.epsilon, 0):
		return fmt.Errorf("--epsilon %g: must be a finite number from 0 up", f.epsilon)
	case !(f.delta >= 0 && f.delta < 1):
		return fmt.Errorf("--delta %g: must be at least 0 and less than 1", f.delta)
	case !(f.confidence > 0.5 && f.confidence < 1):
		return fmt.Errorf("--confidence %g: must be more than 0.5 and less than 1, 0.95 say", f.confidence)
	case f.maxTrials < 1:
		return fmt.Errorf("--max-trials %d: must be at least 1", f.maxTrials)
	case !validDeterministic(f.deterministic):
		return fmt.Errorf("--deterministic %q: write violation, warning or ignore", f.deterministic)
	case f.timeout <= 0:
		return fmt.Errorf("--statement-timeout %s: must be more than 0", f.timeout)
	case f.protocol != "extended" && f.protocol != "simple":
		return fmt.Errorf("--protocol %q: write extended or simple", f.protocol)
	case f.cfg != nil && len(f.cfg.Shadow.Worlds) > 0 && !f.given["engine"] && len(f.engines) != len(f.schemas()):
		return errors.New("shadow.worlds has no engine for one of --d0 and --d1: add it there, or give --engine")
	case len(f.engines) > 1 && len(f.engines) != len(f.schemas()):
		return fmt.Errorf("--engine is given %d times: give one for all worlds, or one for D0 and one for each --d1 (%d)", len(f.engines), len(f.schemas()))
	}
	for i, schema := range f.d1 {
		switch {
		case schema == "":
			return errors.New("--d1 names an empty schema: write names separated by commas")
		case schema == f.d0:
			return fmt.Errorf("--d1 %s is D0 itself: a neighbour is another schema", schema)
		case slices.Index(f.d1, schema) < i:
			return fmt.Errorf("--d1 %s is given twice", schema)
		}
	}
	return nil
}

// replayOptions are those of dpwatch run with a configuration.
func (f *auditFlags) replayOptions() replay.Options {
	o := replay.Options{ConnectTimeout: 10 * time.Second, MaxRows: 100_000, MaxBytes: 64 << 20}
	if f.cfg != nil {
		o = replayOptions(*f.cfg, nil)
	}
	o.DSN, o.SearchPath, o.StatementTimeout = f.dsn, f.searchPath, f.timeout
	o.Engines, o.Copies, o.Protocol = f.engines, f.schemas(), replay.Protocol(f.protocol)
	return o
}

// noiseFunctions draw noise whatever the catalog declares them as.
func (f *auditFlags) noiseFunctions() []string {
	if f.cfg == nil {
		return nil
	}
	return noiseFunctions(*f.cfg)
}
