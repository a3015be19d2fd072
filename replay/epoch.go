package replay

import (
	"context"
	"strings"
)

// Epoch returns an identifier of the state of the copies: the relations in the schemas and their files. It changes when
// copies are created again (by dpwatch neighbours refresh, or manually with DROP, RENAME or TRUNCATE). Outcomes from before
// and after a change must not be mixed. Rows changed in place do not change it. Errors are as for Check.
func (p *Player) Epoch(ctx context.Context, schemas []string) (string, error) {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	rows, err := ask(ctx, conn, "read the epoch of the copies", `
		SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(pg_catalog.concat_ws(' ', n.nspname, c.relname, c.oid, c.relfilenode), ',' ORDER BY c.oid), ''))
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = ANY (pg_catalog.string_to_array($1, pg_catalog.chr(1))) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`, strings.Join(schemas, "\x01"))
	if err != nil {
		return "", err
	}
	return string(rows[0][0]), nil
}
