package draft

import (
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// signature is a rule of claims.functions, with the reason for it.
type signature struct {
	name           string
	epsilon, delta int
	why            string
}

// numbers are the types that noise is added to.
var numbers = []string{"smallint", "integer", "bigint", "numeric", "real", "double precision"}

// known are the beginnings of the names of DP aggregates whose last argument is the epsilon.
var known = []string{"anon_count", "anon_sum", "anon_avg", "anon_var", "anon_stddev", "anon_ntile"}

// functionsOf returns the functions with an argument for the epsilon, one signature for each name, and those that may
// add noise.
func functionsOf(s schema) (dp []signature, noise []function) {
	seen := map[string]bool{}
	for _, f := range s.functions {
		name := nameOf(f.Schema, f.Name)
		if seen[name] {
			continue
		}
		one, ok := signatureOf(f)
		if ok {
			one.name = name
			if lastInAll(s.functions, f) {
				one.epsilon = -1
			}
			dp = append(dp, one)
		}
		few := !ok && f.Volatile && len(f.Types) > 0 && slices.Contains(numbers, f.Types[0]) && slices.Contains(numbers, f.Result)
		if few {
			f.Name = name
			noise = append(noise, f)
		}
		seen[name] = ok || few
	}
	return dp, noise
}

// nameOf returns the name of a function in claims.functions.
func nameOf(schema, name string) string {
	if schema != "public" {
		return schema + "." + name
	}
	return name
}

// noisyViews returns the views that call one of the functions.
func noisyViews(calls []call, dp []signature) (views []ident.Table) {
	for _, c := range calls {
		view := ident.Table{Schema: c.ViewSchema, Name: c.View}
		if !slices.Contains(views, view) && slices.ContainsFunc(dp, func(s signature) bool { return s.name == nameOf(c.Schema, c.Name) }) {
			views = append(views, view)
		}
	}
	return views
}

// lastInAll reports whether the epsilon is the last argument in every form of a function that has one.
func lastInAll(all []function, one function) bool {
	return !slices.ContainsFunc(all, func(f function) bool {
		s, ok := signatureOf(f)
		return ok && f.Schema == one.Schema && f.Name == one.Name && s.epsilon > 0 && (s.epsilon != len(f.Types) || s.delta > 0)
	})
}

// signatureOf finds the argument with the epsilon: by its name, or by the name of the function.
func signatureOf(f function) (one signature, ok bool) {
	for i, name := range f.Names {
		switch strings.ToLower(name) {
		case "epsilon", "eps", "_epsilon", "p_epsilon":
			one.epsilon, one.why = i+1, "its argument "+word(name)
		case "delta", "_delta", "p_delta":
			one.delta = i + 1
		}
	}
	if one.epsilon > 0 {
		return one, true
	}
	prefixed := slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(f.Name, p) })
	return signature{epsilon: -1, why: "a name of a known engine: the last argument"}, prefixed
}
