package config

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// engines validates how an engine beside the database is reached.
func (d *decoder) engines(s *Shadow) {
	if !slices.Contains([]string{"captured", "extended", "simple"}, s.Protocol) {
		d.add("shadow.protocol", "%q is not captured, extended or simple", s.Protocol)
	}
	if s.Engine != "" && len(s.Worlds) > 0 {
		d.add("shadow.engine", "give one engine for all worlds (engine) or one for each (worlds), not both")
	}
	if s.Engine != "" {
		d.connection("shadow.engine", s.Engine)
	}
	schemas := append([]string{s.D0}, s.D1...)
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
		d.connection(path+".engine", w.Engine)
	}
	for _, schema := range schemas {
		if len(s.Worlds) > 0 && !seen[schema] {
			d.add("shadow.worlds", "no engine for %q: D0 and every neighbour need one", schema)
		}
	}
}

func (d *decoder) connection(path string, dsn Secret) {
	if _, err := pgx.ParseConfig(dsn.Reveal()); err != nil || dsn == "" {
		d.add(path, "not a PostgreSQL connection string (postgres://user@host:port/database or key=value pairs)")
	}
}
