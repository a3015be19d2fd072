package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
)

// ApplicationName identifies the reader in pg_stat_activity.
const ApplicationName = "dpwatch-engine"

// readTimeout bounds one reading.
const readTimeout = time.Minute

// Reader reads the functions of a database whenever they have changed. It keeps one session open. It is safe for
// concurrent use.
type Reader struct {
	dsn     string
	timeout time.Duration
	limits  body.Limits

	mu          sync.Mutex // guards the fields below
	conn        *pgx.Conn
	version     int // of the server of conn
	fingerprint string
	snapshot    *Snapshot
}

// NewReader returns a Reader of a database. timeout bounds an attempt to connect; limits are those of the bodies that
// are parsed.
func NewReader(dsn string, timeout time.Duration, limits body.Limits) *Reader {
	return &Reader{dsn: dsn, timeout: timeout, limits: limits}
}

// Read returns the present functions: the same Snapshot as before unless something has changed. Errors do not quote the
// connection string; the messages of the server are withheld.
func (r *Reader) Read(ctx context.Context) (*Snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s, err := r.read(ctx)
	if err != nil {
		r.close()
		return nil, fmt.Errorf("read the engine's functions: %w", sqlstate.Withhold(err))
	}
	return s, nil
}

// Close closes the session; a later Read opens another one.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close()
}

func (r *Reader) close() {
	if r.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = r.conn.Close(ctx)
		r.conn = nil
	}
}

func (r *Reader) read(ctx context.Context) (*Snapshot, error) {
	if r.conn == nil {
		conn, err := connect.Open(ctx, r.dsn, connect.Options{Application: ApplicationName, Timeout: r.timeout, ReadOnly: true})
		if err != nil {
			return nil, err
		}
		r.conn = conn
		if r.version, err = connect.Value[int](ctx, conn, "SELECT pg_catalog.current_setting('server_version_num')::int"); err != nil {
			return nil, err
		}
	}
	now, err := r.state(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	if r.snapshot != nil {
		if now == r.fingerprint {
			return r.snapshot, nil
		}
		r.close() // a session keeps the settings with which it began
		r.snapshot = nil
		return r.read(ctx)
	}
	var s *Snapshot
	err = pgx.BeginTxFunc(ctx, r.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if now, err = r.state(ctx, tx); err != nil {
			return err
		}
		// Names in readSnapshot are looked up only in pg_catalog, and PostgreSQL prints all others with their schema.
		if err = connect.Run(ctx, tx, "SET LOCAL search_path TO pg_catalog"); err == nil {
			s, err = readSnapshot(ctx, tx, r.limits, r.version)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.snapshot, r.fingerprint = s, now
	return s, nil
}

// state returns a text that changes with what readSnapshot reads.
func (r *Reader) state(ctx context.Context, conn connect.Conn) (string, error) {
	functions, err := connect.Value[string](ctx, conn, fingerprint)
	if err != nil {
		return "", err
	}
	traits, err := traitsFingerprint(ctx, conn, r.version)
	return functions + " " + traits, err
}

// fingerprint selects a text that changes whenever a row of the catalogs changes that readSnapshot reads: each version
// of a row has its own xmin. It is cheap: only rows that are not part of a new database are read, by an index.
var fingerprint = fingerprintOf("pg_proc", "pg_namespace", "pg_extension", "pg_rewrite", "pg_policy", "pg_operator")

func fingerprintOf(tables ...string) string {
	var b strings.Builder
	b.WriteString("SELECT pg_catalog.concat_ws(' '")
	for _, t := range tables {
		b.WriteString(", (SELECT pg_catalog.concat(pg_catalog.count(*), ':', pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', oid, xmin))::bigint))" +
			" FROM pg_catalog." + t + " WHERE oid >= 16384)")
	}
	b.WriteString(", pg_catalog.md5((" + settings + ")))")
	return b.String()
}

// settings returns the versions and settings on which results of functions depend, as one text: initial settings of the
// database and the role for time zones and formats, and all custom ones, such as dp.epsilon.
const settings = `SELECT pg_catalog.string_agg(x.t, E'\n' ORDER BY x.t) FROM (
	SELECT name || '=' || setting AS t FROM pg_catalog.pg_settings
	WHERE name IN ('server_version', 'shared_preload_libraries', 'session_preload_libraries', 'local_preload_libraries')
	UNION ALL
	SELECT pg_catalog.concat_ws(' ', s.setdatabase <> 0, s.setrole <> 0, entry)
	FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) entry
	WHERE s.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
	AND s.setrole IN (0, (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user))
	AND (pg_catalog.split_part(entry, '=', 1) LIKE '%.%' OR pg_catalog.lower(pg_catalog.split_part(entry, '=', 1)) IN
		('search_path', 'timezone', 'datestyle', 'intervalstyle', 'extra_float_digits', 'bytea_output', 'default_text_search_config', 'lc_numeric', 'lc_monetary', 'lc_time',
		'session_preload_libraries', 'local_preload_libraries'))
) x`

// functions returns every function that is not part of a new database, with everything that defines it except owner and
// privileges. {body} is the text of an atomic body.
const functions = `
	SELECT f.oid, n.nspname, f.proname, pg_get_function_identity_arguments(f.oid), l.lanname,
		coalesce({body}, f.prosrc), f.proconfig,
		concat_ws(E'\x01', f.prokind, pg_get_function_arguments(f.oid), pg_get_function_result(f.oid), f.provolatile, f.proisstrict, f.prosecdef, f.proretset,
			f.probin, array_to_string(f.proconfig, E'\x02'),
			(SELECT concat_ws(' ', a.aggkind, a.aggnumdirectargs, a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn,
				a.aggfinalextra, a.aggfinalmodify, a.aggsortop::regoperator, format_type(a.aggtranstype, NULL), 'init', a.agginitval, 'minit', a.aggminitval)
				FROM pg_aggregate a WHERE a.aggfnoid = f.oid),
			(SELECT e.extname || ' ' || e.extversion FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
				WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' LIMIT 1))
	FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace JOIN pg_language l ON l.oid = f.prolang
	WHERE f.oid >= 16384 AND n.nspname NOT LIKE 'pg\_temp\_%' ORDER BY n.nspname, f.proname, 4`

// calls returns pairs of the oids of functions: the first depends on the second, through an atomic body, a default, or
// as an aggregate, directly or through an operator.
const calls = `
	SELECT DISTINCT d.objid, f.oid FROM pg_depend d
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	JOIN pg_proc f ON f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	WHERE d.classid = 'pg_proc'::regclass AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass) AND f.oid >= 16384 AND f.oid <> d.objid
	ORDER BY 1, 2`

// views returns the names of relations with what their queries or policies use: the oid of a function or 0, or the name
// of another relation.
const views = `
	WITH depends AS (
		SELECT w.ev_class AS relation, d.refclassid, d.refobjid FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid WHERE d.classid = 'pg_rewrite'::regclass
		UNION SELECT p.polrelid, d.refclassid, d.refobjid FROM pg_depend d JOIN pg_policy p ON p.oid = d.objid WHERE d.classid = 'pg_policy'::regclass
	)
	SELECT n.nspname, c.relname, coalesce(f.oid, 0), coalesce(m.nspname, ''), coalesce(r.relname, '') FROM depends d
	JOIN pg_class c ON c.oid = d.relation JOIN pg_namespace n ON n.oid = c.relnamespace
	LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
	LEFT JOIN pg_proc f ON f.oid >= 16384 AND f.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE o.oprcode::oid END
	LEFT JOIN pg_class r ON d.refclassid = 'pg_class'::regclass AND r.oid = d.refobjid AND r.oid <> d.relation LEFT JOIN pg_namespace m ON m.oid = r.relnamespace
	WHERE c.oid >= 16384 AND n.nspname NOT LIKE 'pg\_temp\_%' AND (f.oid IS NOT NULL OR r.oid IS NOT NULL)
	ORDER BY 1, 2, 3, 4, 5`

// readSnapshot reads a database in a transaction whose search_path is pg_catalog.
func readSnapshot(ctx context.Context, tx pgx.Tx, limits body.Limits, version int) (*Snapshot, error) {
	s := newSnapshot(limits)
	base, err := connect.Value[string](ctx, tx, settings)
	if err != nil {
		return nil, err
	}
	s.base = sha256.Sum256([]byte("database\x00" + base))
	if s.traits, err = readTraits(ctx, tx, version); err != nil {
		return nil, err
	}
	atomic := "NULL"
	if version >= 140000 { // the first version with atomic bodies
		atomic = "pg_get_function_sqlbody(f.oid)"
	}
	byOID := map[uint32]*function{}
	var oid, callee uint32
	var f function
	var config []string
	var rest string
	if err := each(ctx, tx, strings.Replace(functions, "{body}", atomic, 1), func() {
		one := f
		one.own = sha256.Sum256([]byte(one.language + "\x00" + one.body + "\x00" + rest))
		one.path = pathOf(config)
		byOID[oid] = &one
		s.add(&one)
	}, &oid, &f.Schema, &f.Name, &f.arguments, &f.language, &f.body, &config, &rest); err != nil {
		return nil, err
	}
	if err := each(ctx, tx, calls, func() {
		if from, to := byOID[oid], byOID[callee]; from != nil && to != nil {
			from.calls = append(from.calls, to)
		}
	}, &oid, &callee); err != nil {
		return nil, err
	}
	var view, reads ident.Table
	return s, each(ctx, tx, views, func() {
		v := s.views[view]
		if f := byOID[oid]; f != nil {
			v.calls = append(v.calls, f)
		}
		if reads.Name != "" {
			v.reads = append(v.reads, reads)
		}
		s.views[view] = v
	}, &view.Schema, &view.Name, &oid, &reads.Schema, &reads.Name)
}

// each runs a query, and for every row scans the values and calls do.
func each(ctx context.Context, tx pgx.Tx, sql string, do func(), values ...any) error {
	rows, err := tx.Query(ctx, sql)
	if err == nil {
		_, err = pgx.ForEachRow(rows, values, func() error { do(); return nil })
	}
	return err
}

// pathOf returns the search_path that a function sets for itself, if any.
func pathOf(config []string) []string {
	for _, entry := range config {
		if value, ok := strings.CutPrefix(entry, "search_path="); ok {
			path, _ := ident.ParseList(value)
			return path
		}
	}
	return nil
}
