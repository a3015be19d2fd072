package config

import "fmt"

// engines validates the engine on which trials run.
func (e *engineSections) engines(s *Shadow) {
	e.oneOf("shadow.engine.protocol", s.Engine.Protocol, "captured", "extended", "simple")
	switch n, copies := len(s.Engine.DSN), len(s.Copies()); {
	case n <= 1:
	case s.TwinSchema() != "" && n != copies+1 && (n != copies+2 || s.Guard == NoTwin):
		e.add("shadow.engine.dsn", "has %d connection strings for %d copies and the twin: give one for all, or one for each, that of shadow.d0 first, then those of shadow.d1 in their order and that of shadow.twin, and last that of shadow.guard if there is a guard", n, copies)
	case s.TwinSchema() == "" && n != copies:
		e.add("shadow.engine.dsn", "has %d connection strings for %d copies: give one for all, or one for each, that of shadow.d0 first and then those of shadow.d1 in their order", n, copies)
	}
	for i, dsn := range s.Engine.DSN {
		path := fmt.Sprintf("shadow.engine.dsn[%d]", i)
		if dsn == "" {
			e.add(path, "missing: the engine's connection string")
		}
		e.connection(path, dsn)
	}
}
