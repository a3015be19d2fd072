// Package body reads the bodies of functions, which PostgreSQL keeps as text: their statements and the names in them.
// It is pure.
package body

import "github.com/dpwatch/dpwatch/internal/pg/ident"

// Scope is what the names in the body of an SQL function may refer to.
type Scope struct {
	Moved      []ident.Table // relations with a copy of the same name in another schema
	Public     []ident.Table // relations that the copies read in place
	Others     []ident.Table // relations that the copies must not read
	SearchPath []string
	Arguments  int // $1 to $Arguments are values
}

// Renamer returns the body of an SQL function in which the moved relations are in schema. reads is false if the body
// reads none of them. An error says why the body cannot be changed.
type Renamer func(body, schema string, scope Scope) (renamed string, reads bool, err error)
