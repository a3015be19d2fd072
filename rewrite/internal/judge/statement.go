package judge

import (
	"cmp"
	"slices"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Statement checks one statement. A walk of its tree calls the method of each node that names a relation, column,
// function, operator, type or parameter; Verdict then says whether the statement may be replayed.
type Statement struct {
	Protected map[Table]bool  // the protected tables that it reads
	Public    map[Table]bool  // the public tables that it reads
	Functions map[string]bool // the names, as written, of the functions that it calls
	Implied   map[Table]bool  // functions outside pg_catalog of its operators and types, as far as a catalog shows them
	Calls     []*claim.Call   // of DP functions
	Unknown   bool            // a name is in neither catalog, and was taken for what it is then

	rules    *Rules
	query    capture.Query
	path     resolve.Path
	system   bool // a system relation was read
	refusals []Refusal
	assumed  map[string]bool
	anyTable []anyName // if any table is protected: what may name one

	root   protoreflect.Message // nil in the body of a function
	types  *resolve.Values      // created when needed
	uses   []nameUse
	replay resolve.Path // set by resolve

	// callees collects, for a checker, the user-defined functions that the body of a function calls; nil outside of
	// bodies.
	callees        map[Table]bool
	mayRead        *Refusal              // of the first call of a function that may read protected tables; see callMayRead
	sameEverywhere *pg_query.TypeName    // of the cast to regclass that is visited
	untold         []*pg_query.ColumnRef // of which only matters whether they are NULL
	// printed: the server printed the text from its own tree, in which x.f is a column and a call is printed as f(x).
	printed bool
}

// Statement returns a statement of a client, not walked yet, with the path on which its names are looked up.
func (r *Rules) Statement(root protoreflect.Message, q capture.Query, path resolve.Path) *Statement {
	s := r.statement(q, path.Seen(r.options.Source))
	s.root = root
	return s
}

func (r *Rules) statement(q capture.Query, path resolve.Path) *Statement {
	return &Statement{
		rules: r, query: q, path: path,
		Protected: map[Table]bool{}, Public: map[Table]bool{}, Functions: map[string]bool{}, Implied: map[Table]bool{}, assumed: map[string]bool{},
	}
}

// AssumeSetters records that the functions which the session called are assumed to have changed no setting that
// matters.
func (s *Statement) AssumeSetters() { s.assume(AssumedSetters) }

// Refuse records a refusal. hint "" stands for the usual one of the reason. The result is valid until the next refusal.
func (s *Statement) Refuse(reason reasons.Reason, node string, offset int32, detail, hint string) *Refusal {
	if hint == "" {
		hint = usualHints[reason]
	}
	s.refusals = append(s.refusals, Refusal{Reason: reason, Node: node, Detail: detail, Offset: int(offset), Hint: hint})
	return &s.refusals[len(s.refusals)-1]
}

// refuseUncertain records the refusal of a name without a schema if the search path is not known. hint "" is to qualify
// it.
func (s *Statement) refuseUncertain(node string, offset int32, object, hint string) *Refusal {
	detail := object + " has no schema, and the session's search_path is not known"
	if s.callees != nil {
		detail = object + " has no schema, and the function sets no search_path"
	}
	return s.Refuse(reasons.SettingsUncertain, node, offset, detail, cmp.Or(hint, "qualify the name with its schema"))
}

// RefuseChange refuses a statement, or a part of one, that changes data.
func (s *Statement) RefuseChange(node string, offset int32) {
	detail := "a WITH query that changes data"
	if s.callees != nil {
		detail = "a statement that changes data"
	}
	s.Refuse(reasons.SideEffects, node, offset, detail, "")
}

// Verdict selects the refusal to report, or nil, after the walk. Side effects come first, then whether the query
// concerns the auditor at all, then the first fault in the text. claims reports that the text makes a claim.
func (s *Statement) Verdict(claims bool) *Refusal {
	s.namesOfAnyTable()
	s.resolve()
	slices.SortStableFunc(s.refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Detail, b.Detail))
	})
	for i, r := range s.refusals {
		if r.Reason == reasons.SideEffects {
			return &s.refusals[i]
		}
	}
	// A query that names a protected table, calls a DP function or makes a claim concerns the auditor.
	relevant := len(s.Protected) > 0 || len(s.Calls) > 0 || claims
	for i, r := range s.refusals {
		if relevant || r.mayBeProtected {
			return &s.refusals[i]
		}
	}
	switch {
	case len(s.Protected) > 0:
		return nil
	case s.mayRead != nil:
		return s.mayRead
	case s.system && len(s.Public) == 0 && len(s.refusals) == 0 || s.onlySystem():
		return &Refusal{Reason: reasons.SystemCatalogOnly, Detail: "the query reads only system catalogs", Offset: -1}
	}
	return &Refusal{Reason: reasons.NoProtectedTable, Detail: "the query reads no protected table", Offset: -1}
}

// onlySystem reports whether every refusal of the walk is about a system catalog.
func (s *Statement) onlySystem() bool {
	return s.system && len(s.Public) == 0 &&
		!slices.ContainsFunc(s.refusals, func(r Refusal) bool { return r.Node == "RangeVar" && r.Reason != reasons.SystemCatalog })
}

// SearchPath returns the path of a replay, after Verdict. It is not nil.
func (s *Statement) SearchPath() []string { return append([]string{}, s.replay.Schemas...) }
