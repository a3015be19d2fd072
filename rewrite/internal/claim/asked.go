package claim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// SourceEngine is the source of a claim that the engine states: in its answer to the client, then Claim.Rule is
// RuleAnswer, or when it is asked.
const (
	SourceEngine = "engine"
	RuleAnswer   = "claims.answer"
)

// engineClaim returns what the engine states about the statement: in its answer, otherwise when it is asked. nil if it
// states nothing.
func (c *Claimer) engineClaim(in Input) (*part, error) {
	if p, err := c.answeredClaim(in.Query.Stated); p != nil || err != nil {
		return p, err
	}
	return c.askedClaim(in)
}

// answeredClaim returns what the engine states in the answer that the client received; nil if it states nothing.
func (c *Claimer) answeredClaim(s capture.Stated) (*part, error) {
	if !c.rules.Answer || s.None() {
		return nil, nil
	}
	if s.Unclear {
		return nil, &Error{
			Detail: "it is not known what the engine states in its answer (claims.answer): the answer ended early, or the statement is one of several in a message",
			Hint:   "an execution of the statement alone that ends without an error is audited", Offset: -1,
		}
	}
	var v Value
	units := 0
	for _, u := range []struct {
		unit   string
		number float64
	}{{curve.Rho, s.Rho}, {curve.Mu, s.Mu}} {
		if u.number == 0 {
			continue
		}
		units++
		if c, err := curve.New(u.unit, u.number); err != nil {
			v.Fault = "has a " + u.unit + " that is no claim"
		} else {
			v = ofCurve(c)
		}
	}
	switch {
	case units > 1 || units > 0 && s.Epsilon > 0:
		v.Fault = "has more than one of epsilon, rho and mu"
	case units > 0:
	case s.Epsilon == 0:
		v.Fault = "has a delta and no epsilon"
	case check(s.Epsilon, s.Delta) != nil:
		v.Fault = "is no claim: 0 <= epsilon <= 1000 and 0 <= delta < 1"
	default:
		v = Value{Number: s.Epsilon, Delta: s.Delta}
	}
	if v.Fault != "" {
		return nil, &Error{Detail: "what the engine states in its answer (claims.answer) " + v.Fault, Hint: "an answer states epsilon, and delta if it has one, or rho, or mu", Offset: -1}
	}
	return &part{claim: Claim{Epsilon: v.Number, Delta: v.Delta, Curve: v.Curve, Source: SourceEngine, Rule: RuleAnswer}, hasDelta: true}, nil
}

// askedClaim returns what the engine states about the statement; nil if it is not asked, or states nothing.
func (c *Claimer) askedClaim(in Input) (*part, error) {
	if in.Question == "" {
		return nil, nil
	}
	value, known := in.Values[in.Question]
	switch {
	case !known:
		return nil, &Error{
			Detail: "the engine was not asked for the claim (claims.ask)", Hint: "dpwatch run, audit and doctor ask it", Offset: -1, Expression: in.Question,
		}
	case value.Fault != "":
		return nil, &Error{Detail: "the engine's answer to claims.ask " + value.Fault, Hint: "claims.ask is a query with one row: epsilon and delta, rho, mu, or a curve", Offset: -1}
	case value.None:
		return nil, nil
	}
	return &part{claim: Claim{Epsilon: value.Number, Delta: value.Delta, Curve: value.Curve, Source: SourceEngine}, hasDelta: true}, nil
}

// Stated returns the claim in the row with which an engine answers, by the names of its columns: epsilon and delta, or
// rho, mu, or curve. A single column with another name holds the epsilon. nil is NULL. An engine that answers with NULL
// alone, or with no row, states nothing.
func Stated(names []string, row []*string) (v Value) {
	fields := map[string]string{}
	for i, name := range names {
		name = ident.Fold(name)
		if len(names) == 1 && !slices.Contains([]string{"epsilon", "delta", "rho", "mu", "curve"}, name) {
			name = "epsilon"
		}
		if i < len(row) && row[i] != nil {
			fields[name] = *row[i]
		}
	}
	given := ""
	for _, name := range []string{"epsilon", curve.Rho, curve.Mu, "curve"} {
		text, ok := fields[name]
		switch {
		case !ok:
			continue
		case given != "":
			return Value{Fault: fmt.Sprintf("has both %s and %s", given, name)}
		}
		given = name
		if v = stated(name, text, fields["delta"]); v.Fault != "" {
			return v
		}
	}
	v.None = given == ""
	return v
}

func stated(name, text, deltaText string) Value {
	if name == "curve" {
		c, err := curve.Parse(text)
		if err != nil {
			return Value{Fault: "has a curve that is none"}
		}
		return ofCurve(c)
	}
	number, err := parseNumber(text)
	if err != nil {
		return Value{Fault: "has no number as " + name}
	}
	if name != "epsilon" {
		c, err := curve.New(name, number)
		if err != nil {
			return Value{Fault: "has a " + name + " that is no claim"}
		}
		return ofCurve(c)
	}
	delta := 0.0
	if strings.TrimSpace(deltaText) != "" {
		if delta, err = parseNumber(deltaText); err != nil {
			return Value{Fault: "has no number as delta"}
		}
	}
	if check(number, delta) != nil {
		return Value{Fault: "is no claim: 0 <= epsilon <= 1000 and 0 <= delta < 1"}
	}
	return Value{Number: number, Delta: delta}
}

func ofCurve(c curve.Curve) Value {
	claim := curvePart(c).claim
	return Value{Number: claim.Epsilon, Delta: claim.Delta, Curve: claim.Curve}
}
