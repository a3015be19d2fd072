package engine

import (
	"maps"
	"slices"
)

// Differ returns the names of the functions that a query calls, directly or through others, and of which the production
// engine has another definition than the shadow database, or one that the shadow database lacks, sorted. A function of
// which the shadow database has a version for each copy of the data, in the schemas copies, is not compared: it differs
// by the names of schemas. A function that only the shadow database has is none of production's. Snapshots without
// functions do not differ.
func Differ(production, shadow *Snapshot, c Calls, copies []string) []string {
	if production == nil || shadow == nil || len(production.byName) == 0 {
		return nil
	}
	names := map[string]bool{}
	for _, f := range lockedClosure(production, c) {
		if !shadow.has(f, copies) {
			names[f.String()] = true
		}
	}
	return sorted(names)
}

// Called returns the names of the functions that a query calls, directly or through others, sorted.
func (s *Snapshot) Called(c Calls) []string {
	names := map[string]bool{}
	for _, f := range lockedClosure(s, c) {
		names[f.String()] = true
	}
	return sorted(names)
}

func lockedClosure(s *Snapshot, c Calls) []*function {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closure(c)
}

// has reports whether a Snapshot has a function of another database: in the same schema or, if that has no function of
// its name and arguments, in any. It reports true if it has none of that name at all: such a query cannot be replayed,
// which shows elsewhere.
func (s *Snapshot) has(f *function, copies []string) bool {
	overloads := s.byName[f.Name]
	if len(overloads) == 0 || slices.ContainsFunc(overloads, func(g *function) bool { return slices.Contains(copies, g.Schema) }) {
		return true
	}
	elsewhere := false
	for _, g := range overloads {
		same := g.arguments == f.arguments
		if same && g.Schema == f.Schema {
			return g.own == f.own
		}
		elsewhere = elsewhere || same && g.own == f.own
	}
	return elsewhere
}

func sorted(names map[string]bool) []string { return slices.Sorted(maps.Keys(names)) }
