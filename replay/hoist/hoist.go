package hoist

import (
	"errors"
	"fmt"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Plan is one world's query in two parts. Without Pieces there is nothing to hoist, and Reason says why.
type Plan struct {
	Pieces []Piece // in the order of creation: a later one may read an earlier one
	Rest   string  // the query of every trial
	Reason string  // why there are no pieces
	// MayCorrelate reports that a piece was a subquery of an expression, or LATERAL, and may read columns of the
	// enclosing query. The server rejects such a piece.
	MayCorrelate bool
}

// Piece is one query to materialize as a temporary table. Parameters keep their numbers.
type Piece struct {
	Name  string // of the table; valid without quotes
	Query string // a SELECT
}

// Options selects what is hoisted.
type Options struct {
	Knowledge Knowledge
	// Prefix begins the names of the tables, which must be unique in a session. It consists of lower-case letters,
	// digits and _.
	Prefix string
	// NoSubLinks leaves subqueries in expressions unchanged, so that the plan never has MayCorrelate set.
	NoSubLinks bool
	// NoSplit does not split queries that add noise to the result of an aggregation.
	NoSplit bool
	// Eager also computes expressions in advance that PostgreSQL may skip: a piece may fail where the query does not.
	Eager bool
}

// Split returns the plan for a query. It returns an error if sql is not one SELECT that can be parsed, or if a part of
// the plan cannot be written as SQL text.
func Split(sql string, opt Options) (Plan, error) {
	stmt, err := parse(sql)
	if err != nil {
		return Plan{}, err
	}
	a := &analysis{know: opt.Knowledge, selects: map[*pg_query.SelectStmt]*properties{}}
	top := a.query(stmt, nil)
	switch {
	case a.reason != "":
		return Plan{Reason: a.reason}, nil
	case !top.varies:
		return Plan{Reason: "it is deterministic: every trial returns the same result"}, nil
	}
	a.counted = true
	h := &hoister{
		analysis: a, opt: opt, kept: map[*cte]bool{}, tables: map[*cte]*piece{}, same: map[string]*piece{},
	}
	h.rest(stmt, false)
	if len(h.pieces) == 0 {
		return Plan{Reason: "no part that reads a table is deterministic"}, nil
	}
	plan := Plan{}
	if plan.Rest, err = write(stmt); err != nil {
		return Plan{}, fmt.Errorf("the random part: %w", err)
	}
	for _, p := range h.ordered() {
		query, err := write(h.assemble(p))
		if err != nil {
			return Plan{}, fmt.Errorf("a deterministic part: %w", err)
		}
		plan.Pieces = append(plan.Pieces, Piece{Name: p.name, Query: query})
		plan.MayCorrelate = plan.MayCorrelate || p.mayCorrelate
	}
	return plan, nil
}

// Deterministic reports whether a query gives the same result in every trial according to Knowledge. Use it for the
// definitions of views.
func Deterministic(sql string, k Knowledge) bool {
	stmt, err := parse(sql)
	if err != nil {
		return false
	}
	a := &analysis{know: k, selects: map[*pg_query.SelectStmt]*properties{}}
	return !a.query(stmt, nil).varies && a.reason == ""
}

// Relations returns the schema-qualified relations that a query names, each once.
func Relations(sql string) ([]Relation, error) {
	stmt, err := parse(sql)
	if err != nil {
		return nil, err
	}
	var found []Relation
	seen := map[Relation]bool{}
	pgparse.Inspect(stmt.ProtoReflect(), func(m proto.Message) bool {
		if v, ok := m.(*pg_query.RangeVar); ok && v.GetSchemaname() != "" {
			if r := relationOf(v); !seen[r] {
				seen[r] = true
				found = append(found, r)
			}
		}
		return true
	})
	return found, nil
}

// parse returns the tree of a text that is one SELECT.
func parse(sql string) (*pg_query.SelectStmt, error) {
	tree, err := pgparse.Parse(sql)
	var limit *pgparse.LimitError
	switch {
	case errors.As(err, &limit):
		return nil, limit
	case err != nil:
		return nil, errors.New("the query does not parse")
	}
	if len(tree.GetStmts()) != 1 || tree.GetStmts()[0].GetStmt().GetSelectStmt() == nil {
		return nil, errors.New("not one SELECT")
	}
	return tree.GetStmts()[0].GetStmt().GetSelectStmt(), nil
}

// write returns the text of a tree. It parses the text again and returns an error if the trees differ in more than
// locations.
func write(stmt *pg_query.SelectStmt) (string, error) {
	want := proto.CloneOf(stmt)
	pgparse.ClearLocations(want.ProtoReflect())
	sql, err := pgparse.Deparse(&pg_query.ParseResult{Stmts: []*pg_query.RawStmt{{
		Stmt: &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: want}},
	}}})
	if err != nil {
		return "", errors.New("it cannot be written as SQL text")
	}
	got, err := parse(sql)
	if err != nil {
		return "", fmt.Errorf("its SQL text: %w", err)
	}
	pgparse.ClearLocations(got.ProtoReflect())
	if !proto.Equal(want, got) {
		return "", errors.New("its SQL text parses to another tree")
	}
	return sql, nil
}
