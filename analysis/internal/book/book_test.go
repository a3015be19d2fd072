package book

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Below the claim, what is not bet gains what the claim's process gains, and nothing else does.
func TestRestFollowsTheClaim(t *testing.T) {
	t.Parallel()
	for _, below := range []bool{true, false} {
		k := &Book{}
		m := eprocess.ShiftMixture(eprocess.Excesses(false))
		bets, rests := k.Open([]event.View{event.Ascending}, m), k.Open([]event.View{event.Ascending}, m)
		e := &Epoch{
			Grants: []Grant{{bets, .25}, {rests, 1. / 3}}, Opened: 1, Claim: 3,
			Entries: []Entry{{Score: bets, Table: event.NewTable(2, 3)}, {Score: rests, Table: event.NewTable(2, 3), Scope: ClaimAlone}},
		}
		p := &Process{Null: eprocess.NewNull(.5, 0), Below: below}
		p.Begin(k, e)
		p.End(k, e, &Bet{})
		gain := 2 * float64(code.Bit(below))
		for i, c := range []struct{ got, want float64 }{
			{p.sums[bets], math.Log(.25)}, {p.sums[rests], math.Log(.25) + gain}, {eprocess.LogSumExp(p.of(k, rests)), math.Log(.25) + gain}, {p.cash, math.Log(.5) + gain},
		} {
			if math.Abs(c.got-c.want) > 1e-9 {
				t.Errorf("below %v, %d: %g, want %g", below, i, c.got, c.want)
			}
		}
	}
}
