package rewrite

import (
	"math"
	"strconv"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"

	"github.com/dpwatch/dpwatch/internal/pgparse"
)

// bound returns the greatest absolute value of the numbers that a query gives to functions, without those that are its
// claim; 0 = none. Among them are the bounds to which a differentially private function clips values.
func bound(s *pg_query.SelectStmt, c *Claim) (most float64) {
	number := func(m proto.Message) bool {
		var x float64
		if n, ok := m.(*pg_query.A_Const); ok && n.GetIval() != nil {
			x = math.Abs(float64(n.GetIval().GetIval()))
		} else if f, err := strconv.ParseFloat(n.GetFval().GetFval(), 64); ok && err == nil {
			x = math.Abs(f)
		}
		if c == nil || x != c.Epsilon && x != c.Delta {
			most = max(most, x)
		}
		return true
	}
	pgparse.Inspect(s.ProtoReflect(), func(m proto.Message) bool {
		call, ok := m.(*pg_query.FuncCall)
		for _, arg := range call.GetArgs() {
			pgparse.Inspect(arg.ProtoReflect(), number)
		}
		return !ok
	})
	return most
}
