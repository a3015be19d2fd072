package power

import (
	"math/rand/v2"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// giving is what a sparse vector mechanism says of a query above its threshold, beside that it is.
type giving int

const (
	nothing      giving = iota
	answerItself        // the noisy answer that was compared (algorithm 3 of Lyu et al. 2017)
	freshNoise          // the answer with noise of its own (Wang et al., PLDI 2019)
)

// svt is the sparse vector technique as DP-Sniper's benchmark has it: Laplace noise of scale b0 on the threshold t, b1
// on every query (0 for none) and b2 on answers that are given. It stops after cut positive answers, or never (cut 0).
type svt struct {
	t, b0, b1, b2 float64
	cut           int
	renew         bool // the threshold's noise is drawn anew after every positive answer
	give          giving
}

// run returns one row: the answers as a text like FFT, and a column per query with the value that is given, or NULL.
// Where there is no cut-off it has a column per answer.
func (s svt) run(r *rand.Rand, queries []float64) analysis.Outcome {
	t, endless := s.t+lap(r, s.b0), s.cut == 0
	values := make([]analysis.Value, len(queries))
	var flags []byte
	for i, q := range queries {
		x := q
		if s.b1 > 0 {
			x += lap(r, s.b1)
		}
		if x < t {
			flags = append(flags, 'F')
			continue
		}
		flags = append(flags, 'T')
		if s.give == freshNoise {
			x = q + lap(r, s.b2)
		}
		values[i] = number(x)
		if s.cut--; s.cut == 0 {
			break
		}
		if s.renew {
			t = s.t + lap(r, s.b0)
		}
	}
	if endless {
		return columnsOf(flags)
	}
	o := word(string(flags))
	if s.give == nothing {
		return o
	}
	for i := range values {
		o.Columns = append(o.Columns, analysis.Column{Name: "q" + strconv.Itoa(i)})
	}
	o.Rows[0] = append(o.Rows[0], values...)
	return o
}

// columnsOf is one row with a column per flag.
func columnsOf(flags []byte) analysis.Outcome {
	o := analysis.Outcome{Rows: [][]analysis.Value{nil}}
	for i, f := range flags {
		o.Columns = append(o.Columns, analysis.Column{Name: "q" + strconv.Itoa(i), Discrete: true})
		o.Rows[0] = append(o.Rows[0], analysis.Value{Kind: analysis.Text, Text: string(f)})
	}
	return o
}

// rappor is RAPPOR (Erlingsson, Pihur and Korolova 2014) with a Bloom filter of 20 bits: permanent randomised response
// f, then an instantaneous answer of 1 with probability q for a set bit and p for another.
type rappor struct{ f, p, q float64 }

// run returns 20 columns. The four bits from the given one on are set by the value.
func (m rappor) run(r *rand.Rand, first int) analysis.Outcome {
	bits := make([]float64, 20)
	for i := range bits {
		set := i >= first && i < first+4
		if r.Float64() < m.f {
			set = r.Uint64()&1 == 0
		}
		chance := m.p
		if set {
			chance = m.q
		}
		if r.Float64() < chance {
			bits[i] = 1
		}
	}
	o := columns(bits...)
	for i := range o.Columns {
		o.Columns[i].Discrete = true
	}
	return o
}
