package rewrite

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Rewriter analyses queries under one set of Options. New creates it. It is immutable and safe for concurrent use.
type Rewriter struct {
	options Options
	source  *catalog.Index // of the client's database; nil = not known
	rules   *judge.Rules
	claims  *claim.Claimer
	schema  *wireSchema
}

// Names returns the names, without schemas, of the relations and functions through which a statement may read a
// protected table, and of the declared functions, in order: a statement without any of them cannot be one to audit. nil
// = every statement may. ok is false if Options.Source is not known.
func (r *Rewriter) Names() (names []string, ok bool) { return r.rules.Names() }

// NoisyView is a view that calls a DP function and is not listed in the configuration.
type NoisyView = judge.NoisyView

// NoisyViews returns the views of Options.Source that call DP functions and read protected data, but are not listed, in
// order: each query on one draws fresh noise. Materialized views are not among them.
func (r *Rewriter) NoisyViews() []NoisyView {
	if r.source == nil {
		return nil
	}
	return r.rules.NoisyViews()
}

// Plan is the analysis of a query for an audit. It is immutable and safe for concurrent use.
type Plan struct {
	// Key identifies the mechanism: a hex SHA-256 over the statement as a tree (with constants; without comments, white
	// space and the spelling of names), the bound parameters with their types, Settings, SearchPath, the database, and
	// the claim's epsilon and delta. The caller adds the neighbour set and the engine's epoch.
	Key string
	// Group is pg_query's fingerprint, which drops every constant: a label for people, not an identity.
	Group string
	// Shape is a hash that is equal for queries that differ only in parts that a client can vary at will: constants and
	// parameters, how many of them are in a row, comments, spelling, settings, claims, and the names that the query
	// gives to columns, tables and subqueries. It groups queries that compete for places among the audits; it is not an
	// identity either.
	Shape string
	// Summary is the statement in one line without literals and comments, cut at 240 bytes.
	Summary string
	// Destination is where the rows of the query go, as text without values: "into table marts.daily"; "" = to the
	// client. It is no part of the identity.
	Destination string
	// Claim is the query's claim; nil = none.
	Claim *Claim
	// Ignored are claims of the client that were not accepted, because they would raise the configured ones.
	Ignored []Claim
	// DPCalls counts the calls of DP functions, as written.
	DPCalls int
	// Tables are the protected tables that the query reads, sorted; never empty.
	Tables []Table
	// Public are the public tables that the query reads, sorted.
	Public []Table
	// Functions are the functions that the query calls by name, as written, sorted.
	Functions []string
	// Implied are the functions outside pg_catalog of its operators and types, as far as a catalog shows them, sorted.
	Implied []Table
	// SearchPath is the path of a replay, for types, operators and functions; For qualifies every table. It is the path
	// of the client's query, with "$user" replaced, without schemas that according to Options.Source do not exist or
	// may not be used by the role, and with Options.ShadowPath if a name is found nowhere else. Every name of the query
	// was looked up under it in Options.Shadow. It is not nil.
	SearchPath []string
	// Settings are the session's settings that affect the result (time zone, formats, custom settings such as
	// dp.epsilon), by lower-case name. A replay must set them.
	Settings map[string]string
	// Sorted reports that the query fixes the order of its rows, by more than its group keys. Otherwise the server
	// chooses the order.
	Sorted bool
	Facts  Facts // of its text
	// Assumed lists the Assumed constants that the plan depends on, sorted.
	Assumed []string
	// Beside is what its trials may read besides the copies without being seen, as sorted texts of the form "function f
	// reads ...": something that is the same for every copy.
	Beside []string
	// UnknownNames reports that the query holds a name that the catalogs do not have: a call f(t) that is taken for the
	// column t.f, or a type. It may be newer than they are: before a replay, the query must be analysed with catalogs
	// that were read after it ran.
	UnknownNames bool

	steps    []*Plan // of a sequence, whose plan this is; nil = a single statement
	sql      string
	edits    []edit
	expected *canonical
	rewriter *Rewriter
}

// Analyze parses q and returns its Plan, or an *UnsupportedError that says why it cannot be audited. It returns no
// other error type and does not panic. It keeps no reference to q's slices or maps.
func (r *Rewriter) Analyze(q capture.Query) (plan *Plan, err error) { return r.AnalyzeWith(q, nil) }

// AnalyzeWith is Analyze with the answers to questions about claims; see UnsupportedError.Question.
func (r *Rewriter) AnalyzeWith(q capture.Query, values map[string]Value) (plan *Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			plan, err = nil, refuse(reasons.Internal, fmt.Sprintf("the rewriter panicked with a %T", p), reportBug)
		}
	}()
	if len(q.Then) > 0 {
		return r.sequence(q, values)
	}
	if len(q.Temps) > 0 {
		return nil, refuse(reasons.TempTable, "the statement uses a temporary relation of the session whose expressions, query or triggers name what is protected or declared",
			"read the tables in the statement itself, or create a view that is not temporary")
	}
	session := q.Settings
	if initial := r.source.Settings(q.User, nil); q.Whole && len(initial) > 0 {
		session = maps.Clone(session)
		maps.DeleteFunc(session, func(name, value string) bool { given, ok := initial[name]; return ok && given == value })
	} else if !q.Whole {
		q.Settings = r.source.Settings(q.User, q.Settings)
	}
	var assumed bool
	q, assumed = r.rules.Settle(q)
	whole := q
	parsed, err := r.parse(&q)
	if err == nil {
		plan, err = r.analyze(q, parsed, session, values, assumed)
	}
	if refused := r.indirect(whole, parsed, err); refused != nil {
		return nil, refused
	}
	return plan, err
}

// analyze returns the Plan of a query, which q is. session are the settings that the session itself has set.
func (r *Rewriter) analyze(q capture.Query, parsed *parsed, session map[string]string, values map[string]Value, assumed bool) (*Plan, error) {
	root := parsed.stmt.ProtoReflect()
	s := r.rules.Statement(root, q, resolve.PathOf(q, r.options.SearchPath))
	if assumed {
		s.AssumeSetters()
	}
	edits := walk(s, root)
	if f := s.Verdict(claim.InComment(q.SQL, parsed.tokens)); f != nil {
		return nil, refusedFor(f)
	}
	plan, err := r.plan(q, parsed, s, edits, values)
	if err == nil {
		plan.Beside = s.Beside(root, session)
	}
	return plan, err
}

// indirect refuses a statement that would count as no DP query, because it is none that can be audited, although it runs
// a DP function on a protected table, and one whose query would be audited but that runs more beside it. err is what
// the analysis of the statement q ended with.
func (r *Rewriter) indirect(q capture.Query, parsed *parsed, err error) error {
	var refused *UnsupportedError
	if errors.As(err, &refused) && !reasons.NotDP(refused.Reason) || parsed == nil || RanNothing(q.Tag) || err == nil && !parsed.within {
		return nil
	}
	f, calls := r.rules.Indirect(parsed.whole, q, resolve.PathOf(q, r.options.SearchPath), err == nil, claim.InComment(q.SQL, parsed.words))
	if f == nil {
		return nil
	}
	refused = refusedFor(f)
	if len(calls) > 0 {
		in := claim.Input{Query: q, Tokens: parsed.words, Calls: calls, Summary: summarize(q.SQL, parsed.words)}
		if c, _, fault := r.claims.Resolve(in); fault == nil {
			refused.Claim = c
		}
	}
	return refused
}

// Settle returns a query with the doubt as Analyze sees it: the functions that the session called are replaced by the
// settings that they change and the temporary relations that they create. assumed is true if a plan lists AssumedSetters
// for it.
func (r *Rewriter) Settle(q capture.Query) (settled capture.Query, assumed bool) {
	return r.rules.Settle(q)
}

// plan assembles the Plan.
func (r *Rewriter) plan(q capture.Query, parsed *parsed, s *judge.Statement, edits []edit, values map[string]Value) (*Plan, error) {
	if err := locate(edits, parsed.tokens); err != nil {
		return nil, refuse(reasons.VerifyFailed, err.Error(), reportBug)
	}
	byPlace := make(map[editKey]edit, len(edits))
	for _, e := range edits {
		byPlace[editKey{e.node, e.at}] = e
	}
	expected, edited, err := r.schema.canonicalize(parsed.wire, byPlace)
	if err != nil || edited != len(edits) {
		return nil, refuse(reasons.VerifyFailed, "the syntax tree lacks a name that was found in it", reportBug)
	}
	fingerprint, err := pgparse.Fingerprint(q.SQL)
	if err != nil {
		return nil, parseError(q.SQL, err)
	}
	p := &Plan{
		Group:        fingerprint,
		Tables:       ident.Sorted(s.Protected),
		Public:       ident.Sorted(s.Public),
		Functions:    slices.Sorted(maps.Keys(s.Functions)),
		Implied:      ident.Sorted(s.Called.Implied),
		SearchPath:   s.SearchPath(),
		Settings:     keySettings(q.Settings),
		Assumed:      s.Assumptions(),
		UnknownNames: s.Called.Unknown,
		DPCalls:      len(s.Calls),
		Sorted:       sorted(parsed.stmt),
		Destination:  parsed.to,
		sql:          q.SQL,
		edits:        edits,
		expected:     expected,
		rewriter:     r,
	}
	summary := summarize(q.SQL, parsed.tokens)
	p.Summary = cutText(summary, maxSummaryBytes)
	labelled, role := r.labelled(p.Tables), resolve.PathOf(q, nil).Role
	if column := r.claims.Unmasked(q, labelled, role); column != "" {
		return nil, refuse(reasons.NoCopy, "column "+column+" is masked for the role of the query, but not by the same rule in every copy", maskCopies)
	}
	question, err := r.question(p)
	if err != nil {
		return nil, err
	}
	p.Claim, p.Ignored, err = r.claims.Resolve(claim.Input{
		Query: q, Tokens: parsed.tokens, Calls: s.Calls, Summary: summary, Tables: p.Tables, Group: p.Group,
		Labelled: labelled, Role: role, Statement: parsed.stmt, Values: values, Question: question,
	})
	if err != nil {
		return nil, p.refusedClaim(err, question)
	}
	p.Facts = factsOf(parsed.stmt, p.Claim)
	p.Key = p.key(q)
	if p.Shape, err = p.shape(parsed.wire); err != nil {
		return nil, refuse(reasons.VerifyFailed, err.Error(), reportBug)
	}
	return p, nil
}

// question returns the statement on D0 about which the engine is asked; "" = it is not asked.
func (r *Rewriter) question(p *Plan) (string, error) {
	switch {
	case !r.options.Claims.Ask:
		return "", nil
	case r.options.OwnEngines:
		return p.sql, nil
	}
	return p.For(r.options.Neighbours[0])
}

// refusedClaim returns the refusal of a query by its claim.
func (p *Plan) refusedClaim(err error, question string) error {
	var fault *claim.Error
	if !errors.As(err, &fault) {
		return refuse(reasons.Internal, "the claim was rejected without a reason", reportBug)
	}
	reason := reasons.BadClaim
	if fault.Uncertain {
		reason = reasons.SettingsUncertain
	}
	refused := &UnsupportedError{Reason: reason, Detail: fault.Detail, Offset: fault.Offset, Hint: fault.Hint}
	if fault.Expression != "" {
		refused.question = &Question{SQL: fault.Expression}
		if fault.Expression == question {
			refused.question = &Question{question, true, p.Settings, p.SearchPath}
		}
	}
	return refused
}

// For returns the SQL on a neighbour schema: the client's text in which every protected table, and every function that
// reads one, is in schema and every public table is qualified. Each result is parsed and compared with the original.
// The error is an *UnsupportedError with reasons.VerifyFailed, or reports an invalid schema.
func (p *Plan) For(schema string) (string, error) {
	if len(p.steps) > 0 {
		return p.forSteps(schema)
	}
	if err := p.checkSchema(schema); err != nil {
		return "", fmt.Errorf("neighbour schema %q: %w", schema, err)
	}
	sql := splice(p.sql, p.edits, schema)
	wire, err := pgparse.Wire(sql)
	if err != nil {
		return "", refuse(reasons.VerifyFailed, "the rewritten text cannot be parsed", reportBug)
	}
	got, _, err := p.rewriter.schema.canonicalize(wire, nil)
	if err != nil {
		return "", refuse(reasons.VerifyFailed, err.Error(), reportBug)
	}
	want := p.expected.fill(func(Table) string { return schema })
	if !bytes.Equal(want, got.segments[0]) {
		return "", refuse(reasons.VerifyFailed, "the rewritten text differs from the original by more than the schemas", reportBug)
	}
	return sql, nil
}

// Text returns the text of the query itself, without the statement that runs it: replaying it writes nothing. It is
// empty for a sequence.
func (p *Plan) Text() string { return strings.TrimSpace(p.sql) }

// checkSchema rejects schemas that cannot hold a neighbour.
func (p *Plan) checkSchema(schema string) error {
	if err := checkIdentifier(schema); err != nil {
		return err
	}
	if resolve.IsSystemSchema(schema) || resolve.IsTempSchema(schema) {
		return errors.New("is a system schema")
	}
	for _, t := range p.Tables {
		if p.rewriter.rules.IsPublicOrOther(Table{Schema: schema, Name: t.Name}) {
			return fmt.Errorf("contains a table %s that is not a copy", t.Name)
		}
	}
	return nil
}

// hexKey returns the printed form of a hash.
func hexKey(sum []byte) string { return hex.EncodeToString(sum) }
