// Package preflight checks, before dpwatch run does, what run will need of databases, engines and addresses.
//
// In: Options, which name every database, schema, table and function of a configuration. Out: one Check for each thing that
// was looked at, or could not be. All of them are reported, not the first fault; parts that do not depend on each other run
// at the same time, so that a host that does not answer costs one timeout. It changes nothing and reads catalogs only.
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

// The results. A Warning works and is not wise; a Fault keeps run from working; Unchecked could not be looked at.
const (
	OK        Status = "ok"
	Warning   Status = "warning"
	Fault     Status = "fault"
	Unchecked Status = "unchecked"
)

// Check is one thing that was looked at.
type Check struct {
	Name    string `json:"name"`   // what is checked: a key of the configuration, or a property
	Object  string `json:"object"` // the table, function or address
	Status  Status `json:"status"`
	Message string `json:"message"`
	Fix     string `json:"fix"` // what to do; a statement that begins with GRANT is ready to be run
}

// Options names what a configuration needs.
type Options struct {
	Shadow         string // connection string
	ConnectTimeout time.Duration
	D0             string
	D1             []string
	Protected      []string // schema.table
	Public         []string // schema.table
	SearchPath     []string // of replays: shadow.search_path
	ClientPath     []string // privacy.search_path
	Hoist          bool     // trials may use temporary tables
	// Catalog is the connection string of the engine's database; "" = none.
	Catalog string
	// Functions are those of claims.functions, Safe those of claims.safe_functions.
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

// Task is one part of the checks that does not depend on others.
type Task func(ctx context.Context) []Check

// Run runs tasks at the same time and returns their checks in the order of the tasks.
func Run(ctx context.Context, tasks ...Task) []Check {
	results := make([][]Check, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { results[i] = task(ctx) })
	}
	group.Wait()
	return slices.Concat(results...)
}

// Count returns how many checks have a status.
func Count(checks []Check, s Status) int {
	n := 0
	for _, c := range checks {
		if c.Status == s {
			n++
		}
	}
	return n
}

// Grants returns the statements that the checks ask for, each once, in their order.
func Grants(checks []Check) []string {
	var all []string
	for _, c := range checks {
		for line := range strings.SplitSeq(c.Fix, "\n") {
			if strings.HasPrefix(line, "GRANT ") && !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}
