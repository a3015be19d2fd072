package rewrite

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// Numbers are numbers in the text of a query from which the analysis knows what the engine and the query do.
type Numbers struct {
	// Bound is the greatest absolute value of the numbers that the query gives to functions, such as bounds of values,
	// without those that are its claim; 0 = none. Of a variance it is the square.
	Bound float64
	// Constants are the absolute values of the numbers which the query adds, or by which it multiplies or divides, each
	// once, without 0, those of the operation that is done last first.
	Constants []float64
}

// With returns the numbers of two statements.
func (n Numbers) With(other Numbers) Numbers {
	all := Numbers{Bound: max(n.Bound, other.Bound), Constants: slices.Clone(n.Constants)}
	for _, x := range other.Constants {
		all.add(x)
	}
	return all
}

func (n *Numbers) add(x float64) {
	if x = math.Abs(x); x > 0 && !slices.Contains(n.Constants, x) {
		n.Constants = append(n.Constants, x)
	}
}

// numbersOf returns the numbers of a query that claims c.
func numbersOf(s *pg_query.SelectStmt, c *Claim) (n Numbers) {
	number := func(m proto.Message) bool {
		if a, ok := m.(*pg_query.A_Const); ok {
			if x := math.Abs(numberIn(a)); c == nil || x != c.Epsilon && x != c.Delta {
				n.Bound = max(n.Bound, x)
			}
		}
		return true
	}
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		call, ok := m.(*pg_query.FuncCall)
		before := n.Bound
		n.Bound = 0
		for _, arg := range call.GetArgs() {
			pgparse.Inspect(arg.ProtoReflect(), number)
		}
		if isVariance(call) {
			n.Bound *= n.Bound
		}
		n.Bound = max(n.Bound, before)
		return !ok
	})
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		e, _ := m.(*pg_query.A_Expr)
		names := e.GetName()
		if len(names) > 0 && slices.Contains([]string{"+", "-", "*", "/"}, names[len(names)-1].GetString_().GetSval()) {
			n.add(operand(e.GetLexpr()))
			n.add(operand(e.GetRexpr()))
		}
		return true
	})
	return n
}

// variance are names of functions whose answer is in squares of what they are given, nanvar for example.
var variance = regexp.MustCompile(`(?i)var(iance|_pop|_samp)?$`)

// isVariance reports whether a function, or a text that it is given, is the name of a variance.
func isVariance(call *pg_query.FuncCall) bool {
	names := call.GetFuncname()
	return len(names) > 0 && variance.MatchString(names[len(names)-1].GetString_().GetSval()) ||
		slices.ContainsFunc(call.GetArgs(), func(a *pg_query.Node) bool { return variance.MatchString(a.GetAConst().GetSval().GetSval()) })
}

// operand returns the number that an operand is, with a cast or without; 0 = it is none.
func operand(e *pg_query.Node) float64 {
	return numberIn(cmp.Or(e.GetTypeCast().GetArg(), e).GetAConst())
}

// numberIn returns a constant that is a number, and 0 for others.
func numberIn(a *pg_query.A_Const) float64 {
	if i := a.GetIval(); i != nil {
		return float64(i.GetIval())
	}
	x, err := strconv.ParseFloat(a.GetFval().GetFval(), 64)
	if err != nil {
		return 0
	}
	return x
}
