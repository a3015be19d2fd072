// Package buckets assigns results to buckets by rules that the user writes, and gives a lower bound of epsilon from
// their counts.
//
// In: rules and pairs of outcomes. Out: the counts of the buckets in the order of their likelihood ratio, the point
// estimate of the seeds' bucket method, and a bound that holds at a confidence. It draws nothing.
package buckets

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// maxParts is the greatest number of intervals or values of one rule.
const maxParts = 1000

// Rule divides the values of one column.
type Rule struct {
	Column    string // "" = the only column
	edges     []float64
	words     []string
	quantiles int // above 0: the edges are quantiles
}

// Parse reads a rule: 0,10,20 for intervals, {a,b} for values, or quantile:10, each with COLUMN= before it if the
// results have several columns. The column rows is the number of rows of a result, unless a column has that name.
func Parse(text string) (r Rule, err error) {
	fault := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("--partition %s: %s", text, fmt.Sprintf(format, args...))
	}
	rest := text
	if i := strings.IndexAny(text, "={"); i >= 0 && text[i] == '=' {
		r.Column, rest = text[:i], text[i+1:]
		if r.Column == "" {
			return fault("give the name of the column before =")
		}
	}
	if list, ok := strings.CutPrefix(rest, "{"); ok {
		if list, ok = strings.CutSuffix(list, "}"); !ok {
			return fault("} is missing at the end")
		}
		if r.words, err = csv.NewReader(strings.NewReader(list)).Read(); err != nil {
			return fault("write the values between { and } with commas, and those with a comma in double quotes")
		}
		for i, w := range r.words {
			r.words[i] = canonical(w)
		}
		if len(r.words) > maxParts || len(slices.Compact(slices.Sorted(slices.Values(r.words)))) < len(r.words) {
			return fault("give at most %d values, each once", maxParts)
		}
		return r, nil
	}
	if number, ok := strings.CutPrefix(rest, "quantile:"); ok {
		if r.quantiles, err = strconv.Atoi(number); err != nil || r.quantiles < 2 || r.quantiles > maxParts {
			return fault("give a whole number from 2 to %d after quantile:", maxParts)
		}
		return r, nil
	}
	for edge := range strings.SplitSeq(rest, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(edge), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return fault("write numbers with commas (0,10,20), values ({a,b}) or quantile:N")
		}
		if n := len(r.edges); n > 0 && x <= r.edges[n-1] {
			return fault("the numbers must increase")
		}
		r.edges = append(r.edges, x)
	}
	if len(r.edges) > maxParts {
		return fault("give at most %d numbers", maxParts)
	}
	return r, nil
}

// canonical is the text of a value in a list: numbers that are equal have the same.
func canonical(word string) string {
	if x, err := strconv.ParseFloat(word, 64); err == nil {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return word
}

// Parts that a value can be in beside the intervals or values of a rule.
const (
	failed = -4 + iota
	noRow
	null
	other
)

// cell is a value with respect to a rule: its part, or for quantiles, which are not known yet, a number.
type cell struct {
	part  int
	x     float64
	isNum bool
}

// cell reads the value of a rule's column.
func (r *Rule) cell(o outcome.Outcome) (cell, error) {
	if o.Failed() {
		return cell{part: failed}, nil
	}
	column := 0
	if r.Column != "" {
		column = slices.IndexFunc(o.Columns, func(c outcome.Column) bool { return c.Name == r.Column })
		if column < 0 && r.Column == "rows" {
			return r.divide(outcome.Value{Kind: outcome.Number, Num: float64(len(o.Rows))}), nil
		}
	}
	switch {
	case len(o.Rows) == 0:
		return cell{part: noRow}, nil
	case column < 0:
		return cell{}, fmt.Errorf("--partition: the results have no column %s", r.Column)
	case r.Column == "" && len(o.Columns) != 1:
		return cell{}, fmt.Errorf("--partition: the results have %d columns: name one with COLUMN=", len(o.Columns))
	case len(o.Rows) > 1:
		return cell{}, fmt.Errorf("--partition: a result has %d rows, and a column has one value only in a single row: divide the number of rows (rows=...), or give the results of one group", len(o.Rows))
	}
	return r.divide(o.Rows[0][column]), nil
}

func (r *Rule) divide(v outcome.Value) cell {
	isNumber := v.Kind == outcome.Number && !math.IsNaN(v.Num)
	switch {
	case v.Kind == outcome.Null:
		return cell{part: null}
	case r.words != nil:
		text := v.Text
		switch v.Kind {
		case outcome.Number:
			text = strconv.FormatFloat(v.Num, 'g', -1, 64)
		case outcome.Bool:
			text = strconv.FormatBool(v.Num != 0)
		}
		if i := slices.Index(r.words, text); i >= 0 {
			return cell{part: i}
		}
		return cell{part: other}
	case !isNumber:
		return cell{part: other}
	case r.quantiles > 0:
		return cell{x: v.Num, isNum: true}
	}
	return cell{part: interval(r.edges, v.Num)}
}

// interval returns the number of edges up to x: intervals contain their lower end.
func interval(edges []float64, x float64) int {
	i, found := slices.BinarySearch(edges, x)
	if found {
		i++
	}
	return i
}

// name returns the name of a part. Edges that come from results are withheld.
func (r *Rule) name(part int) withheld.Text {
	prefix := ""
	if r.Column != "" {
		prefix = r.Column + " "
	}
	switch part {
	case failed:
		return withheld.Public("error")
	case noRow:
		return withheld.Public("no row")
	case null:
		return withheld.Public(prefix + "NULL")
	case other:
		return withheld.Public(prefix + "other")
	}
	if r.words != nil {
		return withheld.Public(prefix + r.words[part])
	}
	text := "all numbers"
	switch last := len(r.edges); {
	case last == 0:
	case part == 0:
		text = fmt.Sprintf("below %.4g", r.edges[0])
	case part == last:
		text = fmt.Sprintf("%.4g and above", r.edges[last-1])
	default:
		text = fmt.Sprintf("%.4g to %.4g", r.edges[part-1], r.edges[part])
	}
	if r.quantiles > 0 {
		return withheld.New(prefix+text, fmt.Sprintf("%squantile bucket %d of %d", prefix, part+1, len(r.edges)+1))
	}
	return withheld.Public(prefix + text)
}
