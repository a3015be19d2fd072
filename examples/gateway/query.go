package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// query is one statement that the engine answers.
type query struct {
	columns []string // the aggregates' names
	sums    []string // by aggregate: the summed column, "" = dp_count(*)
	table   string   // quoted
	where   string   // " WHERE ...", or ""
}

// errRefused describes the statements that the engine answers.
var errRefused = errors.New("this engine answers SELECT dp_count(*), dp_sum(column) FROM table [WHERE column < constant AND ...] only")

// parse parses a SELECT of the engine's grammar.
func parse(sql string) (query, error) {
	tree, err := pg_query.Parse(sql)
	if err != nil {
		return query{}, err
	}
	if len(tree.Stmts) != 1 {
		return query{}, errRefused
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	if s == nil || len(s.FromClause) != 1 || len(s.TargetList) == 0 {
		return query{}, errRefused
	}
	table := s.FromClause[0].GetRangeVar()
	if table == nil || !plain(s) {
		return query{}, errRefused
	}
	q := query{table: pgx.Identifier{table.Relname}.Sanitize()}
	if table.Schemaname != "" {
		q.table = pgx.Identifier{table.Schemaname, table.Relname}.Sanitize()
	}
	for _, target := range s.TargetList {
		if err := q.aggregate(target.GetResTarget()); err != nil {
			return query{}, err
		}
	}
	if s.WhereClause == nil {
		return q, nil
	}
	where, err := condition(s.WhereClause)
	q.where = " WHERE " + where
	return q, err
}

// plain reports whether a SELECT has no unsupported clause.
func plain(s *pg_query.SelectStmt) bool {
	return s.Op == pg_query.SetOperation_SETOP_NONE && s.WithClause == nil && s.HavingClause == nil && s.IntoClause == nil &&
		s.LimitCount == nil && s.LimitOffset == nil &&
		len(s.GroupClause)+len(s.SortClause)+len(s.WindowClause)+len(s.DistinctClause)+len(s.LockingClause) == 0
}

func (q *query) aggregate(target *pg_query.ResTarget) error {
	call := target.GetVal().GetFuncCall()
	if call == nil || len(call.Funcname) != 1 {
		return errRefused
	}
	name, column := call.Funcname[0].GetString_().GetSval(), ""
	switch {
	case name == "dp_count" && call.AggStar:
	case name == "dp_sum" && len(call.Args) == 1:
		var err error
		if column, err = columnName(call.Args[0]); err != nil {
			return err
		}
	default:
		return errRefused
	}
	if target.Name != "" {
		name = target.Name
	}
	q.columns, q.sums = append(q.columns, name), append(q.sums, column)
	return nil
}

// columnName returns a column's name, quoted; names qualified with a table are rejected.
func columnName(n *pg_query.Node) (string, error) {
	fields := n.GetColumnRef().GetFields()
	if len(fields) != 1 || fields[0].GetString_() == nil {
		return "", errRefused
	}
	return pgx.Identifier{fields[0].GetString_().Sval}.Sanitize(), nil
}

// condition returns a WHERE clause of comparisons. No comparison can fail for one row and succeed for another, because
// the error would reveal something about that row.
func condition(n *pg_query.Node) (string, error) {
	if b := n.GetBoolExpr(); b != nil && b.Boolop != pg_query.BoolExprType_NOT_EXPR {
		parts := make([]string, len(b.Args))
		for i, arg := range b.Args {
			var err error
			if parts[i], err = condition(arg); err != nil {
				return "", err
			}
		}
		word := " AND "
		if b.Boolop == pg_query.BoolExprType_OR_EXPR {
			word = " OR "
		}
		return "(" + strings.Join(parts, word) + ")", nil
	}
	e := n.GetAExpr()
	if e == nil || e.Kind != pg_query.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 {
		return "", errRefused
	}
	column, err := columnName(e.Lexpr)
	if err != nil {
		return "", err
	}
	operator := e.Name[0].GetString_().GetSval()
	switch operator {
	case "=", "<>", "<", "<=", ">", ">=":
	default:
		return "", errRefused
	}
	constant := e.Rexpr.GetAConst()
	switch {
	case constant.GetIval() != nil:
		return fmt.Sprintf("%s %s %d", column, operator, constant.GetIval().Ival), nil
	case constant.GetSval() != nil:
		return column + " " + operator + " '" + strings.ReplaceAll(constant.GetSval().Sval, "'", "''") + "'", nil
	}
	return "", errRefused
}

// answer queries the source for each user's bounded contribution and adds the noise.
func (e engine) answer(ctx context.Context, source *pgx.Conn, q query) ([]float64, error) {
	user := pgx.Identifier{e.user}.Sanitize()
	var inner, outer []string
	for i, column := range q.sums {
		one := fmt.Sprintf("least(count(*), 1)::float8 AS a%d", i)
		switch {
		case e.broken == "no-clip" && column == "":
			one = fmt.Sprintf("count(*)::float8 AS a%d", i)
		case e.broken == "no-clip":
			one = fmt.Sprintf("sum(%s)::float8 AS a%d", column, i)
		case column != "":
			one = fmt.Sprintf("least(greatest(sum(%s)::float8, %g), %g) AS a%d", column, e.low, e.high, i)
		}
		inner = append(inner, one)
		outer = append(outer, fmt.Sprintf("coalesce(sum(a%d), 0)", i))
	}
	sql := fmt.Sprintf("SELECT %s FROM (SELECT %s FROM %s%s GROUP BY %s) AS users",
		strings.Join(outer, ", "), strings.Join(inner, ", "), q.table, q.where, user)
	values := make([]float64, len(q.sums))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	if err := source.QueryRow(ctx, sql).Scan(into...); err != nil {
		return nil, err
	}
	for i, column := range q.sums {
		bound, grid := 1.0, 1.0
		if column != "" {
			bound = max(-e.low, e.high)
			grid = bound / steps
		}
		values[i] = e.noisy(values[i], bound, grid, e.epsilon/float64(len(values)))
	}
	return values, nil
}
