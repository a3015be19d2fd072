// Package claim reads what a query claims: (epsilon, delta)-differential privacy of its result.
//
// In: a captured query with its tokens, the calls of DP functions in it, and the configured Rules. Out: the Claim of
// the first source that gives one, or an *Error. It is pure.
package claim

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// The values of Claim.Source.
const (
	SourceComment  = "comment"
	SourceArgument = "argument"
	SourceSetting  = "setting"
	SourceLabel    = "label"
	SourceRule     = "rule"
	SourceDefault  = "default"
)

// Claim is the claim of a query: (epsilon, delta)-differential privacy of its whole result, or a curve of it.
type Claim struct {
	Epsilon float64 // 0 <= Epsilon <= 1000
	Delta   float64 // 0 <= Delta < 1; 0 = pure
	// Curve is a claim of many (epsilon, delta), of which the above is the headline; "" = the above is the whole claim.
	Curve  curve.Curve
	Source string // one of the Source constants
	Rule   string // rule, DP functions, setting or labelled columns of the claim, or RuleAnswer; "" for a comment and the default
}

// Claimer applies Rules. It is read-only after construction.
type Claimer struct {
	rules                        Rules
	labels                       labels
	share                        bool
	epsilonSetting, deltaSetting string           // "" = none
	patterns                     []*regexp.Regexp // of rules.Rules; nil = none
}

// Input holds the sources of the claims of one query, and what rules match.
type Input struct {
	Query   capture.Query
	Tokens  []*pg_query.ScanToken
	Calls   []*Call
	Summary string        // the statement without literals
	Tables  []ident.Table // the protected tables that it reads
	Group   string        // its fingerprint

	Statement *pg_query.SelectStmt
	Values    map[string]Value // of expressions, and of Question
	Question  string           // the statement about which the engine is asked; "" = it is not asked

	Labelled []ident.Table // the tables and views that it reads, and what the views read, if Rules has LabelProviders
	Role     string        // the current role
}

// Error says why a claim cannot be used. It holds no literal of the query.
type Error struct {
	Detail, Hint string
	Offset       int  // in bytes; -1 = not known
	Uncertain    bool // the claim depends on settings that are not known
	// Expression, if it is not "", is what is missing in Input.Values: the SQL text of an argument, of constants and
	// immutable built-in functions, or Input.Question.
	Expression string
}

// Error returns Detail.
func (e *Error) Error() string { return e.Detail }

// part is the claim of one source. A source applies if it gives an epsilon; its delta may come from a later source.
type part struct {
	claim    Claim
	hasDelta bool
}

// Resolve returns the claim of a query, nil if it has none, and the claims of the client that were not accepted. The
// error is an *Error.
func (c *Claimer) Resolve(in Input) (claim *Claim, ignored []Claim, err error) {
	comment, err := commentClaim(in.Query.SQL, in.Tokens)
	if err != nil {
		return nil, nil, err
	}
	policy, err := c.engineClaim(in)
	if err != nil {
		return nil, nil, err
	}
	var argument *part
	if policy == nil {
		if argument, policy, err = c.written(in, comment != nil && c.rules.TrustComment); err != nil {
			return nil, nil, err
		}
	}
	in.Query.Settings, err = c.certainSettings(in, comment != nil || argument != nil, policy != nil)
	if err != nil {
		return nil, nil, err
	}
	setting, settingDelta, err := c.settingClaim(in, comment != nil || argument != nil)
	if err != nil {
		return nil, nil, err
	}
	// The delta for sources without one: the setting's if the client may choose it, otherwise the policy's.
	var delta float64
	if policy != nil {
		delta = policy.claim.Delta
	}
	if settingDelta != nil {
		if policy == nil || c.rules.TrustSetting || *settingDelta <= policy.claim.Delta {
			delta = *settingDelta
		}
	}
	limit := policy
	if argument != nil {
		limit = argument
	}
	for _, source := range []struct {
		part  *part
		limit *part // upper bound; nil = none
	}{
		{comment, unless(c.rules.TrustComment, limit)},
		{argument, nil},
		{setting, unless(c.rules.TrustSetting, policy)},
		{policy, nil},
	} {
		if source.part == nil {
			continue
		}
		claim := source.part.claim
		if !source.part.hasDelta {
			claim.Delta = delta
		}
		if source.limit != nil && source.limit.raisedBy(claim, delta) {
			ignored = append(ignored, claim)
			continue
		}
		return &claim, ignored, nil
	}
	return nil, ignored, nil
}

// written returns the claim of the arguments, and that of labels or of the configuration. Faults in sources that do not
// decide are ignored; decided means that an earlier source has.
func (c *Claimer) written(in Input, decided bool) (argument, policy *part, err error) {
	argument, err = c.argumentClaim(in)
	if err != nil && !decided {
		return nil, nil, err
	}
	policy, err = c.labelClaim(in)
	if err != nil && argument == nil && !decided {
		return nil, nil, err
	}
	if policy == nil {
		policy = c.policy(in)
	}
	return argument, policy, nil
}

func unless(trusted bool, limit *part) *part {
	if trusted {
		return nil
	}
	return limit
}

// raisedBy reports whether claim promises less privacy than p.
func (p *part) raisedBy(claim Claim, delta float64) bool {
	if p.hasDelta {
		delta = p.claim.Delta
	}
	if claim.Curve != "" || p.claim.Curve != "" {
		limit := p.claim
		limit.Delta = delta
		return !claim.curve().Tighter(limit.curve())
	}
	return claim.Epsilon > p.claim.Epsilon || claim.Delta > delta
}

// policy returns the configured claim: of the first rule that matches, otherwise the default, otherwise nil.
func (c *Claimer) policy(in Input) *part {
	for i, r := range c.rules.Rules {
		if c.matches(r, c.patterns[i], in) {
			name := r.Name
			if name == "" {
				name = fmt.Sprintf("claims.rules[%d]", i)
			}
			return policyPart(Claim{r.Epsilon, r.Delta, r.Curve, SourceRule, name})
		}
	}
	if d := c.rules.Default; d != nil {
		return policyPart(Claim{d.Epsilon, d.Delta, d.Curve, SourceDefault, ""})
	}
	return nil
}

func (c *Claimer) matches(r Rule, pattern *regexp.Regexp, in Input) bool {
	return (r.User == "" || r.User == in.Query.User) &&
		(r.Database == "" || r.Database == in.Query.Database) &&
		(r.ApplicationName == "" || r.ApplicationName == in.Query.ApplicationName) &&
		(r.Table == ident.Table{} || slices.Contains(in.Tables, r.Table)) &&
		(r.Fingerprint == "" || r.Fingerprint == in.Group) &&
		(pattern == nil || pattern.MatchString(in.Summary))
}

// certainSettings returns the session's settings without those of claims that may have changed. If the claim depends on
// one of these, it cannot be used: no earlier source has decided, and a setting may raise the policy's claim, or there
// is no policy and the query looks like one with a claim: it calls a DP function, or the session sets this very setting.
func (c *Claimer) certainSettings(in Input, decided, policy bool) (map[string]string, error) {
	settings := in.Query.Settings
	for _, name := range []string{c.epsilonSetting, c.deltaSetting} {
		if name == "" || !in.Query.Doubt.Has(name) {
			continue
		}
		_, given := settings[name]
		needed := given && name == c.deltaSetting || name == c.epsilonSetting && !decided && (given || len(in.Calls) > 0 || slices.Contains(in.Query.Doubt.Names, name))
		if needed && (!policy || c.rules.TrustSetting) {
			return nil, &Error{
				Detail: "the setting " + name + ", which holds the claim, may have changed",
				Hint:   "set it again after calls of functions that change settings, or give the claim in a comment or an argument", Offset: -1, Uncertain: true,
			}
		}
		settings = maps.Clone(settings)
		delete(settings, name)
	}
	return settings, nil
}

// settingClaim reads the session's settings. The epsilon is for each DP call: several calls without an epsilon of their
// own add up, unless the rules say that they share it. delta is also returned separately. decided reports that an
// earlier source has given the epsilon; then an invalid setting is ignored.
func (c *Claimer) settingClaim(in Input, decided bool) (claim *part, delta *float64, err error) {
	epsilonText, hasEpsilon := in.Query.Settings[c.epsilonSetting]
	deltaText, hasDelta := in.Query.Settings[c.deltaSetting]
	hasEpsilon = hasEpsilon && c.epsilonSetting != "" && epsilonText != "" && !decided
	hasDelta = hasDelta && c.deltaSetting != "" && deltaText != ""
	if !hasEpsilon && !hasDelta {
		return nil, nil, nil
	}
	calls := 1.0
	if n := len(in.Calls); n > 1 && !c.share {
		calls = float64(n)
	}
	p := &part{claim: Claim{Source: SourceSetting, Rule: c.epsilonSetting}}
	if hasDelta {
		d, fault := parseNumber(deltaText)
		d *= calls
		if fault == nil {
			fault = check(0, d)
		}
		if fault != nil {
			return nil, nil, bad("setting "+c.deltaSetting+": "+fault.Error(), -1)
		}
		p.claim.Delta, p.hasDelta, delta = d, true, &d
	}
	if !hasEpsilon {
		return nil, delta, nil
	}
	if isCurve(epsilonText) {
		p, fault := curveOfCalls(epsilonText, int(calls))
		if fault != nil {
			return nil, nil, bad("setting "+c.epsilonSetting+" "+fault.Error(), -1)
		}
		p.claim.Source, p.claim.Rule = SourceSetting, c.epsilonSetting
		return p, delta, nil
	}
	e, fault := parseNumber(epsilonText)
	p.claim.Epsilon = e * calls
	if fault == nil {
		fault = check(p.claim.Epsilon, 0)
	}
	if fault != nil {
		return nil, nil, bad("setting "+c.epsilonSetting+": "+fault.Error(), -1)
	}
	return p, delta, nil
}

// bad returns the error of an invalid claim.
func bad(detail string, offset int) error {
	return &Error{Detail: detail, Offset: offset, Hint: "a claim is 0 <= epsilon <= " +
		strconv.FormatFloat(maxEpsilon, 'g', -1, 64) + " and 0 <= delta < 1, as a constant or a bound parameter"}
}

// parseNumber parses a decimal number like the input functions of numeric and float8, without quoting it in the error.
func parseNumber(s string) (float64, error) {
	s = strings.Trim(s, ident.Space)
	v, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(v, 0) || strings.ContainsAny(s, "xXpP_") {
		return 0, errNotNumber
	}
	return v, nil
}
