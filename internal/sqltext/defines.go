package sqltext

import (
	"slices"
	"strings"
)

// Redefinition is what a completed statement changed in the definitions of the database.
type Redefinition uint8

// The redefinitions.
const (
	NoChange   Redefinition = iota
	NewNames                // relations and indexes were created: expressions in them can call functions
	NewMeaning              // a name can mean something else than before: a view, function, rule, trigger, cast, setting of a role
)

// Redefines returns what a completed statement with this effect and command tag changed. A dropped object changes
// nothing: no other statement reaches more than before. Neither do objects of the session alone, whose names no catalog
// has.
func (e Effect) Redefines(tag string) Redefinition {
	temporary := slices.ContainsFunc(e.Temps, func(c TempChange) bool { return c.Made != "" })
	verb, what, _ := strings.Cut(tag, " ")
	switch verb {
	case "CREATE":
		switch what {
		case "ROLE", "DATABASE", "TABLESPACE", "SUBSCRIPTION", "PUBLICATION", "STATISTICS":
			return NoChange
		case "TABLE", "TABLE AS", "INDEX", "SEQUENCE", "FOREIGN TABLE", "SCHEMA":
			if temporary {
				return NoChange
			}
			return NewNames
		case "VIEW":
			if temporary {
				return NoChange
			}
		}
		return NewMeaning
	case "ALTER", "IMPORT", "SECURITY":
		return NewMeaning
	}
	return NoChange
}

// MayRedefine reports whether the text of a DO statement has words with which it can change definitions.
func MayRedefine(sql string) bool {
	return containsAround(sql, "", "create") || containsAround(sql, "", "alter") || containsAround(sql, "", "execute")
}
