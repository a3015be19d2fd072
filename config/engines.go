package config

import (
	"fmt"
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
	one.Engine.Name = e.Name
	if one.Ledger.Spool.Dir != "" {
		one.Ledger.Spool.Dir = filepath.Join(one.Ledger.Spool.Dir, e.Name)
	}
	one.keepRoutes(e.Name)
	return one
}

// topLevel returns the configuration of the engine of the top level: all of c if no engines are listed, otherwise what
// belongs to the routes that name none of them. ok is false if there is no such route.
func (c *Config) topLevel() (one Config, ok bool) {
	if len(c.Engines) == 0 {
		return *c, true
	}
	one = *c
	one.keepRoutes("")
	one.Engine.Name = one.EngineName()
	return one, len(c.Proxy.Routes) == 0 || len(one.Proxy.Routes) > 0
}

// keepRoutes makes c the configuration of one engine with the routes of that name.
func (c *Config) keepRoutes(engine string) {
	c.Engines = nil
	c.Proxy.Routes = slices.DeleteFunc(slices.Clone(c.Proxy.Routes), func(r Route) bool { return r.Engine != engine })
}

// AllEngines returns a complete configuration for each engine, with its routes and without Engines: the engine of the
// top level first, if it has a route, then those of the list in its order. A configuration without the list has one
// engine.
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

// engineName is the form of the name of a listed engine: it is also a directory of the spool.
var engineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// allEngines validates the engine of the top level and those of the list.
func (d *decoder) allEngines(c *Config) {
	names := map[string]bool{}
	top, ok := c.topLevel()
	if ok {
		d.engine(&top)
		c.Shadow = top.Shadow
		names[top.EngineName()] = true
	}
	for i := range c.Engines {
		path := fmt.Sprintf("engines[%d]", i)
		one := c.engine(i)
		d.within = path + "."
		d.engine(&one)
		d.within = ""
		c.Engines[i].Shadow = one.Shadow
		switch {
		case one.Engine.Name == "":
			d.add(path+".name", "missing: proxy.routes and the ledger refer to the engine by its name")
			continue
		case !engineName.MatchString(one.Engine.Name):
			d.add(path+".name", "%q: must be at most 63 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit", one.Engine.Name)
		case names[one.Engine.Name]:
			d.add(path+".name", "%q is also the name of another engine", one.Engine.Name)
		case len(one.Proxy.Routes) == 0:
			d.add(path, "no route leads to engine %s: set engine: %[1]s in one of proxy.routes, or remove the engine", one.Engine.Name)
		}
		names[one.Engine.Name] = true
	}
	d.routeEngines(c)
	d.separateCopies(c)
}

// routeEngines checks the names of engines in routes.
func (d *decoder) routeEngines(c *Config) {
	for i, r := range c.Proxy.Routes {
		if r.Engine != "" && !slices.ContainsFunc(c.Engines, func(e EngineSections) bool { return e.Name == r.Engine }) {
			d.add(fmt.Sprintf("proxy.routes[%d].engine", i), "%q is not the name of one of engines", r.Engine)
		}
	}
}

// separateCopies checks that no two engines have the same schemas for their copies in one shadow database.
func (d *decoder) separateCopies(c *Config) {
	type place struct{ host, database, schema string }
	copies := map[place]string{}
	check := func(one Config, within string) {
		shadow, err := pgx.ParseConfig(one.Shadow.DSN.Reveal())
		if err != nil || one.Shadow.DSN == "" {
			return // reported already
		}
		d.within = within
		defer func() { d.within = "" }()
		database := place{host: fmt.Sprintf("%s:%d", shadow.Host, shadow.Port), database: shadow.Database}
		claim := func(path, schema string) {
			p := database
			p.schema = schema
			if other, taken := copies[p]; taken && schema != "" {
				d.add(path, "engines %s and %s have the same copy in one shadow database, schema %s: give each engine its own schemas", other, one.EngineName(), schema)
			}
			copies[p] = one.EngineName()
		}
		claim("shadow.d0", one.Shadow.D0)
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

// located returns the path where an error of a key of the present engine is reported: within its item of the list if
// the key, or the deepest section around it that the file has, is set there or nowhere; otherwise at the top level.
func (d *decoder) located(path string) string {
	section, _, _ := strings.Cut(path, ".")
	section, _, _ = strings.Cut(section, "[")
	if _, ok := yamlFields(reflect.TypeFor[EngineSections]())[section]; d.within == "" || !ok {
		return path
	}
	for p := path; p != ""; p = parent(p) {
		switch {
		case d.lines[d.within+p] != 0:
			return d.within + path
		case d.lines[p] != 0:
			return path
		}
	}
	return d.within + path
}

// isSet reports whether the file sets a key, for the present engine or at the top level.
func (d *decoder) isSet(path string) bool { return d.lines[path] != 0 || d.lines[d.within+path] != 0 }

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

// inherit gives an item of the list of engines the values of the top level.
func (d *decoder) inherit(item reflect.Value) {
	if e, ok := item.Addr().Interface().(*EngineSections); ok {
		*e = d.top.sections()
	}
}
