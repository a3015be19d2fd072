package calibrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a function computes.
type Kind string

// The kinds.
const (
	Count   Kind = "count"
	Sum     Kind = "sum"
	Average Kind = "average"
)

// Function is an expression of the engine that returns one noisy number. Placeholders in it stand for the column, the
// claim, the bounds of the values and the table; see [Placeholders].
type Function struct {
	Kind     Kind
	Template string
}

// Placeholders returns the placeholders of a template and what they stand for.
func Placeholders() map[string]string {
	return map[string]string{
		"$value": "the column", "$epsilon": "the claimed epsilon", "$delta": "the claimed delta", "$lower": "the lower bound of values",
		"$upper": "the upper bound of values", "$table": "the table, schema.name",
	}
}

var placeholder = regexp.MustCompile(`\$[A-Za-z_]+`)

// ParseFunction reads KIND=EXPRESSION, for example "sum=anon_sum($value, $lower, $upper, $epsilon)".
func ParseFunction(text string) (Function, error) {
	kind, template, found := strings.Cut(text, "=")
	f := Function{Kind(strings.TrimSpace(kind)), strings.TrimSpace(template)}
	if !found || f.Template == "" || !slices.Contains([]Kind{Count, Sum, Average}, f.Kind) {
		return f, fmt.Errorf("%q: write count=EXPRESSION, sum=EXPRESSION or average=EXPRESSION", text)
	}
	known := Placeholders()
	for _, name := range placeholder.FindAllString(f.Template, -1) {
		if known[name] == "" {
			return f, fmt.Errorf("%q: %s is no placeholder: use $value, $epsilon, $delta, $lower, $upper or $table", text, name)
		}
	}
	if !strings.Contains(f.Template, "$epsilon") {
		return f, errors.New(strconv.Quote(text) + ": there is no $epsilon: the function must be called with the epsilon that it is held to")
	}
	return f, nil
}

// sql returns the query of a case on a table.
func (f Function) sql(c *Case, o *Options, table string) string {
	values := map[string]string{
		"$value": column, "$epsilon": fraction(c.Epsilon), "$delta": fraction(o.Delta), "$lower": number(o.Lower), "$upper": number(o.Upper), "$table": table,
	}
	text := placeholder.ReplaceAllStringFunc(f.Template, func(name string) string { return values[name] })
	if strings.Contains(f.Template, "$table") {
		return "SELECT " + text
	}
	return "SELECT " + text + " FROM " + table
}

// number returns a literal. Negative ones have parentheses, without which 1-$lower would be a comment.
func number(x float64) string {
	text := strconv.FormatFloat(x, 'f', -1, 64)
	if x < 0 {
		return "(" + text + ")"
	}
	return text
}

// fraction returns a literal that is not of an integer type, with which 1/$epsilon would be 0.
func fraction(x float64) string {
	text := number(x)
	if !strings.Contains(text, ".") {
		return text + ".0"
	}
	return text
}
