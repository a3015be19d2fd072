package replay

import (
	"context"
	"strings"
)

// Epoch names the state of the copies: which relations, in which files, the schemas hold. It changes when copies are
// made anew (dpwatch neighbours refresh, or by hand with DROP, RENAME or TRUNCATE), and outcomes from before and after
// must not be mixed then. Rows that are changed in place do not show. Errors are as those of Check.
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
