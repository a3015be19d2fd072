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
	// Unsure reports that a piece was part of an expression and may need columns of the enclosing query.
	MayCorrelate bool
}

// Piece is one query to materialise as a temporary table. Parameters keep their numbers.
type Piece struct {
	Name  string // unquoted; needs no quotes
	Query string // a SELECT
}

// Options selects what is hoisted.
type Options struct {
	Knowledge Knowledge
	// Prefix starts the names of the tables, which must be unique in a session: lower-case letters, digits and _.
	Prefix string
	// NoSubLinks leaves subqueries in expressions unchanged, so that the plan is never Unsure.
	NoSubLinks bool
	// NoSplit leaves a query that draws noise above an aggregation in one piece.
	NoSplit bool
	// NoRanks leaves self-joins that count random numbers as they are.
	NoRanks bool
}

// Split parses sql and plans it. An error says that the text cannot be parsed, or that the deparsed parts do not parse to
// the planned trees.
func Split(sql string, opt Options) (Plan, error) {
	stmt, err := parse(sql)
	if err != nil {
		return Plan{}, err
	}
	if !opt.NoRanks {
		ranks(stmt)
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
		frozen: map[*pg_query.SelectStmt]bool{}, pushedDown: map[*pg_query.SelectStmt]volatileConditions{}, excluded: map[*cte]bool{},
		subqueries: map[inputsKey]joinInputs{}, repeats: map[*pg_query.SelectStmt]bool{},
	}
	h.freeze(stmt.ProtoReflect())
	h.rest(stmt, false)
	if len(h.pieces) == 0 {
		return Plan{Reason: "no part that reads a table is deterministic"}, nil
	}
	plan := Plan{}
	if plan.Rest, err = write(stmt); err != nil {
		return Plan{}, fmt.Errorf("the volatile part: %w", err)
	}
	for _, p := range h.ordered() {
		query, err := write(h.assemble(p))
		if err != nil {
			return Plan{}, fmt.Errorf("a hoisted part: %w", err)
		}
		plan.Pieces = append(plan.Pieces, Piece{Name: p.name, Query: query})
		plan.MayCorrelate = plan.MayCorrelate || p.mayCorrelate
	}
	return plan, nil
}

// Stable reports whether a query returns the same result on every execution according to Knowledge. It is for the
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

// parse returns the single SELECT of a text.
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

// write deparses a tree, ignoring its locations, then parses the text and compares the trees.
func write(stmt *pg_query.SelectStmt) (string, error) {
	want := proto.CloneOf(stmt)
	pgparse.ClearLocations(want.ProtoReflect())
	sql, err := pgparse.Deparse(&pg_query.ParseResult{Stmts: []*pg_query.RawStmt{{
		Stmt: &pg_query.Node{Node: &pg_query.Node_SelectStmt{SelectStmt: want}},
	}}})
	if err != nil {
		return "", errors.New("cannot be written as text")
	}
	got, err := parse(sql)
	if err != nil {
		return "", fmt.Errorf("as written: %w", err)
	}
	pgparse.ClearLocations(got.ProtoReflect())
	if !proto.Equal(want, got) {
		return "", errors.New("has another meaning when it is parsed again")
	}
	return sql, nil
}
