package rewrite

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// The values of Claim.Source.
const (
	SourceComment  = "comment"
	SourceArgument = "argument"
	SourceSetting  = "setting"
	SourceRule     = "rule"
	SourceDefault  = "default"
)

// Claim is the claim of a query: (epsilon, delta)-differential privacy of its whole result.
type Claim struct {
	Epsilon float64 // 0 <= Epsilon <= MaxEpsilon
	Delta   float64 // 0 <= Delta < 1; 0 = pure
	Source  string  // one of the Source constants
	Rule    string  // rule, DP functions or setting of the claim; "" for a comment and the default
}

// claimer applies ClaimRules. It is read-only after construction.
type claimer struct {
	rules                        ClaimRules
	share                        bool
	epsilonSetting, deltaSetting string           // "" = none
	patterns                     []*regexp.Regexp // of rules.Rules; nil = none
}

// claimInput holds the sources of the claims of one query.
type claimInput struct {
	q       capture.Query
	tokens  []*pg_query.ScanToken
	calls   []*dpCall
	summary string
}

// part is the claim of one source. A source applies if it gives an epsilon; its delta may come from a later source.
type part struct {
	claim    Claim
	hasDelta bool
}

// resolve sets p.Claim and p.Ignored.
func (c *claimer) resolve(in claimInput, p *Plan) error {
	comment, err := commentClaim(in.q.SQL, in.tokens)
	if err != nil {
		return err
	}
	argument, err := c.argumentClaim(in)
	if err != nil && (comment == nil || !c.rules.TrustComment) {
		return err
	}
	policy := c.policy(in, p)
	setting, settingDelta, err := c.settingClaim(in, comment != nil || argument != nil)
	if err != nil {
		return err
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
			p.Ignored = append(p.Ignored, claim)
			continue
		}
		p.Claim = &claim
		return nil
	}
	return nil
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
	return claim.Epsilon > p.claim.Epsilon || claim.Delta > delta
}

// policy returns the configured claim: of the first rule that matches, otherwise the default, otherwise nil.
func (c *claimer) policy(in claimInput, p *Plan) *part {
	for i, r := range c.rules.Rules {
		if c.matches(r, c.patterns[i], in, p) {
			name := r.Name
			if name == "" {
				name = fmt.Sprintf("claims.rules[%d]", i)
			}
			return &part{Claim{r.Epsilon, r.Delta, SourceRule, name}, true}
		}
	}
	if d := c.rules.Default; d != nil {
		return &part{Claim{d.Epsilon, d.Delta, SourceDefault, ""}, true}
	}
	return nil
}

func (c *claimer) matches(r Rule, pattern *regexp.Regexp, in claimInput, p *Plan) bool {
	return (r.User == "" || r.User == in.q.User) &&
		(r.Database == "" || r.Database == in.q.Database) &&
		(r.ApplicationName == "" || r.ApplicationName == in.q.ApplicationName) &&
		(r.Table == Table{} || slices.Contains(p.Tables, r.Table)) &&
		(r.Fingerprint == "" || r.Fingerprint == p.Group) &&
		(pattern == nil || pattern.MatchString(in.summary))
}

// settingClaim reads the session's settings. The epsilon is for each DP call: several calls without an epsilon of their own
// add up, unless the rules say that they share it. delta is also returned separately. decided reports that an earlier
// source has given the epsilon; then an invalid setting is ignored.
func (c *claimer) settingClaim(in claimInput, decided bool) (claim *part, delta *float64, err error) {
	epsilonText, hasEpsilon := in.q.Settings[c.epsilonSetting]
	deltaText, hasDelta := in.q.Settings[c.deltaSetting]
	hasEpsilon = hasEpsilon && c.epsilonSetting != "" && epsilonText != "" && !decided
	hasDelta = hasDelta && c.deltaSetting != "" && deltaText != ""
	if !hasEpsilon && !hasDelta {
		return nil, nil, nil
	}
	if in.q.SettingsUncertain {
		return nil, nil, refuse(ReasonSettingsUncertain, "the claim's settings may have changed", "give the claim in a comment or an argument")
	}
	calls := 1.0
	if n := len(in.calls); n > 1 && !c.share {
		calls = float64(n)
	}
	p := &part{claim: Claim{Source: SourceSetting, Rule: c.epsilonSetting}}
	if hasDelta {
		d, fault := parseNumber(deltaText)
		d *= calls
		if fault == nil {
			fault = checkClaim(0, d)
		}
		if fault != nil {
			return nil, nil, badClaim("setting "+c.deltaSetting+": "+fault.Error(), -1)
		}
		p.claim.Delta, p.hasDelta, delta = d, true, &d
	}
	if !hasEpsilon {
		return nil, delta, nil
	}
	e, fault := parseNumber(epsilonText)
	p.claim.Epsilon = e * calls
	if fault == nil {
		fault = checkClaim(p.claim.Epsilon, 0)
	}
	if fault != nil {
		return nil, nil, badClaim("setting "+c.epsilonSetting+": "+fault.Error(), -1)
	}
	return p, delta, nil
}

// badClaim returns the refusal of an invalid claim. detail holds no literal.
func badClaim(detail string, offset int) *UnsupportedError {
	return &UnsupportedError{Reason: ReasonBadClaim, Detail: detail, Offset: offset, Hint: "a claim is 0 <= epsilon <= " +
		strconv.FormatFloat(MaxEpsilon, 'g', -1, 64) + " and 0 <= delta < 1, as a constant or a bound parameter"}
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
