package replay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// sumLimit is the greatest size of all copies together, in bytes, at which their rows are read to see whether they have
// changed. Larger copies are known by the files of their tables alone.
const sumLimit = 64 << 20

// epochs are the last known states of copies, by their schemas. It is safe for concurrent use.
type epochs struct {
	mu    sync.Mutex // guards the fields below
	known map[string]epoch
}

// epoch is a state of copies.
type epoch struct {
	files string // of the tables, with the tables themselves
	signs string // that rows may have changed: counters
	sums  string // of the rows; "" = to be read again
	first string // sums when they were read first with these files
}

// epochQuery returns one row: what identifies the relations in the schemas $1; their files; files and counters; their
// size; one of $1 that has no relation, or "". Counters come late, may be reset, and count what was rolled back.
const epochQuery = `SELECT coalesce(pg_catalog.string_agg(pg_catalog.concat_ws(' ', n.nspname, c.relname, c.oid, c.relkind), ',' ORDER BY c.oid), ''),
		coalesce(pg_catalog.string_agg(c.relfilenode::text, ',' ORDER BY c.oid), ''),
		coalesce(pg_catalog.string_agg(pg_catalog.concat_ws(' ', c.relfilenode, pg_catalog.pg_stat_get_tuples_inserted(c.oid), pg_catalog.pg_stat_get_tuples_updated(c.oid),
			pg_catalog.pg_stat_get_tuples_deleted(c.oid)), ',' ORDER BY c.oid), ''),
		coalesce(pg_catalog.sum(pg_catalog.pg_table_size(c.oid)) FILTER (WHERE c.relkind IN ('r', 'm')), 0)::pg_catalog.int8,
		coalesce((SELECT s FROM pg_catalog.unnest($1::text[]) s EXCEPT SELECT pg_catalog.unnest(pg_catalog.array_agg(n.nspname::text)) ORDER BY 1 LIMIT 1), '')
	FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`

// sumsQuery returns the tables of the schemas $1 that hold rows and that the role may read, without partitions, which
// are read with their tables.
const sumsQuery = `SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition
	AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1, 2`

const opEpoch = "read the epoch of the copies"

// Epoch returns an identifier of the state of the copies: the relations in the schemas, and their rows. It changes when
// copies are created again (by dpwatch neighbours create --replace, or manually with DROP, RENAME or TRUNCATE and other
// rows). Rows are read if files or counters are others than before, or after Look, and if all copies together are not
// larger than sumLimit; of larger copies the files of their tables count. Outcomes from before and after a change must
// not be mixed. Errors are as for Check. It is one if a schema has no relation, because copies that are missing are no
// other copies, and if rows have changed in place, because it is not known whether the copies are still neighbours.
func (p *Player) Epoch(ctx context.Context, schemas []string) (string, error) {
	// The form of values as text must be the same in each process.
	conn, err := p.connect(ctx, Statement{Settings: map[string]string{
		"timezone": "UTC", "datestyle": "ISO, MDY", "intervalstyle": "postgres", "extra_float_digits": "1", "bytea_output": "hex", "lc_monetary": "C", "xmlbinary": "base64",
	}})
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	row, err := askRow(ctx, conn, opEpoch, 5, epochQuery, array(schemas))
	if err != nil {
		return "", err
	}
	if missing := string(row[4]); missing != "" {
		return "", p.NoTables(ctx, missing)
	}
	size, err := strconv.ParseInt(string(row[3]), 10, 64)
	if err != nil {
		return "", unexpectedAnswer(opEpoch, "a size that is no number")
	}
	if size > sumLimit {
		return digest(string(row[0]), string(row[1])), nil
	}
	sums, err := p.sumsOf(ctx, conn, schemas, epoch{files: string(row[0]) + string(row[1]), signs: string(row[2])})
	if err != nil {
		return "", err
	}
	return digest(string(row[0]), sums), nil
}

// Look makes the next Epoch read the rows, whatever files and counters say.
func (p *Player) Look() {
	p.epochs.mu.Lock()
	defer p.epochs.mu.Unlock()
	for key, known := range p.epochs.known {
		known.sums = ""
		p.epochs.known[key] = known
	}
}

// sumsOf returns the checksums of the rows, as they were read last if there are no signs of a change. Rows that changed
// in the same files are an error.
func (p *Player) sumsOf(ctx context.Context, conn *pgconn.PgConn, schemas []string, now epoch) (string, error) {
	key := array(schemas)
	p.epochs.mu.Lock()
	known := p.epochs.known[key]
	p.epochs.mu.Unlock()
	if known.sums != "" && known.files == now.files && known.signs == now.signs {
		return known.sums, nil
	}
	var err error
	if now.sums, err = readSums(ctx, conn, key); err != nil {
		return "", err
	}
	p.epochs.mu.Lock()
	defer p.epochs.mu.Unlock()
	if now.first = now.sums; known.files == now.files {
		now.first = known.first
	}
	if now.first != now.sums { // and the next call looks again
		return "", &SetupError{Op: "the copies in " + strings.Join(schemas, ", "), Hint: "their rows have changed in place since dpwatch first read them, so that they may be neighbours no more: " +
			"create the copies again (`dpwatch neighbours create --replace`), or start dpwatch again if all copies were changed alike"}
	}
	p.epochs.known[key] = now
	return now.sums, nil
}

// readSums returns, of each table, the number of its rows and the sum of hashes of their text, in one snapshot: the same
// for the same rows in any order.
func readSums(ctx context.Context, conn *pgconn.PgConn, schemas string) (string, error) {
	tables, err := ask(ctx, conn, opEpoch, 2, sumsQuery, schemas)
	if err != nil || len(tables) == 0 {
		return "", err
	}
	var parts []string
	for i, t := range tables {
		parts = append(parts, fmt.Sprintf(`SELECT %d, count(*), coalesce(pg_catalog.sum(pg_catalog.hashtextextended((dpwatch.*)::text, 0)), 0) FROM %s AS dpwatch`,
			i, ident.Quote(string(t[0]), string(t[1]))))
	}
	rows, err := ask(ctx, conn, opEpoch, 3, strings.Join(parts, " UNION ALL ")+" ORDER BY 1")
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&all, "%s %s\n", row[1], row[2])
	}
	return all.String(), nil
}

// digest returns a hash of texts.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
