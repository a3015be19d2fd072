package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/jackc/pgx/v5"
)

// EngineSections configures one of several engines. What an item of the list does not set has the value of the top
// level.
type EngineSections struct {
	Name       string          `yaml:"name"`
	Proxy      []Route         `yaml:"proxy"`
	Shadow     Shadow          `yaml:"shadow"`
	Privacy    Privacy         `yaml:"privacy"`
	Neighbours Neighbours      `yaml:"neighbours"`
	Claims     Claims          `yaml:"claims"`
	Audit      Audit           `yaml:"audit"`
	Budgets    []PrivacyBudget `yaml:"budgets"`
}

// sections returns the sections of c that engines can replace.
func (c *Config) sections() EngineSections {
	return EngineSections{Shadow: c.Shadow, Privacy: c.Privacy, Neighbours: c.Neighbours, Claims: c.Claims, Audit: c.Audit, Budgets: c.Budgets}
}

// engine returns the configuration of an item of Engines as that of a single engine.
func (c *Config) engine(i int) Config {
	e, one := &c.Engines[i], *c
	one.Shadow, one.Privacy, one.Neighbours, one.Claims, one.Audit, one.Budgets = e.Shadow, e.Privacy, e.Neighbours, e.Claims, e.Audit, e.Budgets
	one.Engine.Name, one.Engines, one.Proxy.Routes = e.Name, nil, e.Proxy
	if one.Ledger.Spool.Dir != "" {
		one.Ledger.Spool.Dir = filepath.Join(one.Ledger.Spool.Dir, url.PathEscape(e.Name))
	}
	return one
}

// topLevel returns the configuration of the engine of the top level. ok is false if engines are listed and the top
// level has no address for clients: then it only has values that the engines share.
func (c *Config) topLevel() (one Config, ok bool) {
	if len(c.Engines) == 0 {
		return *c, true
	}
	one = *c
	one.Engines = nil
	one.Engine.Name = one.EngineName()
	return one, len(c.Proxy.Listen) > 0 || !c.Proxy.Upstream.IsZero()
}

// AllEngines returns a complete configuration for each engine, with its routes and without Engines: the engine of the
// top level first, if it has an address for clients, then those of the list in its order. A configuration without the
// list has one engine.
func (c Config) AllEngines() []Config {
	var all []Config
	if one, ok := c.topLevel(); ok {
		all = append(all, one)
	}
	for i := range c.Engines {
		all = append(all, c.engine(i))
	}
	return all
}

// EngineNames returns the names of AllEngines.
func (c Config) EngineNames() []string {
	var names []string
	for _, one := range c.AllEngines() {
		names = append(names, one.EngineName())
	}
	return names
}

// ForEngine returns the one of AllEngines with this name; "" is the only engine. The error lists the names.
func (c Config) ForEngine(name string) (Config, error) {
	all := c.AllEngines()
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	for _, one := range all {
		if name == one.EngineName() {
			return one, nil
		}
	}
	names := strings.Join(c.EngineNames(), ", ")
	if name == "" {
		return Config{}, fmt.Errorf("the configuration has several engines: choose one of %s", names)
	}
	return Config{}, fmt.Errorf("the configuration has no engine %q: its engines are %s", name, names)
}

// SetWorkers replaces audit.workers of every engine.
func (c *Config) SetWorkers(n int) {
	c.Audit.Workers = n
	for i := range c.Engines {
		c.Engines[i].Audit.Workers = n
	}
}

// SetObserve sets audit.observe of every engine.
func (c *Config) SetObserve() {
	c.Audit.Observe = true
	for i := range c.Engines {
		c.Engines[i].Audit.Observe = true
	}
}

// engineName is the form of the name of a listed engine. It allows the default names of an engine: database@host:port.
var engineName = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9._@:/\[\]-]{0,99}$`)

// allEngines validates the engine of the top level and those of the list.
func (e *engineSections) allEngines(c *Config) {
	names := map[string]bool{}
	top, ok := c.topLevel()
	if ok {
		e.engine(&top)
		c.Shadow = top.Shadow
		names[top.EngineName()] = true
	}
	for i := range c.Engines {
		path := fmt.Sprintf("engines[%d]", i)
		one := c.engine(i)
		e.within = path + "."
		e.engine(&one)
		e.within = ""
		c.Engines[i].Shadow = one.Shadow
		switch {
		case one.Engine.Name == "":
			e.add(path+".name", "missing: the ledger, metrics and --engine refer to the engine by its name")
			continue
		case !engineName.MatchString(one.Engine.Name):
			e.add(path+".name", "%q: must be at most 100 letters, digits and characters of . _ - @ : / [ ], and begin with a letter, a digit or @", one.Engine.Name)
		case names[one.Engine.Name]:
			e.add(path+".name", "%q is also the name of another engine", one.Engine.Name)
		}
		names[one.Engine.Name] = true
	}
	e.separateCopies(c)
}

// separateCopies checks that no two engines have the same schemas for their copies in one shadow database.
func (e *engineSections) separateCopies(c *Config) {
	type place struct{ host, database, schema string }
	copies := map[place]string{}
	check := func(one Config, within string) {
		shadow, err := pgx.ParseConfig(one.Shadow.DSN.Reveal())
		if err != nil || one.Shadow.DSN == "" {
			return // reported already
		}
		e.within = within
		defer func() { e.within = "" }()
		database := place{host: fmt.Sprintf("%s:%d", shadow.Host, shadow.Port), database: shadow.Database}
		claim := func(path, schema string) {
			p := database
			p.schema = schema
			if other, taken := copies[p]; taken && schema != "" {
				e.add(path, "engines %s and %s have the same copy in one shadow database, schema %s: give each engine its own schemas", other, one.EngineName(), schema)
			}
			copies[p] = one.EngineName()
		}
		claim("shadow.d0", one.Shadow.D0)
		claim("shadow.twin", one.Shadow.TwinSchema())
		claim("shadow.guard", one.Shadow.GuardSchema())
		for i, schema := range one.Shadow.D1 {
			if slices.Index(one.Shadow.D1, schema) == i && schema != one.Shadow.D0 {
				claim(fmt.Sprintf("shadow.d1[%d]", i), schema)
			}
		}
	}
	if top, ok := c.topLevel(); ok && len(c.Engines) > 0 {
		check(top, "")
	}
	for i := range c.Engines {
		check(c.engine(i), fmt.Sprintf("engines[%d].", i))
	}
}

// parent returns the path of the section or list around a key; "" for the whole file.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// enginesLast returns the pairs of the section path with the engines of the top level at the end: they have the values
// of the other sections where they set none.
func enginesLast(pairs []*ast.MappingValueNode, path string) []*ast.MappingValueNode {
	if path != "" {
		return pairs
	}
	last := func(p *ast.MappingValueNode) int {
		if p.Key.GetToken().Value == "engines" {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(pairs), func(x, y *ast.MappingValueNode) int { return last(x) - last(y) })
}

// inherit gives an item of the list of engines, or of their routes, the values of the top level.
func (d *decoder) inherit(item reflect.Value) {
	switch v := item.Addr().Interface().(type) {
	case *EngineSections:
		*v = d.top.sections()
	case *Route:
		*v = Route{TLS: d.top.Proxy.TLS, UpstreamTLS: d.top.Proxy.UpstreamTLS, ProxyProtocol: d.top.Proxy.ProxyProtocol}
	}
}
