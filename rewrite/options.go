package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
	"github.com/dpwatch/dpwatch/rewrite/internal/claim"
	"github.com/dpwatch/dpwatch/rewrite/internal/judge"
	"github.com/dpwatch/dpwatch/rewrite/internal/resolve"
)

// Defaults of Options.
const (
	DefaultMaxBytes  = 256 << 10 // longest statement in bytes; rewriters emit 50 KB
	DefaultMaxTokens = 20_000    // most tokens; they bound the time for one statement
)

// Wildcards, for the audit of a single query without a catalog.
const (
	AnyTable    = resolve.AnyTable  // as a Table's Name in Protected: every relation that resolves to the schema has a copy
	AnyFunction = judge.AnyFunction // in AllowFunctions: every function that is not built in is safe
)

// Table is the name of a relation as stored in the catalog: folded, without quotes.
type Table = ident.Table

// Options lists protected tables and claim rules. New rejects the zero value, which protects nothing.
type Options struct {
	Protected []Table // tables with a copy in every neighbour schema; all with different names
	Public    []Table // tables without personal data, which replays read in place
	Others    []Table // further existing relations: they shadow names; a query on one is refused

	// Source is the catalog of the client's database, in which names are resolved; nil = not known: then Protected,
	// Public and Others are assumed to be all relations of their schemas (see Plan.Assumed).
	Source *catalog.Catalog
	// Shadow is the catalog of the shadow database, and Neighbours the schemas of the copies in it, which are checked
	// to read only themselves and Public; nil = not known.
	Shadow     *catalog.Catalog
	Neighbours []string
	// ShadowPath lists further schemas of the shadow database, for functions, operators and types that the client's
	// path does not find there. It is added to a plan's path only if it is needed.
	ShadowPath []string
	// OwnEngines: each neighbour has an engine of its own, with its tables alone, and gets the statement unchanged.
	OwnEngines bool

	SearchPath []string // path if neither the session's settings nor Source give one; nil = {"public"}
	Database   string   // database of the protected tables; "" = any, and catalog-qualified names are refused

	Claims         ClaimRules
	AllowFunctions []string // further functions declared safe, folded as by PostgreSQL, optionally schema-qualified

	// MaxOfSequence declares that each privacy unit has rows in only one statement of a sequence: the claim of a
	// sequence is the largest of its statements' claims instead of their sum.
	MaxOfSequence bool

	MaxBytes  int // 0 = DefaultMaxBytes
	MaxTokens int // 0 = DefaultMaxTokens
}

// database returns the name of the database of the protected tables; "" = any.
func (o Options) database() string {
	if o.Database == "" && o.Source != nil {
		return o.Source.Database
	}
	return o.Database
}

// The claims of queries and their sources.
type (
	Claim      = claim.Claim
	ClaimRules = claim.Rules
	Signature  = claim.Signature
	Rule       = claim.Rule
	Value      = claim.Value
)

// Stated returns the claim in the row with which an engine answers a Question.
func Stated(names []string, row []*string) Value { return claim.Stated(names, row) }

// New checks the options and returns a Rewriter, or all faults, joined.
func New(o Options) (*Rewriter, error) {
	faults := o.tableFaults()
	if o.Source != nil {
		o.Claims.Labels = o.Source.Labels
	}
	if o.Shadow != nil {
		o.Claims.CopyLabels = o.Shadow.Labels
	}
	o.Claims.Neighbours = o.Neighbours
	claims, claimFaults := claim.New(o.Claims)
	faults = append(faults, claimFaults...)
	for i, rule := range o.Claims.Rules {
		if rule.Table != (Table{}) && !slices.Contains(o.Protected, rule.Table) {
			faults = append(faults, fmt.Errorf("claim rule %d (%s): table %q is not a protected table: add it to them, or remove the condition", i+1, rule.Name, rule.Table))
		}
	}
	for _, f := range o.AllowFunctions {
		if f == AnyFunction {
			continue
		}
		if _, _, ok := ident.ParseFunction(f); !ok {
			faults = append(faults, fmt.Errorf("allowed function %q: write it as name or schema.name", f))
		}
	}
	if o.Claims.Ask && len(o.Neighbours) == 0 {
		faults = append(faults, errors.New("Claims.Ask needs Neighbours: the engine is asked about the statement on the first of them"))
	}
	if o.MaxBytes < 0 || o.MaxTokens < 0 {
		faults = append(faults, errors.New("MaxBytes and MaxTokens must not be negative"))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("rewrite options: %w", errors.Join(faults...))
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = DefaultMaxTokens
	}
	if o.SearchPath == nil {
		o.SearchPath = []string{"public"}
	}
	source := catalog.NewIndex(o.Source)
	rules := judge.New(judge.Options{
		Protected: o.Protected, Public: o.Public, Others: o.Others,
		Source: source, Shadow: catalog.NewIndex(o.Shadow), Neighbours: o.Neighbours, ShadowPath: o.ShadowPath, OwnEngines: o.OwnEngines,
		Database: o.database(), Signatures: o.Claims.Signatures, AllowFunctions: o.AllowFunctions, Settings: claims.Settings(),
		Limits: body.Limits{Bytes: o.MaxBytes, Tokens: o.MaxTokens},
		Walk:   func(s *judge.Statement, root protoreflect.Message) { walk(s, root) },
	})
	return &Rewriter{options: o, source: source, rules: rules, claims: claims, schema: newWireSchema()}, nil
}

// tableFaults returns the faults in the lists of tables.
func (o Options) tableFaults() []error {
	var faults []error
	if len(o.Protected) == 0 {
		faults = append(faults, errors.New("no protected table: list the tables that the neighbours copy"))
	}
	seen := map[Table]string{}
	byName := map[string]Table{}
	lists := []struct {
		kind   string
		tables []Table
	}{{"protected", o.Protected}, {"public", o.Public}, {"other", o.Others}}
	for _, list := range lists {
		for _, t := range list.tables {
			if err := checkTable(t); err != nil {
				faults = append(faults, fmt.Errorf("%s table %q: %w", list.kind, t, err))
			}
			if before, ok := seen[t]; ok && before != list.kind {
				faults = append(faults, fmt.Errorf("table %q is listed as %s and as %s: keep one entry", t, before, list.kind))
			}
			seen[t] = list.kind
			if list.kind != "protected" {
				continue
			}
			if other, ok := byName[t.Name]; ok && other != t {
				faults = append(faults, fmt.Errorf("protected tables %q and %q have the same name, and a neighbour schema can hold only one of them: rename one", other, t))
			}
			byName[t.Name] = t
		}
	}
	return faults
}

func checkTable(t Table) error {
	if err := checkIdentifier(t.Schema); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if err := checkIdentifier(t.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	switch {
	case resolve.IsSystemSchema(t.Schema) || resolve.IsTempSchema(t.Schema):
		return errors.New("is in a system schema, which neighbours do not copy")
	case strings.HasPrefix(t.Name, "pg_"):
		return errors.New("starts with pg_, so that a system catalog may hide the table: rename it")
	}
	return nil
}

// checkIdentifier rejects a string that cannot be the name of a schema or table.
func checkIdentifier(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > ident.MaxBytes:
		return fmt.Errorf("is longer than %d bytes", ident.MaxBytes)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return errors.New("is not valid UTF-8, or contains a NUL byte")
	}
	return nil
}
