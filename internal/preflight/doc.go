// Package preflight checks, before dpwatch run, the databases, engines and addresses that run needs.
//
// In: Options, which name every database, schema, table and function of a configuration. Out: one Check for each object
// that was checked, or could not be. All checks are reported, not only the first fault. Independent parts run
// concurrently, so that a host that does not answer costs one timeout. The package changes nothing, and reads only
// catalogs; Rows alone counts rows.
package preflight

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Status is the result of a check.
type Status string

// The results. A Warning works but should be fixed; a Fault prevents run from working; Unchecked could not be checked.
const (
	OK        Status = "ok"
	Warning   Status = "warning"
	Fault     Status = "fault"
	Unchecked Status = "unchecked"
)

// Check is the result of one check.
type Check struct {
	Name    string `json:"name"`   // what is checked: a configuration key, or a property
	Object  string `json:"object"` // the table, function or address
	Status  Status `json:"status"`
	Message string `json:"message"`
	Fix     string `json:"fix"` // remedy; a text that begins with GRANT is an executable statement
	// Database is where an administrator runs the statements of Fix; "" = it has none.
	Database string `json:"database,omitempty"`
}

// Options lists what a configuration needs.
type Options struct {
	Shadow         string // connection string
	ConnectTimeout time.Duration
	D0             string
	D1             []string
	Twin           string   // schema of a second copy of D0; "" = none
	Protected      []string // schema.table
	Public         []string // schema.table
	SearchPath     []string // of replays: shadow.search_path
	ClientPath     []string // privacy.search_path
	Hoist          bool     // trials may use temporary tables
	// Catalog is the connection string of the engine's database, Source that of the database that the copies were made
	// from; "" = none.
	Catalog, Source string
	Unit            string                    // the table of the privacy unit, schema.table; "" = not configured
	Set             func(context.Context) Set // reads the record of the set; nil = the copies are hand-made
	// Functions are the entries of claims.functions, Safe those of claims.safe_functions.
	Functions []Function
	Safe      []string
	// Beside: the engine is beside the database, and its functions are not in the shadow database.
	Beside bool
}

// Function is a declared DP function.
type Function struct {
	Name           string
	Epsilon, Delta int // positions of arguments; 0 = none
}

// Task is one independent part of the checks.
type Task func(ctx context.Context) []Check

// Run runs tasks concurrently and returns their checks in the order of the tasks.
func Run(ctx context.Context, tasks ...Task) []Check {
	results := make([][]Check, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { results[i] = task(ctx) })
	}
	group.Wait()
	return slices.Concat(results...)
}

// Count returns the number of checks with a status.
func Count(checks []Check, s Status) int {
	n := 0
	for _, c := range checks {
		if c.Status == s {
			n++
		}
	}
	return n
}

// Grants returns the GRANT statements in the checks, each once, in order, by the database to run them in; databases has
// these in order.
func Grants(checks []Check) (databases []string, grants map[string][]string) {
	grants = map[string][]string{}
	for _, c := range checks {
		for line := range strings.SplitSeq(c.Fix, "\n") {
			if !strings.HasPrefix(line, "GRANT ") || slices.Contains(grants[c.Database], line) {
				continue
			}
			if len(grants[c.Database]) == 0 {
				databases = append(databases, c.Database)
			}
			grants[c.Database] = append(grants[c.Database], line)
		}
	}
	return databases, grants
}
