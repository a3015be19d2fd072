package claim

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// labels are the claims in the SECURITY LABELs of the engine's catalog.
type labels struct {
	columns map[ident.Table][]maskedColumn
	// masked are the roles that each provider masks. If a provider masks none, its labels apply to every role.
	masked map[string]map[string]bool
	masks  map[ident.Table][]catalog.Label // the masking rules of columns, with a function or a value
	copies map[catalog.Label]bool          // those of the shadow database
}

// maskedColumn is a column whose label calls a DP function.
type maskedColumn struct {
	provider, name string // name: schema.table.column
	part           *part
	err            error // the label's claim is invalid
}

// The labels of PostgreSQL Anonymizer: of a column that is masked, of one that a function masks, and of a role that
// sees masked values.
var (
	maskedBy   = regexp.MustCompile(`(?is)^\s*masked\s+with\s`)
	maskedWith = regexp.MustCompile(`(?is)^\s*masked\s+with\s+function\s+(.*)$`)
	maskedRole = regexp.MustCompile(`(?is)^\s*masked\s*$`)
)

// readLabels selects the labels of the configured providers that hold claims.
func readLabels(r Rules) labels {
	l := labels{
		columns: map[ident.Table][]maskedColumn{}, masked: map[string]map[string]bool{},
		masks: map[ident.Table][]catalog.Label{}, copies: map[catalog.Label]bool{},
	}
	for _, label := range r.CopyLabels {
		l.copies[label] = true
	}
	for _, label := range r.Labels {
		if !slices.Contains(r.LabelProviders, label.Provider) {
			continue
		}
		if label.Role != "" {
			if maskedRole.MatchString(label.Text) {
				if l.masked[label.Provider] == nil {
					l.masked[label.Provider] = map[string]bool{}
				}
				l.masked[label.Provider][label.Role] = true
			}
			continue
		}
		if maskedBy.MatchString(label.Text) {
			l.masks[label.Table] = append(l.masks[label.Table], label)
		}
		column := maskedColumn{provider: label.Provider, name: label.Table.String() + "." + label.Column}
		if column.part, column.err = maskClaim(r.Signatures, label); column.part != nil || column.err != nil {
			l.columns[label.Table] = append(l.columns[label.Table], column)
		}
	}
	return l
}

// maskClaim returns the claim of the function that masks a column; nil = it is not a DP function, or gets no epsilon.
func maskClaim(signatures []Signature, label catalog.Label) (*part, error) {
	match := maskedWith.FindStringSubmatch(label.Text)
	if match == nil {
		return nil, nil
	}
	invalid := func(detail string) error {
		return bad("security label of column "+label.Table.String()+"."+label.Column+": "+detail, -1)
	}
	tree, err := pgparse.Parse("SELECT " + match[1])
	if err != nil || len(tree.GetStmts()) != 1 || len(tree.GetStmts()[0].GetStmt().GetSelectStmt().GetTargetList()) != 1 {
		return nil, invalid("the function call cannot be parsed")
	}
	call := tree.GetStmts()[0].GetStmt().GetSelectStmt().GetTargetList()[0].GetResTarget().GetVal().GetFuncCall()
	i := slices.IndexFunc(signatures, func(s Signature) bool { return s.matches(call) })
	if i < 0 {
		return nil, nil
	}
	p, err := (&Call{Signature: signatures[i], Call: call}).claim(Input{})
	var fault *Error
	if errors.As(err, &fault) {
		return nil, invalid(fault.Detail)
	}
	if p != nil {
		p.hasDelta = true // a function without a delta claims 0
	}
	return p, nil
}

// matches reports whether a call names the function of a signature. In a label, a name without schema is in no schema
// of a search path.
func (s Signature) matches(call *pg_query.FuncCall) bool {
	schema, name, ok := ident.ParseFunction(s.Function)
	inSchema, named := pgparse.Name(call.GetFuncname())
	return ok && call != nil && name == named && (schema == "" || schema == inSchema)
}

// Unmasked returns a column that the engine masks for the role of a query, and that is not masked by the same rule in
// every copy, as schema.table.column; "" = there is none. A replay would read values that the query did not.
func (c *Claimer) Unmasked(q capture.Query, labelled []ident.Table, role string) string {
	for _, t := range labelled {
		for _, label := range c.labels.masks[t] {
			roles := c.labels.masked[label.Provider]
			if !roles[role] && !(q.Doubt.HasRole() && len(roles) > 0) {
				continue
			}
			for _, schema := range c.rules.Neighbours {
				label.Table.Schema = schema
				if !c.labels.copies[label] {
					return t.String() + "." + label.Column
				}
			}
		}
	}
	return ""
}

// labelClaim combines the claims of all labelled columns of the tables that a query reads; nil = there is none.
func (c *Claimer) labelClaim(in Input) (*part, error) {
	var total *part
	var names []string
	for _, t := range in.Labelled {
		for _, column := range c.labels.columns[t] {
			if roles := c.labels.masked[column.provider]; len(roles) > 0 {
				if in.Query.Doubt.HasRole() {
					return nil, &Error{Detail: "the role, on which the claims of security labels depend, may have changed", Hint: "give the claim in a comment or an argument", Offset: -1, Uncertain: true}
				}
				if !roles[in.Role] {
					continue
				}
			}
			if column.err != nil {
				return nil, column.err
			}
			var err error
			if total, err = c.join(total, column.part); err != nil {
				return nil, bad("the claims of all security labels "+err.Error(), -1)
			}
			names = append(names, column.name)
		}
	}
	if total == nil {
		return nil, nil
	}
	if err := check(total.claim.Epsilon, total.claim.Delta); err != nil {
		return nil, bad("the combined claim of all security labels: "+err.Error(), -1)
	}
	total.claim.Source, total.claim.Rule = SourceLabel, strings.Join(names, ",")
	return total, nil
}

// join returns a claim combined with another one; total may be nil. Curves combine with curves alone.
func (c *Claimer) join(total, p *part) (*part, error) {
	joined := *p
	if total != nil {
		joined.hasDelta = joined.hasDelta || total.hasDelta
		joined.claim = Compose(total.claim, p.claim, c.share)
		if (total.claim.Curve != "" || p.claim.Curve != "") && joined.claim.Curve == "" {
			return nil, errors.New("do not combine: some are in mu or rho and others are not, or their sum is too large; give the claim of the whole query in a comment (dp_curve) or a rule")
		}
	}
	return &joined, nil
}
