package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	pg_query "github.com/pganalyze/pg_query_go/v5"
)

// settings are what SHOW answers; clients are sent them when a session begins.
var settings = map[string]string{
	"server_version": "15.0 (example gateway)", "server_encoding": "UTF8", "client_encoding": "UTF8", "DateStyle": "ISO, MDY",
	"integer_datetimes": "on", "standard_conforming_strings": "on", "TimeZone": "UTC", "transaction_isolation": "read committed",
}

// local answers the statements that clients and their drivers send beside queries: SET of statement_timeout and of what
// changes no answer, SHOW, BEGIN, COMMIT and ROLLBACK, SELECT of a whole number. The engine answers the others.
func (s *session) local(r request) (a answer, local bool, err error) {
	tree, err := pg_query.Parse(r.SQL)
	if err != nil || len(tree.Stmts) != 1 {
		return answer{}, false, nil // in the engine's own dialect, or an error of it
	}
	node := tree.Stmts[0].Stmt
	set, show, query, transaction := node.GetVariableSetStmt(), node.GetVariableShowStmt(), node.GetSelectStmt(), node.GetTransactionStmt()
	switch {
	case transaction != nil:
		return s.transaction(strings.TrimPrefix(transaction.Kind.String(), "TRANS_STMT_"), r.Describe)
	case s.status == 'E':
		return answer{}, true, &failure{"25P02", "current transaction is aborted, commands ignored until end of transaction block"}
	case set != nil && set.Name == "statement_timeout" && len(set.Args) == 1 && set.Args[0].GetAConst().GetIval() != nil:
		if !r.Describe {
			s.timeout = time.Duration(set.Args[0].GetAConst().GetIval().GetIval()) * time.Millisecond
		}
		return answer{tag: "SET"}, true, nil
	case set != nil && slices.Contains([]string{"application_name", "extra_float_digits", "client_encoding"}, set.Name):
		return answer{tag: "SET"}, true, nil
	case show != nil:
		for name, value := range settings {
			if strings.EqualFold(name, show.Name) {
				return answer{Columns: []field{{name, "text"}}, Rows: [][]any{{value}}, tag: "SHOW"}, true, nil
			}
		}
		return answer{}, true, &failure{"42704", fmt.Sprintf("this engine has no setting %q", show.Name)}
	case set != nil:
		return answer{}, true, &failure{"0A000", fmt.Sprintf("this engine has no setting %q", set.Name)}
	case query != nil && len(query.FromClause) == 0 && len(query.TargetList) == 1:
		if number := query.TargetList[0].GetResTarget().GetVal().GetAConst().GetIval(); number != nil {
			return answer{Columns: []field{{"?column?", "int8"}}, Rows: [][]any{{int64(number.Ival)}}}, true, nil
		}
	}
	return answer{}, false, nil
}

// transaction follows BEGIN, COMMIT and ROLLBACK.
func (s *session) transaction(kind string, describe bool) (answer, bool, error) {
	if kind == "COMMIT" && s.status == 'E' {
		kind = "ROLLBACK"
	}
	status, ok := map[string]byte{"BEGIN": 'T', "START": 'T', "COMMIT": 'I', "ROLLBACK": 'I'}[kind]
	if !ok {
		return answer{}, true, &failure{"0A000", "this engine has no savepoints and no two-phase commit"}
	}
	if !describe {
		s.status = status
	}
	return answer{tag: strings.ReplaceAll(kind, "START", "BEGIN")}, true, nil
}
