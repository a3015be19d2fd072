package read

import (
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
)

func (r *reader) system() error {
	var name string
	return r.each("SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1", add(&r.catalog.System, &name), &name)
}

// builtins selects the names of the functions of pg_catalog. SQL cannot pass a value of type internal; a value of a
// pseudo-type may be a row.
const builtins = `
	SELECT f.proname, bool_or(f.pronargs >= 1 AND f.pronargs - f.pronargdefaults <= 1 AND NOT 'internal'::regtype = ANY (f.proargtypes)),
		bool_or(coalesce(f.pronargs - f.pronargdefaults <= 1 AND f.proargtypes[0] IN (SELECT oid FROM pg_type WHERE typtype = 'p' AND typname NOT IN ('internal', 'cstring')), false))
	FROM pg_proc f WHERE f.pronamespace = 'pg_catalog'::regnamespace GROUP BY f.proname ORDER BY 1`

// unlisted reads the functions of pg_catalog that package builtin does not list: those of a later version of the server
// or of an extension, and those that only the server calls.
func (r *reader) unlisted() error {
	var u catalog.Unlisted
	return r.each(builtins, func() error {
		if builtin.Of(u.Name) == builtin.Unlisted {
			r.catalog.Unlisted = append(r.catalog.Unlisted, u)
		}
		return nil
	}, &u.Name, &u.OfOne, &u.OfRow)
}

// names selects the names of all objects that a statement can name and that are not temporary. The types of arrays have
// no names that clients write.
const names = `
	SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_(toast|temp_|toast_temp_)'
	UNION SELECT f.proname FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE n.nspname !~ '^pg_temp_'
	UNION SELECT t.typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typcategory <> 'A' AND n.nspname !~ '^pg_(toast|temp_|toast_temp_)'
	UNION SELECT oprname FROM pg_operator
	UNION SELECT amname FROM pg_am
	ORDER BY 1`

func (r *reader) names() error {
	var name string
	return r.each(names, add(&r.catalog.Names, &name), &name)
}
