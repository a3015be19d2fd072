package hoist

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Shape is what a plan of PostgreSQL does with volatile functions: in which node it calls them, how often, and what it
// does with the results. Everything that is the same in every execution is left out.
type Shape struct{ root *point }

// point is a node of a plan that calls a volatile function, or that reads the rows of one that does.
type point struct {
	kind   string // the node's type; "" = below it everything is deterministic: which nodes compute that does not matter
	parent string // how it belongs to its parent: "InitPlan", "SubPlan" or ""
	calls  []string
	// rows is how often the calls are evaluated; NaN = it varies.
	rows, tolerance float64
	below           []*point
}

// node is a node in the output of EXPLAIN (FORMAT JSON).
type node struct {
	Type         string   `json:"Node Type"`
	Relationship string   `json:"Parent Relationship"`
	Subplan      string   `json:"Subplan Name"`
	CTE          string   `json:"CTE Name"`
	Output       []string `json:"Output"`
	Rows         float64  `json:"Actual Rows"`
	Loops        float64  `json:"Actual Loops"`
	Plans        []*node  `json:"Plans"`

	removed float64             // rows that a condition removed, in each loop
	filters bool                // a volatile function is called in a filter
	varies  bool                // one is called where it decides how many rows there are, like an argument of a function in FROM
	texts   map[string][]string // expressions other than Output, by field
}

// notExpressions are the fields with strings that hold no expressions.
var notExpressions = map[string]bool{
	"Node Type": true, "Parent Relationship": true, "Subplan Name": true, "CTE Name": true, "Output": true, "Relation Name": true, "Schema": true,
	"Alias": true, "Index Name": true, "Function Name": true, "Table Function Name": true, "Strategy": true, "Partial Mode": true, "Join Type": true,
	"Scan Direction": true, "Command": true, "Operation": true, "Sort Method": true, "Sort Space Type": true, "Cache Mode": true, "Storage": true,
	"Custom Plan Provider": true, "Tuplestore Name": true, "Window": true,
}

// UnmarshalJSON reads a node with the expressions in it.
func (n *node) UnmarshalJSON(b []byte) error {
	type plain node
	if err := json.Unmarshal(b, (*plain)(n)); err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	n.texts = map[string][]string{}
	for name, value := range fields {
		if removed, ok := value.(float64); ok && strings.HasPrefix(name, "Rows Removed by") {
			n.removed += removed
		}
		if !notExpressions[name] {
			n.texts[name] = textsIn(value)
		}
	}
	return nil
}

// textsIn returns the strings in a value, and in lists and objects within it, except plans.
func textsIn(value any) (all []string) {
	switch v := value.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, x := range v {
			if object, ok := x.(map[string]any); ok && object["Node Type"] != nil {
				continue
			}
			all = append(all, textsIn(x)...)
		}
	case map[string]any:
		for name, x := range v {
			if !notExpressions[name] {
				all = append(all, textsIn(x)...)
			}
		}
	}
	return all
}

// ReadShape reads the output of EXPLAIN (VERBOSE, ANALYZE, FORMAT JSON). The functions are those that count as
// volatile in k.
func ReadShape(explained []byte, k Knowledge) (Shape, error) {
	var all []struct {
		Plan *node `json:"Plan"`
	}
	if err := json.Unmarshal(explained, &all); err != nil || len(all) != 1 || all[0].Plan == nil {
		return Shape{}, errors.New("the output of EXPLAIN cannot be read")
	}
	r := shapeReader{know: k, volatile: map[string]bool{}}
	root := r.point(all[0].Plan)
	return Shape{root}, nil
}

type shapeReader struct {
	know     Knowledge
	volatile map[string]bool // CTEs in which a volatile function is called, by name
}

// point returns the point of a node; nil if everything in and below it is deterministic.
func (r *shapeReader) point(n *node) *point {
	var below []*point
	inputs := 0                     // of them, those that are no sub-query
	for _, child := range n.Plans { // CTEs come before their readers
		p := r.point(child)
		if name, ok := strings.CutPrefix(child.Subplan, "CTE "); ok {
			r.volatile[name] = p != nil
		}
		if p == nil {
			continue
		}
		if p.parent = ""; child.Relationship == "InitPlan" || child.Relationship == "SubPlan" {
			p.parent = child.Relationship
		} else {
			inputs++
		}
		below = append(below, p)
	}
	p := &point{kind: n.Type, calls: r.calls(n), below: below}
	varies := n.Type == "CTE Scan" && r.volatile[n.CTE] || n.Type == "Foreign Scan" || n.Type == "Sample Scan"
	switch {
	case len(below) == 0 && len(p.calls) == 0 && !varies:
		return nil
	case inputs == 0 && !varies: // what it reads is the same in every execution
		p.kind = ""
		p.rows, p.tolerance = n.Rows*n.Loops, n.Loops/2+1e-6*n.Rows*n.Loops
		switch {
		case n.varies:
			p.rows = math.NaN()
		case n.filters:
			p.rows, p.tolerance = (n.Rows+n.removed)*n.Loops, n.Loops+1e-6*n.Rows*n.Loops
		}
	case len(below) == 1 && inputs == 1 && len(p.calls) == 0 && passes(n):
		return below[0]
	default:
		p.rows = math.NaN()
	}
	return p
}

// passes reports whether a node without volatile calls passes on the rows that it reads, once each: in another order
// or with other columns.
func passes(n *node) bool {
	switch n.Type {
	case "Sort", "Incremental Sort", "Subquery Scan", "Result":
		return len(n.texts["Filter"]) == 0 && len(n.texts["One-Time Filter"]) == 0
	}
	return false
}

// calls returns the volatile calls that a node evaluates, with the places where it does so, sorted.
func (r *shapeReader) calls(n *node) []string {
	var known []string // expressions that nodes below evaluate: here they are references
	for _, child := range n.Plans {
		if child.Relationship == "InitPlan" || child.Relationship == "SubPlan" {
			continue
		}
		for _, text := range child.Output {
			if len(r.names(text)) > 0 {
				known = append(known, trim(unqualified(text)))
			}
		}
	}
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) })
	var all []string
	add := func(place, text string) {
		text = unqualified(text)
		for _, x := range known {
			text = strings.ReplaceAll(text, "("+x+")", "()")
			if trim(text) == x {
				text = ""
			}
		}
		names := r.names(text)
		if len(names) > 0 {
			slices.Sort(names)
			all = append(all, place+" "+strings.Join(names, ","))
		}
	}
	for _, text := range n.Output {
		add("output", text)
	}
	for field, texts := range n.texts {
		before := len(all)
		place := "condition"
		if strings.HasSuffix(field, "Key") || strings.HasSuffix(field, "Keys") {
			place = "key"
		}
		for _, text := range texts {
			add(place, text)
		}
		filter := strings.HasSuffix(field, "Filter") && field != "One-Time Filter"
		n.filters = n.filters || len(all) > before && filter
		n.varies = n.varies || len(all) > before && place == "condition" && !filter
	}
	slices.Sort(all)
	return all
}

// qualifier is the name of a relation before that of a column: one node may write it, and another not.
var qualifier = regexp.MustCompile(`("(?:[^"]|"")+"|\b[\pL_][\pL\pN_$]*)\.`)

// unqualified returns an expression without qualifiers.
func unqualified(text string) string { return qualifier.ReplaceAllString(text, "") }

// trim removes parentheses around a whole expression.
func trim(text string) string {
	for {
		text = strings.TrimSpace(text)
		if len(text) < 2 || text[0] != '(' || text[len(text)-1] != ')' {
			return text
		}
		depth := 0
		for i := range len(text) {
			switch text[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth == 0 && i < len(text)-1 {
				return text
			}
		}
		text = text[1 : len(text)-1]
	}
}

// called is the name of a function before its arguments.
var called = regexp.MustCompile(`("(?:[^"]|"")+"|[\pL_][\pL\pN_$]*)\(`)

// names returns the names of the volatile functions that an expression calls, each as often as it does.
func (r *shapeReader) names(text string) (all []string) {
	for _, m := range called.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if strings.HasPrefix(name, `"`) {
			name = strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
		}
		if r.know.Functions[name].Volatile {
			all = append(all, name)
		}
	}
	return all
}

// Difference returns how a plan of a query on hoisted tables differs from that of the whole query; "" = it calls the
// volatile functions in the same places, as often.
func (s Shape) Difference(whole Shape) string { return difference(s.root, whole.root) }

func difference(hoisted, whole *point) string {
	switch {
	case hoisted == nil && whole == nil:
		return ""
	case hoisted == nil || whole == nil:
		return "a volatile function is called in one of them only"
	case hoisted.kind != whole.kind:
		return fmt.Sprintf("a volatile function is evaluated in another place: %s, not %s", place(hoisted), place(whole))
	case hoisted.parent != whole.parent:
		return fmt.Sprintf("a sub-query with a volatile function is another kind: %s, not %s", parentOf(hoisted), parentOf(whole))
	case !slices.Equal(hoisted.calls, whole.calls):
		return fmt.Sprintf("other volatile calls are evaluated in one place: %s, not %s", list(hoisted.calls), list(whole.calls))
	case !(math.Abs(hoisted.rows-whole.rows) <= hoisted.tolerance+whole.tolerance) && !math.IsNaN(hoisted.rows) && !math.IsNaN(whole.rows):
		return "volatile functions are evaluated another number of times"
	case len(hoisted.below) != len(whole.below):
		return "volatile functions are evaluated in another number of places"
	}
	for i := range hoisted.below {
		if d := difference(hoisted.below[i], whole.below[i]); d != "" {
			return d
		}
	}
	return ""
}

func place(p *point) string {
	if p.kind == "" {
		return "above the deterministic part"
	}
	return "in a node " + p.kind
}

func parentOf(p *point) string {
	if p.parent == "" {
		return "part of the query"
	}
	return p.parent
}

func list(calls []string) string {
	if len(calls) == 0 {
		return "none"
	}
	return strings.Join(calls, "; ")
}
