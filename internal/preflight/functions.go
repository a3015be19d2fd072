package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/connect"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/spelling"
)

// callable is the condition that the role may call the function f of the schema n.
const callable = "pg_catalog.has_function_privilege(f.oid, 'EXECUTE') AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')"

// functionsQuery returns every function that is not built in or whose name is among $1: schema, name, number of
// arguments, whether the last is variadic, volatility, whether the role may use its schema and call it, its signature,
// whether its body draws random numbers.
const functionsQuery = `SELECT n.nspname, f.proname, f.pronargs, f.provariadic <> 0, CASE f.prokind WHEN 'a' THEN 'v' ELSE f.provolatile::text END,
	pg_catalog.has_schema_privilege(n.oid, 'USAGE'), pg_catalog.has_function_privilege(f.oid, 'EXECUTE'), f.oid::regprocedure::text, l.lanname IN ('sql', 'plpgsql') AND f.prosrc ~* '\mrandom\s*\('
	FROM pg_catalog.pg_proc f JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace JOIN pg_catalog.pg_language l ON l.oid = f.prolang
	WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') OR f.proname = ANY ($1)`

// function is one row of functionsQuery.
type function struct {
	Schema, Name   string
	Arguments      int
	Variadic       bool
	Volatility     string // i, s or v; v of an aggregate, which the server never computes once for several trials, and which cannot be declared
	Usage, MayCall bool
	Signature      string
	Random         bool // its body calls random()
}

func (s *session) allFunctions(ctx context.Context, names []string) ([]function, error) {
	return connect.Structs[function](ctx, s.conn, functionsQuery, ident.BareNames(names))
}

// functions checks that declared functions exist in the search path of replays.
func (s *session) functions(ctx context.Context, o *Options, path []string) {
	var names []string
	for _, f := range o.Functions {
		names = append(names, f.Name)
	}
	names = append(names, o.Safe...)
	if len(names) == 0 {
		return
	}
	all, err := s.allFunctions(ctx, names)
	if err != nil {
		s.failed("claims.functions", err)
		return
	}
	path = append(slices.Clone(path), "pg_catalog")
	for _, f := range o.Functions {
		found := s.resolve("claims.functions", f.Name, all, path)
		s.signature(f, found)
		for _, g := range found {
			s.volatility(g, "draws noise")
		}
	}
	for _, name := range o.Safe {
		for _, g := range s.resolve("claims.safe_functions", name, all, path) {
			if g.Random {
				s.volatility(g, "calls random()")
			}
		}
	}
}

// volatility reports a function with random results that is not declared VOLATILE.
func (s *session) volatility(f function, what string) {
	if f.Volatility != "v" {
		s.add("volatility", f.Signature, Warning, what+" and is not declared VOLATILE: the server may compute it once for all rows or trials",
			"ALTER FUNCTION "+f.Signature+" VOLATILE, in the engine too")
	}
}

// resolve reports whether a declared function is found by its name, and returns its overloads.
func (s *session) resolve(key, name string, all []function, path []string) (found []function) {
	schema, bare, _ := ident.ParseFunction(name)
	qualified := schema != ""
	var elsewhere, known []string
	for _, f := range all {
		onPath := slices.Contains(path, f.Schema)
		if onPath {
			known = append(known, f.Name)
		}
		switch {
		case f.Name != bare:
		case f.Schema == schema || !qualified && onPath:
			found = append(found, f)
		case !slices.Contains(elsewhere, f.Schema):
			elsewhere = append(elsewhere, f.Schema)
		}
	}
	switch meant := spelling.Nearest(bare, known); {
	case len(found) > 0:
		s.callable(key, name, found)
	case len(elsewhere) > 0 && qualified:
		s.add(key, name, Fault, fmt.Sprintf("does not exist in schema %s; it exists in %s", schema, strings.Join(elsewhere, ", ")), "correct the name")
	case len(elsewhere) > 0:
		message := fmt.Sprintf("exists in schema %s of the shadow database, which is not in the search path (%s)", strings.Join(elsewhere, ", "), strings.Join(path[:len(path)-1], ", "))
		status := Fault
		if slices.ContainsFunc(elsewhere, func(schema string) bool { return strings.Contains(s.rolePaths, schema) }) {
			status, message = Warning, message+": sessions whose role or database sets a search_path with it find it"
		}
		s.add(key, name, status, message, "add the schema to shadow.search_path")
	case meant != "":
		s.add(key, name, Fault, "does not exist in the shadow database", "did you mean "+meant+"? Otherwise install the engine's functions there")
	default:
		s.add(key, name, Fault, "does not exist in the shadow database", "install the engine's functions there, in a schema of shadow.search_path, or correct the name")
	}
	return found
}

// callable reports whether the role may call an existing function: that takes USAGE on its schema and EXECUTE on the
// function.
func (s *session) callable(key, name string, found []function) {
	var denied []string
	message := "the role may not call it"
	for _, f := range found {
		if usage := s.usageOf(f.Schema); !f.Usage && !slices.Contains(denied, usage) {
			denied, message = append(denied, usage), "the role may not use its schema"
		}
		if !f.MayCall {
			denied = append(denied, fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", f.Signature, ident.Quote(s.cfg.User)))
		}
	}
	if len(denied) > 0 {
		s.add(key, name, Fault, message, strings.Join(denied, "\n"))
		return
	}
	s.add(key, name, OK, fmt.Sprintf("found as %s", found[0].Signature), "")
}

// signature checks that the arguments of a claim exist in at least one overload.
func (s *session) signature(declared Function, found []function) {
	for i, position := range []int{declared.Epsilon, declared.Delta} {
		if position == 0 || len(found) == 0 {
			continue
		}
		key := []string{"epsilon", "delta"}[i]
		most := 0
		for _, f := range found {
			if f.Variadic {
				most = 1 << 30
			}
			most = max(most, f.Arguments)
		}
		if max(position, -position) > most {
			s.add("claims.functions", declared.Name, Fault, fmt.Sprintf("%s is argument %d, and the function has at most %d", key, position, most), "correct the position; negative ones count from the end")
		}
	}
}
