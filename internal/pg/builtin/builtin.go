// Package builtin lists what is known of PostgreSQL's built-in functions.
//
// In: the name of a function of pg_catalog. Out: its class, what a replay may do with it. The list was written for some
// versions of the server; every release may add functions, and minor releases do. A function that is not listed must be
// treated as one that has side effects and reads anything.
package builtin

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed functions.txt
var list string

// Class says what a replay may do with a function; functions.sql explains the classes.
type Class string

// The classes.
const (
	Unlisted      Class = ""     // nothing is known of it
	Safe          Class = "safe" // the same result on every neighbour
	Volatile      Class = "volatile"
	Never         Class = "never" // reads names, the catalog, files or the session's state
	NeverVolatile Class = "never-volatile"
)

var classes = sync.OnceValue(func() map[string]Class {
	m := map[string]Class{}
	for line := range strings.Lines(list) {
		if name, class, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			m[name] = Class(class)
		}
	}
	return m
})

// Of returns the class of a name. All overloads of a name have one class.
func Of(name string) Class { return classes()[name] }
