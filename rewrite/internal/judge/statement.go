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
	Calls     []*claim.Call   // of DP functions
	Called    *Called

	*findings
	rules   *Rules
	query   capture.Query
	path    resolve.Path
	names   *lookup
	shown   *shown
	texts   *texts
	session *session

	system         bool               // a system relation was read
	sameEverywhere *pg_query.TypeName // of the cast to regclass that is visited
}

// Statement returns a statement of a client, not walked yet, with the path on which its names are looked up.
func (r *Rules) Statement(root protoreflect.Message, q capture.Query, path resolve.Path) *Statement {
	s := r.statement(q, path.Seen(r.options.Source))
	s.names.root = root
	return s
}

func (r *Rules) statement(q capture.Query, path resolve.Path) *Statement {
	f := &findings{assumed: map[string]bool{}}
	names := &lookup{findings: f, rules: r, query: q, path: path}
	shown := &shown{names: names}
	protected := map[Table]bool{}
	return &Statement{
		Protected: protected, Public: map[Table]bool{}, Functions: map[string]bool{},
		Called:   &Called{findings: f, names: names, rules: r, query: q, protected: protected, Implied: map[Table]bool{}},
		findings: f, rules: r, query: q, path: path, names: names, shown: shown,
		texts: &texts{findings: f, rules: r}, session: &session{findings: f, shown: shown, query: q, rules: r},
	}
}

// body makes the statement one of the body of a function or of a view: callees collects, for a checker, the
// user-defined functions that it calls. printed is as in Called.
func (s *Statement) body(callees map[Table]bool, printed bool) {
	s.Called.callees, s.Called.printed = callees, printed
	s.inBody, s.names.inBody = true, true
}

// Verdict selects the refusal to report, or nil, after the walk. Side effects come first, then whether the query
// concerns the auditor at all, then the first fault in the text. claims reports that the text makes a claim.
func (s *Statement) Verdict(claims bool) *Refusal {
	s.texts.namesOfAnyTable(s.Protected)
	s.names.resolve()
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
	case s.Called.mayRead != nil:
		return s.Called.mayRead
	case s.unknown != nil:
		return s.unknown
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
func (s *Statement) SearchPath() []string { return append([]string{}, s.names.replay.Schemas...) }
