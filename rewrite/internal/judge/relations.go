package judge

import (
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// doubtReasons are the reasons to refuse a name that cannot be resolved, by what is in doubt.
var doubtReasons = map[resolve.Doubt]reasons.Reason{
	resolve.DoubtSettings: reasons.SettingsUncertain, resolve.DoubtAmbiguous: reasons.AmbiguousName, resolve.DoubtUnlisted: reasons.UnknownTable,
}

// Relation resolves a relation in FROM that is no CTE, and records that the statement reads it. It returns
// KindProtected, KindPublic, KindSystem, or KindUnknown after a refusal.
func (s *Statement) Relation(n *pg_query.RangeVar) (Table, resolve.Kind) {
	if !s.session.inDatabase(n.GetCatalogname(), "RangeVar", n.GetLocation()) {
		return Table{}, resolve.KindUnknown
	}
	if n.GetSchemaname() == "" && slices.Contains(s.query.Temporary, n.GetRelname()) {
		s.Refuse(reasons.TempTable, "RangeVar", n.GetLocation(), "relation "+n.GetRelname()+" is, or may be, a temporary table of the session",
			"if another table is meant, qualify the name with its schema: a replay cannot see temporary tables",
		).mayBeProtected = s.rules.names.Protected[n.GetRelname()]
		return Table{}, resolve.KindUnknown
	}
	if n.GetSchemaname() == "" && s.query.Doubt.Temporary && !s.names.path.Uncertain {
		s.Refuse(reasons.TempTable, "RangeVar", n.GetLocation(), "relation "+n.GetRelname()+" may be a temporary table of the session, which has created some of unknown names",
			"qualify the name with its schema").mayBeProtected = s.rules.names.Protected[n.GetRelname()]
		return Table{}, resolve.KindUnknown
	}
	t := Table{Schema: n.GetSchemaname(), Name: n.GetRelname()}
	kind, doubt := resolve.KindUnknown, resolve.DoubtUnlisted
	if t.Schema != "" {
		kind = s.rules.names.Qualified(t)
	} else if t, kind, doubt = s.rules.names.Unqualified(n.GetRelname(), s.names.path); kind == resolve.KindUnknown {
		t = Table{Schema: "", Name: n.GetRelname()}
	}
	s.names.assumeName(n.GetSchemaname() == "")
	if fault, bad := s.rules.names.refused[t]; bad {
		s.Refuse(fault.reason, "RangeVar", n.GetLocation(), "relation "+t.String()+" "+fault.detail, fault.hint).mayBeProtected = true
		return t, resolve.KindUnknown
	}
	s.Calls = append(s.Calls, s.rules.names.callsIn(t)...)
	switch kind {
	case resolve.KindProtected:
		s.Protected[t] = true
		for _, base := range s.rules.names.bases[t] {
			s.Protected[base] = true
		}
	case resolve.KindPublic:
		s.Public[t] = true
	case resolve.KindSystem:
		s.system = true
		if !resolve.IsStaticCatalog(t) {
			s.Refuse(reasons.SystemCatalog, "RangeVar", n.GetLocation(), "relation "+t.String()+" describes other tables in a replay", "query the catalog separately")
		}
	default:
		s.unreadable(t, kind, doubtReasons[doubt], n.GetLocation())
		return t, resolve.KindUnknown
	}
	return t, kind
}

// unreadable refuses a relation that is neither protected nor public nor a system relation.
func (s *Statement) unreadable(t Table, kind resolve.Kind, reason reasons.Reason, offset int32) {
	relation := "relation " + strings.TrimPrefix(t.String(), ".")
	var r *Refusal
	switch {
	case kind == resolve.KindTemp:
		r = s.Refuse(reasons.TempTable, "RangeVar", offset, relation+" is temporary", "")
	case reason == reasons.SettingsUncertain:
		r = s.refuseUncertain("RangeVar", offset, relation, "")
	case reason == reasons.AmbiguousName:
		r = s.Refuse(reason, "RangeVar", offset, relation+" may be in several schemas of the search_path",
			"qualify the name, or set privacy.catalog to read what the schemas contain (information_schema is never read)")
	case t.Schema == "" && s.rules.names.Protected[t.Name]:
		r = s.Refuse(reason, "RangeVar", offset, relation+" is not in the session's search_path, but a protected table of that name exists",
			"qualify the name with its schema")
	default:
		r = s.Refuse(reasons.UnknownTable, "RangeVar", offset, relation+" is neither protected nor public",
			"list it in privacy.protected, if it contains or reads personal data, or in privacy.public")
	}
	r.mayBeProtected = s.rules.names.Protected[t.Name]
}
