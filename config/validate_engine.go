package config

import (
	"fmt"
	"slices"
)

// engines validates how an engine beside the database is reached.
func (d *decoder) engines(s *Shadow) {
	d.oneOf("shadow.protocol", s.Protocol, "captured", "extended", "simple")
	if s.Engine != "" && len(s.Worlds) > 0 {
		d.add("shadow.engine", "give either engine (one for all copies) or worlds (one for each copy), not both")
	}
	d.connection("shadow.engine", s.Engine)
	schemas := s.Copies()
	seen := map[string]bool{}
	for i, w := range s.Worlds {
		path := fmt.Sprintf("shadow.worlds[%d]", i)
		switch {
		case !slices.Contains(schemas, w.Schema):
			d.add(path+".schema", "%q is neither shadow.d0 nor one of shadow.d1", w.Schema)
		case seen[w.Schema]:
			d.add(path+".schema", "%q is listed twice", w.Schema)
		}
		seen[w.Schema] = true
		if w.Engine == "" {
			d.add(path+".engine", "missing: the engine's connection string")
		}
		d.connection(path+".engine", w.Engine)
	}
	for _, schema := range schemas {
		if len(s.Worlds) > 0 && !seen[schema] {
			d.add("shadow.worlds", "no engine for %q: D0 and every neighbour need one", schema)
		}
	}
}
