package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/replay/hoist"
)

// explainAttempts is how often a statement is explained whose execution fails: it may fail only sometimes.
const explainAttempts = 5

// comparePlans compares the plans of the query on the hoisted tables with those of the whole query, in the session of
// its tables: PostgreSQL decides where volatile functions are evaluated, and how often. An *unhoistable says what
// differs.
func (h *hoisted) comparePlans(ctx context.Context, conn *pgconn.PgConn, worlds []string, know hoist.Knowledge, named bool) error {
	modes := []bool{false}
	if named && len(h.values) > 0 {
		modes = append(modes, true) // the server may choose either
	}
	for i := range worlds {
		for _, generic := range modes {
			whole, err := h.shape(ctx, conn, worlds[i], know, generic)
			if err != nil {
				return err
			}
			rest, err := h.shape(ctx, conn, h.rests[i], know, generic)
			if err != nil {
				return err
			}
			if what := rest.Difference(whole); what != "" {
				return &unhoistable{reason: "PostgreSQL would execute the random part in another way: " + what}
			}
		}
	}
	return nil
}

// shape executes a statement once, and returns the shape of its plan.
func (h *hoisted) shape(ctx context.Context, conn *pgconn.PgConn, sql string, know hoist.Knowledge, generic bool) (s hoist.Shape, err error) {
	const explain = "EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT JSON) "
	for range explainAttempts {
		var plan []byte
		if generic {
			plan, err = h.explainGeneric(ctx, conn, explain, sql)
		} else {
			plan, err = explained(conn.ExecParams(ctx, explain+sql, h.values, h.oids, h.format, nil).Read())
		}
		if err == nil {
			if s, err = hoist.ReadShape(plan, know); err != nil {
				return s, &unhoistable{reason: err.Error()}
			}
			return s, nil
		}
		if !errors.As(err, new(*pgconn.PgError)) {
			break
		}
	}
	if errors.Is(err, errBinary) {
		return s, errBinary
	}
	return s, serverReason("EXPLAIN ANALYZE of the query", err)
}

// explainGeneric explains the generic plan of a statement with parameters.
func (h *hoisted) explainGeneric(ctx context.Context, conn *pgconn.PgConn, explain, sql string) ([]byte, error) {
	types, values := make([]string, len(h.values)), make([]string, len(h.values))
	for i, v := range h.values {
		oid := strconv.FormatUint(uint64(h.oids[i]), 10)
		answer := conn.ExecParams(ctx, "SELECT pg_catalog.format_type($1::pg_catalog.oid, NULL)", [][]byte{[]byte(oid)}, nil, nil, nil).Read()
		if answer.Err != nil {
			return nil, answer.Err
		}
		types[i], values[i] = string(answer.Rows[0][0]), "NULL"
		switch {
		case v == nil:
		case i < len(h.format) && h.format[i] != 0:
			return nil, errBinary
		default:
			values[i] = "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(string(v)) + "'"
		}
	}
	const end = "DEALLOCATE dpwatch_plan; RESET plan_cache_mode"
	_, err := conn.Exec(ctx, fmt.Sprintf("SET plan_cache_mode = force_generic_plan; PREPARE dpwatch_plan (%s) AS %s", strings.Join(types, ", "), sql)).ReadAll()
	if err != nil {
		return nil, err
	}
	plan, err := explained(conn.ExecParams(ctx, fmt.Sprintf("%sEXECUTE dpwatch_plan (%s)", explain, strings.Join(values, ", ")), nil, nil, nil, nil).Read())
	if _, failed := conn.Exec(ctx, end).ReadAll(); err == nil {
		err = failed
	}
	return plan, err
}

var errBinary = &unhoistable{reason: "the client's statement has a name and parameters in binary form: its generic plan cannot be compared"}

// explained returns the plan in the answer to EXPLAIN (FORMAT JSON).
func explained(answer *pgconn.Result) ([]byte, error) {
	if answer.Err != nil {
		return nil, answer.Err
	}
	var plan []byte
	for _, row := range answer.Rows {
		for _, field := range row {
			plan = append(plan, field...)
		}
	}
	return plan, nil
}
