// Package resolve answers what the names in a statement may refer to: relations under a search path, and the overloads
// of functions and operators that the types of a statement's values allow.
//
// In: settings, lists of relations, the tree of a statement, and indexes of catalogs. It does not decide what may be
// replayed. It is pure.
package resolve

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// UserSchema is the search_path entry for the schema with the current user's name.
const UserSchema = "$user"

// Path is the effective search path of one query.
type Path struct {
	Schemas   []string // "$user" replaced
	User      string   // the schema that replaces "$user"; "" = not in the path
	Role      string   // current role: the session's user, or the role of SET ROLE
	Assumed   bool     // given neither by the session nor by a catalog
	Uncertain bool     // the session may have changed it, or it cannot be parsed
	// RoleUncertain: the session may have changed the role.
	RoleUncertain bool
}

// PathOf returns the path of q: the session's own, otherwise byDefault.
func PathOf(q capture.Query, byDefault []string) Path {
	path := byDefault
	value, ok := q.Settings["search_path"]
	p := Path{Uncertain: q.Doubt.Has("search_path"), RoleUncertain: q.Doubt.HasRole(), Assumed: !ok}
	if ok {
		var valid bool
		if path, valid = ident.ParseList(value); !valid {
			p.Uncertain = true
		}
	}
	user := q.User
	for _, setting := range []string{"session_authorization", "role"} {
		if role := q.Settings[setting]; role != "" && role != "none" {
			user = role
		}
	}
	p.Role = user
	for _, s := range path {
		if s == UserSchema {
			p.Uncertain = p.Uncertain || p.RoleUncertain
			if s = user; s == "" {
				continue
			}
			p.User = s
		}
		p.Schemas = append(p.Schemas, s)
	}
	return p
}

// Seen removes the schemas that the server ignores: those that do not exist, or that the role may not use. In the
// shadow database they may exist and be usable for the replay role.
func (p Path) Seen(source *catalog.Index) Path {
	if source == nil {
		return p
	}
	var kept []string
	for _, s := range p.Schemas {
		p.Uncertain = p.Uncertain || p.RoleUncertain && source.DeniesSome(s)
		if IsSystemSchema(s) || IsTempSchema(s) || source.Usable(s, p.Role) {
			kept = append(kept, s)
		}
	}
	p.Schemas = kept
	return p
}

// Has reports whether the path is known and contains a schema.
func (p Path) Has(schema string) bool {
	return slices.Contains(p.Known(), schema)
}

// Known returns the schemas of a path that is certain, otherwise nil.
func (p Path) Known() []string {
	if p.Uncertain {
		return nil
	}
	return p.Schemas
}

// IsTempSchema reports whether a schema holds temporary tables.
func IsTempSchema(s string) bool { return s == "pg_temp" || strings.HasPrefix(s, "pg_temp_") }

// IsSystemSchema reports whether a schema is the server's own.
func IsSystemSchema(s string) bool {
	return s == "information_schema" || strings.HasPrefix(s, "pg_") && !IsTempSchema(s)
}
