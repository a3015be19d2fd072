package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Check returns an error if the engines, if any, or the shadow database cannot be reached, or if a schema does not
// contain every table (names without schema), readable for the role, with the columns of the table in d0 in the same
// physical order. It returns the first error, a SetupError or Transient error. The warnings name what works but should
// be corrected, such as privileges of the role beyond reading the copies, or a twin that cannot be used.
func (p *Player) Check(ctx context.Context, d0 string, d1, tables []string) (warnings []string, err error) {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	query := func(columns int, sql string, args ...string) ([][][]byte, error) {
		return ask(ctx, conn, "check the shadow database", columns, sql, args...)
	}
	schemas := append([]string{d0}, d1...)
	if warnings, err = p.rights(ctx, conn, p.opt.withTwin(schemas)); err != nil {
		return nil, err
	}
	fault, err := p.twinFault(query, d0)
	if err != nil {
		return nil, err
	}
	if fault != "" {
		warnings = append(warnings, fault)
	}
	for _, table := range tables {
		want, err := p.columnsOf(query, schemas, d0, table)
		if err != nil {
			return nil, err
		}
		for _, schema := range d1 {
			got, err := p.columnsOf(query, schemas, schema, table)
			if err != nil {
				return nil, err
			}
			if got != want {
				return nil, &SetupError{
					Op:   fmt.Sprintf("%s.%s", schema, table),
					Hint: fmt.Sprintf("its columns differ from %s.%s (%s against %s): create the copies again, with the same columns in the same order", d0, table, got, want),
				}
			}
		}
	}
	return warnings, p.checkEngines(ctx)
}

// ask returns the rows of one of dpwatch's own queries, with arguments and values in text format. Every row has the
// given number of columns, none of them NULL: the server may be another than expected, such as a pooler, a proxy or an
// engine. op names the query in errors, which are SetupErrors or Transient errors.
func ask(ctx context.Context, conn *pgconn.PgConn, op string, columns int, sql string, args ...string) (rows [][][]byte, err error) {
	values := make([][]byte, len(args))
	for i, a := range args {
		values[i] = []byte(a)
	}
	var result *pgconn.Result
	if err := guarded(func() error { result = conn.ExecParams(ctx, sql, values, nil, nil, nil).Read(); return nil }); err != nil {
		return nil, &transientError{op: op, err: err}
	}
	if result.Err != nil {
		_, err := classify(result.Err)
		if err == nil {
			err = &SetupError{Op: op, err: result.Err}
		}
		return nil, err
	}
	for _, row := range result.Rows {
		if len(row) != columns {
			return nil, unexpectedAnswer(op, fmt.Sprintf("a row of %d columns instead of %d", len(row), columns))
		}
		if slices.ContainsFunc(row, func(v []byte) bool { return v == nil }) {
			return nil, unexpectedAnswer(op, "NULL where no value can be NULL")
		}
	}
	return result.Rows, nil
}

// askRow is ask for a query whose answer has one row.
func askRow(ctx context.Context, conn *pgconn.PgConn, op string, columns int, sql string, args ...string) ([][]byte, error) {
	rows, err := ask(ctx, conn, op, columns, sql, args...)
	switch {
	case err != nil:
		return nil, err
	case len(rows) != 1:
		return nil, unexpectedAnswer(op, fmt.Sprintf("%d rows instead of 1", len(rows)))
	}
	return rows[0], nil
}

// unexpectedAnswer returns the error for an answer that no PostgreSQL gives to one of dpwatch's own queries.
func unexpectedAnswer(op, what string) error {
	return &SetupError{Op: op, Hint: "the server's answer has " + what + ": the connection string must lead to PostgreSQL itself, and nothing between may change answers"}
}

// askOnce is ask in a session of its own.
func (p *Player) askOnce(ctx context.Context, op string, columns int, sql string, args ...string) ([][][]byte, error) {
	conn, err := p.connect(ctx, Statement{})
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to be done about it
	return ask(ctx, conn, op, columns, sql, args...)
}

// isTrue reports whether a boolean value from ask is true.
func isTrue(v []byte) bool { return string(v) == "t" }

// columnsOf returns the names and types of a table's columns in physical order, and an error if the role may not read
// them. schemas are all schemas that the role must read, for the GRANT statements in the error.
func (p *Player) columnsOf(query func(int, string, ...string) ([][][]byte, error), schemas []string, schema, table string) (string, error) {
	rows, err := query(2, `SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
		FROM pg_catalog.pg_attribute a
		JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY a.attnum`, schema, table)
	if err != nil {
		return "", err
	}
	if len(rows) == 0 {
		return "", &SetupError{
			Op:   fmt.Sprintf("%s.%s", schema, table),
			Hint: "does not exist in the shadow database: create the neighbouring copies, or correct shadow.d0, shadow.d1 and privacy.protected",
		}
	}
	columns := make([]string, len(rows))
	for i, r := range rows {
		columns[i] = string(r[0]) + " " + string(r[1])
	}
	granted, err := query(1, `SELECT pg_catalog.has_schema_privilege($1, 'USAGE')
		AND pg_catalog.has_table_privilege(pg_catalog.format('%I.%I', $1::text, $2::text), 'SELECT')`, schema, table)
	if err != nil {
		return "", err
	}
	if len(granted) != 1 || !isTrue(granted[0][0]) {
		return "", &SetupError{
			Op:   fmt.Sprintf("%s.%s", schema, table),
			Hint: "the replay role may not read it: " + strings.Join(p.Grants(schemas), "; "),
		}
	}
	return strings.Join(columns, ", "), nil
}

// Tables returns the names of the tables and views in a schema that the role may read, sorted.
func (p *Player) Tables(ctx context.Context, schema string) ([]string, error) {
	rows, err := p.askOnce(ctx, "list tables", 1, `SELECT c.relname FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
		AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid, 'SELECT')
		ORDER BY 1`, schema)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = string(row[0])
	}
	return names, nil
}

// NoTables returns an error that says why Tables returned none for a schema: the schema does not exist, is empty, or
// the role may not use it or read its tables.
func (p *Player) NoTables(ctx context.Context, schema string) error {
	rows, err := p.askOnce(ctx, "check schema "+schema, 2, `SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
			(SELECT count(*) FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f'))
		FROM pg_catalog.pg_namespace n WHERE n.nspname = $1`, schema)
	if err != nil {
		return err
	}
	setup := &SetupError{Op: fmt.Sprintf("schema %q in database %s", schema, p.cfg.Database)}
	copies, role := ident.Quote(schema), ident.Quote(p.cfg.User)
	switch {
	case len(rows) == 0:
		setup.Hint = "does not exist: create the copies (`dpwatch neighbours create`), correct the name, which is case-sensitive, or connect to the shadow database"
	case string(rows[0][1]) == "0":
		setup.Hint = "holds no table: create the copies, or correct the name"
	case !isTrue(rows[0][0]):
		setup.Hint = fmt.Sprintf("the role may not use it: GRANT USAGE ON SCHEMA %s TO %s; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s", copies, role, copies, role)
	default:
		setup.Hint = fmt.Sprintf("the role may read no table of it: GRANT SELECT ON ALL TABLES IN SCHEMA %s TO %s", copies, role)
	}
	return setup
}
