package claim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/internal/curve"
)

// errCurve is the fault of an argument that holds more than one number.
var errCurve = errors.New("is a curve or a list, and an argument of a function is one number: declare its unit (unit: mu or rho in claims.functions), or give the curve in a comment (dp_curve), a setting or a rule")

// isCurve reports whether a text looks like a curve, valid or not.
func isCurve(text string) bool { return strings.ContainsAny(text, "=({[,") }

// curvePart returns the claim of a curve, without a source.
func curvePart(c curve.Curve) *part {
	p := c.Headline()
	return &part{claim: Claim{Epsilon: p.Epsilon, Delta: p.Delta, Curve: c}, hasDelta: true}
}

// policyPart returns a configured claim, with the headline of its curve if it has one.
func policyPart(c Claim) *part {
	if c.Curve != "" {
		p := c.Curve.Headline()
		c.Epsilon, c.Delta = p.Epsilon, p.Delta
	}
	return &part{c, true}
}

// curve returns the claim as a curve: of one point if it is none.
func (c Claim) curve() curve.Curve {
	if c.Curve != "" {
		return c.Curve
	}
	return curve.Of(c.Epsilon, c.Delta)
}

// curveOfCalls returns the claim of a setting that holds a curve, for a number of DP calls.
func curveOfCalls(text string, calls int) (*part, error) {
	one, err := curve.Parse(text)
	if err != nil {
		return nil, err
	}
	all := one
	for range calls - 1 {
		sum, ok := all.Add(one)
		if !ok {
			return nil, fmt.Errorf("holds a claim of each DP call, and the query has %d: points of a list do not add up, nor do parameters beyond the limits; give mu or rho, or the claim of the whole query in a comment (dp_curve)", calls)
		}
		all = sum
	}
	return curvePart(all), nil
}

// Compose returns the claim of two answers together, with the source of a: the sum, or the maximum if most is set. If
// their curves do not compose, their headlines do. A claim of nothing adds nothing.
func Compose(a, b Claim, most bool) Claim {
	if none := (Claim{Source: a.Source, Rule: a.Rule}); a == none {
		b.Source, b.Rule = a.Source, a.Rule
		return b
	}
	c, with := a, curve.Curve.Add
	if most {
		with = curve.Curve.Max
	}
	if c.Curve, _ = with(a.Curve, b.Curve); c.Curve != "" {
		p := c.Curve.Headline()
		c.Epsilon, c.Delta = p.Epsilon, p.Delta
		return c
	}
	if most {
		c.Epsilon, c.Delta = max(a.Epsilon, b.Epsilon), max(a.Delta, b.Delta)
	} else {
		c.Epsilon, c.Delta = a.Epsilon+b.Epsilon, a.Delta+b.Delta
	}
	return c
}
