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

// Facts are what the text of a query says to the analysis about what the engine and the query do.
type Facts struct {
	// Bound is the greatest absolute value of the numbers that the query gives to functions, such as bounds of values,
	// without those that are its claim; 0 = none. Of a variance it is the square.
	Bound float64
	// Constants are the absolute values of the numbers which the query adds, or by which it multiplies or divides, each
	// once, without 0, those of the operation that is done last first.
	Constants []float64
	// Average says that a column of the answer is the call of a function that is named as an average.
	Average bool
}

// With returns the facts of two statements.
func (f Facts) With(other Facts) Facts {
	all := Facts{Bound: max(f.Bound, other.Bound), Constants: slices.Clone(f.Constants), Average: f.Average || other.Average}
	for _, x := range other.Constants {
		all.add(x)
	}
	return all
}

func (f *Facts) add(x float64) {
	if x = math.Abs(x); x > 0 && !slices.Contains(f.Constants, x) {
		f.Constants = append(f.Constants, x)
	}
}

// factsOf returns the facts of a query that claims c.
func factsOf(s *pg_query.SelectStmt, c *Claim) (f Facts) {
	for _, target := range s.GetTargetList() {
		names := target.GetResTarget().GetVal().GetFuncCall().GetFuncname()
		f.Average = f.Average || len(names) > 0 && average.MatchString(names[len(names)-1].GetString_().GetSval())
	}
	number := func(m proto.Message) bool {
		if a, ok := m.(*pg_query.A_Const); ok {
			if x := math.Abs(numberIn(a)); c == nil || x != c.Epsilon && x != c.Delta {
				f.Bound = max(f.Bound, x)
			}
		}
		return true
	}
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		call, ok := m.(*pg_query.FuncCall)
		before := f.Bound
		f.Bound = 0
		for _, arg := range call.GetArgs() {
			pgparse.Inspect(arg.ProtoReflect(), number)
		}
		if isVariance(call) {
			f.Bound *= f.Bound
		}
		f.Bound = max(f.Bound, before)
		return !ok
	})
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		e, _ := m.(*pg_query.A_Expr)
		names := e.GetName()
		if len(names) > 0 && slices.Contains([]string{"+", "-", "*", "/"}, names[len(names)-1].GetString_().GetSval()) {
			f.add(operand(e.GetLexpr()))
			f.add(operand(e.GetRexpr()))
		}
		return true
	})
	return f
}

// average are names of averages, dp_mean for example.
var average = regexp.MustCompile(`(?i)(avg|mean|average)$`)

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
