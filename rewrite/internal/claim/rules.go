package claim

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

const (
	defaultEpsilonSetting = "dp.epsilon"
	defaultDeltaSetting   = "dp.delta"
	maxEpsilon            = 1000.0 // a larger claim is rejected
)

// Rules configures the sources of claims. Their order is: comment, argument, setting, label, rule, default.
//
// The client controls a comment and a setting. They may lower the claim of an argument, a label, a rule or the default;
// they may raise it only if trusted; if there is none of these, they are accepted. What the engine states in its answer
// to the client, otherwise when it is asked, takes the place of argument, label, rule and default.
type Rules struct {
	Answer     bool // the engine states claims in its answers: capture.Query.Stated
	Ask        bool // the engine is asked about each statement
	Signatures []Signature
	// Combine is how the claims of several DP calls in one query combine: "add" (also "") is their sum, sequential
	// composition over the calls as written, "share" their maximum.
	Combine string
	// EpsilonSetting and DeltaSetting name the session settings of a claim, per DP call; "" = the defaults, "-" = none.
	EpsilonSetting, DeltaSetting string
	Rules                        []Rule // the first match applies
	Default                      *Claim // only Epsilon, Delta and Curve are read; nil = none
	TrustComment, TrustSetting   bool
	// LabelProviders are the providers of the SECURITY LABELs that are read for claims; nil = none.
	LabelProviders []string
	Labels         []catalog.Label // of the engine's catalog
	CopyLabels     []catalog.Label // of the shadow database's catalog
	Neighbours     []string        // the schemas of the copies
}

// Signature declares a DP function and the arguments that hold its claim. Replays may call such a function.
type Signature struct {
	Function string // folded as by PostgreSQL, optionally schema-qualified: "anon_count", "dp.noisy_sum"
	// Epsilon and Delta are positions: 1 the first argument, -1 the last, 0 = no such argument. For a call with fewer
	// arguments the next source applies.
	Epsilon, Delta int
	// Unit is that of the epsilon argument: "" is epsilon, curve.Mu or curve.Rho are those of a curve, which has no delta.
	Unit string
	// EpsilonName and DeltaName are the parameters' names, for calls in named notation; "" = none.
	EpsilonName, DeltaName string
}

// Rule gives a claim to the queries that meet all of its conditions; "" (and the zero Table) is no condition.
type Rule struct {
	Name                            string      // shown in findings; "" = "claims.rules[i]"
	User, Database, ApplicationName string      // exact
	Table                           ident.Table // a protected table that the query reads
	Fingerprint                     string      // Plan.Group
	Pattern                         string      // regular expression (RE2) for the summary, which holds no literals
	Epsilon, Delta                  float64
	Curve                           curve.Curve // instead of both; "" = none
}

// New validates and compiles rules, and returns all faults.
func New(r Rules) (*Claimer, []error) {
	var faults []error
	c := &Claimer{rules: r}
	switch r.Combine {
	case "", "add":
	case "share":
		c.share = true
	default:
		faults = append(faults, fmt.Errorf("combine %q: use add or share", r.Combine))
	}
	for _, s := range r.Signatures {
		if _, _, ok := ident.ParseFunction(s.Function); !ok {
			faults = append(faults, fmt.Errorf("DP function %q: write it as name or schema.name", s.Function))
		}
		if s.Unit != "" && !slices.Contains(curve.Units(), s.Unit) {
			faults = append(faults, fmt.Errorf("DP function %q: the unit is mu or rho, or none for epsilon", s.Function))
		}
	}
	for i, rule := range r.Rules {
		if err := check(rule.Epsilon, rule.Delta); err != nil {
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
		if err := check(r.Default.Epsilon, r.Default.Delta); err != nil {
			faults = append(faults, fmt.Errorf("default claim: %w", err))
		}
	}
	c.labels = readLabels(r)
	c.epsilonSetting = settingName(r.EpsilonSetting, defaultEpsilonSetting)
	c.deltaSetting = settingName(r.DeltaSetting, defaultDeltaSetting)
	return c, faults
}

// Settings returns the names of the settings that hold claims.
func (c *Claimer) Settings() []string { return []string{c.epsilonSetting, c.deltaSetting} }

// settingName applies the default and the "-" of Rules.
func settingName(name, byDefault string) string {
	switch name {
	case "":
		return byDefault
	case "-":
		return ""
	}
	return strings.ToLower(name)
}

// check rejects numbers that cannot be a claim: 0 <= epsilon <= maxEpsilon and 0 <= delta < 1 must hold.
func check(epsilon, delta float64) error {
	switch {
	case math.IsNaN(epsilon) || math.IsInf(epsilon, 0):
		return errors.New("epsilon is not a finite number")
	case epsilon < 0:
		return errors.New("epsilon is negative")
	case epsilon > maxEpsilon:
		return fmt.Errorf("epsilon is above %g", maxEpsilon)
	case math.IsNaN(delta) || delta < 0 || delta >= 1:
		return errors.New("delta is not in [0, 1)")
	}
	return nil
}
