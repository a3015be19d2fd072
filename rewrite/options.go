package rewrite

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dpwatch/dpwatch/internal/pg/body"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// Defaults of Options.
const (
	DefaultMaxBytes       = 256 << 10 // longest statement in bytes; rewriters emit 50 KB
	DefaultMaxTokens      = 20_000    // most tokens; they bound the time for one statement
	DefaultEpsilonSetting = "dp.epsilon"
	DefaultDeltaSetting   = "dp.delta"
	MaxEpsilon            = 1000.0 // a larger claim is reported as absurd
)

// Wildcards, for the audit of a single query without a catalog.
const (
	AnyTable    = "*" // as a Table's Name in Protected: every relation that resolves to the schema has a copy
	AnyFunction = "*" // in AllowFunctions: every function that is not built in is safe
)

// Table is the name of a relation as stored in the catalog: folded, without quotes.
type Table = ident.Table

// Options lists protected tables and claim rules. New rejects the zero value, which protects nothing.
type Options struct {
	Protected []Table // tables with a copy in every neighbour schema; all with different names
	Public    []Table // tables without personal data, which replays read in place
	Others    []Table // further existing relations: they shadow names; a query on one is refused

	// Source is the catalog of the client's database, in which names are resolved; nil = not known: then Protected, Public
	// and Others are assumed to be all relations of their schemas (see Plan.Assumed).
	Source *catalog.Catalog
	// Shadow is the catalog of the shadow database, and Neighbours the schemas of the copies in it, which are checked to
	// read only themselves and Public; nil = not known.
	Shadow     *catalog.Catalog
	Neighbours []string
	// ShadowPath lists further schemas of the shadow database, for functions, operators and types that the client's path
	// does not find there. It is added to a plan's path only if it is needed.
	ShadowPath []string

	SearchPath []string // path if neither the session's settings nor Source give one; nil = {"public"}
	Database   string   // database of the protected tables; "" = any, and catalog-qualified names are refused

	Claims         ClaimRules
	AllowFunctions []string // further functions declared safe, folded as by PostgreSQL, optionally schema-qualified

	MaxBytes  int // 0 = DefaultMaxBytes
	MaxTokens int // 0 = DefaultMaxTokens
}

// limits returns the limits of a text that is parsed.
func (o Options) limits() body.Limits { return body.Limits{Bytes: o.MaxBytes, Tokens: o.MaxTokens} }

// ClaimRules configures the sources of claims. Their order is: comment, argument, setting, rule, default.
//
// The client controls a comment and a setting. They may lower the claim of an argument, a rule or the default; they may
// raise it only if trusted; if there is none of these, they are accepted.
type ClaimRules struct {
	Signatures []Signature
	// Combine is how the claims of several DP calls in one query combine: "add" (also "") is their sum, sequential
	// composition over the calls as written, "share" their maximum.
	Combine string
	// EpsilonSetting and DeltaSetting name the session settings of a claim, per DP call; "" = the defaults, "-" = none.
	EpsilonSetting, DeltaSetting string
	Rules                        []Rule // the first match applies
	Default                      *Claim // only Epsilon and Delta are read; nil = none
	TrustComment, TrustSetting   bool
}

// Signature declares a DP function and the arguments that hold its claim. Replays may call such a function.
type Signature struct {
	Function string // folded as by PostgreSQL, optionally schema-qualified: "anon_count", "dp.noisy_sum"
	// Epsilon and Delta are positions: 1 the first argument, -1 the last, 0 = no such argument. For a call with fewer
	// arguments the next source applies.
	Epsilon, Delta int
	// EpsilonName and DeltaName are the parameters' names, for calls in named notation; "" = none.
	EpsilonName, DeltaName string
}

// Rule gives a claim to the queries that meet all of its conditions; "" (and the zero Table) is no condition.
type Rule struct {
	Name                            string // shown in findings; "" = "claims.rules[i]"
	User, Database, ApplicationName string // exact
	Table                           Table  // a protected table that the query reads
	Fingerprint                     string // Plan.Group
	Pattern                         string // regular expression (RE2) for the summary, which holds no literals
	Epsilon, Delta                  float64
}

// New checks the options and returns a Rewriter, or all faults, joined.
func New(o Options) (*Rewriter, error) {
	faults := o.tableFaults()
	claims, claimFaults := newClaimer(o.Claims)
	faults = append(faults, claimFaults...)
	for i, rule := range o.Claims.Rules {
		if rule.Table != (Table{}) && !slices.Contains(o.Protected, rule.Table) {
			faults = append(faults, fmt.Errorf("claim rule %d (%s): table %q is not protected", i+1, rule.Name, rule.Table))
		}
	}
	for _, f := range o.AllowFunctions {
		if f == AnyFunction {
			continue
		}
		if _, _, ok := splitFunction(f); !ok {
			faults = append(faults, fmt.Errorf("allowed function %q: want name or schema.name", f))
		}
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
	functions := newFunctions(o)
	return &Rewriter{
		options:   o,
		names:     newNames(o, functions),
		opaque:    newOpaque(functions.source, o.limits(), functions),
		functions: functions,
		claims:    claims,
		schema:    newWireSchema(),
	}, nil
}

// tableFaults returns the faults in the lists of tables.
func (o Options) tableFaults() []error {
	var faults []error
	if len(o.Protected) == 0 {
		faults = append(faults, errors.New("no protected table: name the tables that the neighbours copy"))
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
				faults = append(faults, fmt.Errorf("table %q is listed as %s and as %s", t, before, list.kind))
			}
			seen[t] = list.kind
			if list.kind != "protected" {
				continue
			}
			if other, ok := byName[t.Name]; ok && other != t {
				faults = append(faults, fmt.Errorf("protected tables %q and %q have one name: a neighbour schema holds one table of a name", other, t))
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
	case isSystemSchema(t.Schema) || isTempSchema(t.Schema):
		return errors.New("lies in a system schema")
	case strings.HasPrefix(t.Name, "pg_"):
		return errors.New("a name that starts with pg_ may be shadowed by a system catalog")
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
		return errors.New("is not UTF-8 text")
	}
	return nil
}

// newClaimer validates and compiles the rules.
func newClaimer(r ClaimRules) (*claimer, []error) {
	var faults []error
	c := &claimer{rules: r}
	switch r.Combine {
	case "", "add":
	case "share":
		c.share = true
	default:
		faults = append(faults, fmt.Errorf("combine %q: want add or share", r.Combine))
	}
	for _, s := range r.Signatures {
		if _, _, ok := splitFunction(s.Function); !ok {
			faults = append(faults, fmt.Errorf("signature function %q: want name or schema.name", s.Function))
		}
	}
	for i, rule := range r.Rules {
		if err := checkClaim(rule.Epsilon, rule.Delta); err != nil {
			faults = append(faults, fmt.Errorf("claim rule %d (%s): %w", i+1, rule.Name, err))
		}
		var pattern *regexp.Regexp
		if rule.Pattern != "" {
			var err error
			if pattern, err = regexp.Compile(rule.Pattern); err != nil {
				faults = append(faults, fmt.Errorf("claim rule %d (%s): %w", i+1, rule.Name, err))
			}
		}
		c.patterns = append(c.patterns, pattern)
	}
	if r.Default != nil {
		if err := checkClaim(r.Default.Epsilon, r.Default.Delta); err != nil {
			faults = append(faults, fmt.Errorf("default claim: %w", err))
		}
	}
	c.epsilonSetting = settingName(r.EpsilonSetting, DefaultEpsilonSetting)
	c.deltaSetting = settingName(r.DeltaSetting, DefaultDeltaSetting)
	return c, faults
}

// settingName applies the default and the "-" of ClaimRules.
func settingName(name, byDefault string) string {
	switch name {
	case "":
		return byDefault
	case "-":
		return ""
	}
	return strings.ToLower(name)
}

// checkClaim rejects numbers that cannot be a claim: 0 <= epsilon <= MaxEpsilon and 0 <= delta < 1 must hold.
func checkClaim(epsilon, delta float64) error {
	switch {
	case math.IsNaN(epsilon) || math.IsInf(epsilon, 0):
		return errors.New("epsilon is not a finite number")
	case epsilon < 0:
		return errors.New("epsilon is negative")
	case epsilon > MaxEpsilon:
		return fmt.Errorf("epsilon is above %g", MaxEpsilon)
	case math.IsNaN(delta) || delta < 0 || delta >= 1:
		return errors.New("delta is not in [0, 1)")
	}
	return nil
}

// splitFunction splits "schema.name" or "name".
func splitFunction(s string) (schema, name string, ok bool) {
	schema, name, qualified := strings.Cut(s, ".")
	if !qualified {
		schema, name = "", s
	}
	ok = name != "" && !strings.Contains(name, ".") && (schema != "" || !qualified)
	return schema, name, ok
}
