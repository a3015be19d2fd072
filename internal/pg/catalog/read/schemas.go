package read

import (
	"context"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
)

// Schemas returns the named schemas that exist, and for each whether the current role may use it.
func Schemas(ctx context.Context, conn connect.Conn, names ...string) (map[string]bool, error) {
	rows, err := connect.Structs[struct {
		Name  string
		Usage bool
	}](ctx, conn, `SELECT nspname, pg_catalog.has_schema_privilege(oid, 'USAGE')
		FROM pg_catalog.pg_namespace WHERE nspname = ANY ($1::text[])`, names)
	found := map[string]bool{}
	for _, r := range rows {
		found[r.Name] = r.Usage
	}
	return found, err
}
