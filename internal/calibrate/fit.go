package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/noise"
)

// Fit says how well the noise of a function fits the law that its arguments ask for. It decides no verdict.
type Fit struct {
	Reading noise.Reading  `json:"reading"`
	Law     string         `json:"law"`         // the one that fits best
	Scale   analysis.Float `json:"scale_ratio"` // the estimated scale over the one asked for
	Mean    analysis.Float `json:"mean"`        // of the noise, in scales asked for
	PValue  analysis.Float `json:"p_value"`
	Trials  int            `json:"trials"`
}

// fitConfidence is the confidence of each reading.
const fitConfidence = .9999

// residuals runs a query and returns its answers minus the truth. It returns nil if an answer is not a number, or an
// execution fails for a reason other than the query's text: these are outcomes, which an audit compares.
func residuals(ctx context.Context, conn *pgx.Conn, sql string, trials int, truth float64) ([]float64, error) {
	var all []float64
	for i := range trials {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if outcome(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("execution %d of %s: %w", i+1, sql, err)
		}
		if len(results) != 1 || len(results[0].FieldDescriptions) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 1 {
			return nil, fmt.Errorf("%s does not return one row of one column: the expression must return one number", sql)
		}
		x, err := strconv.ParseFloat(string(results[0].Rows[0][0]), 64)
		if x -= truth; err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, nil
		}
		all = append(all, x)
	}
	return all, nil
}

// outcome reports whether an error is one that a function may raise on some data only. Class 42 is syntax, unknown
// names, types and privileges.
func outcome(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && !strings.HasPrefix(pg.Code, "42")
}

// law is a law that noise may have.
type law struct {
	name string
	noise.Law
	rounded bool // whole numbers, by rounding an answer
}

// laws returns the laws that keep the claim. An average has one of its own only where the table is large enough that
// the noise of its divisor does not matter.
func laws(kind Kind, d data, epsilon, delta float64, whole bool) (all []law) {
	reach := max(math.Abs(d.bounds[0]), math.Abs(d.bounds[1]))
	scale := map[Kind]float64{Count: 1, Sum: reach, Average: (d.bounds[1] - d.bounds[0]) / float64(len(d.values))}[kind] / epsilon
	if kind == Average && (len(d.values) <= smallTable || float64(len(d.values))*epsilon < 50) {
		return nil
	}
	all = append(all, law{"laplace", noise.Law{Family: noise.Laplace, Scale: scale}, false})
	if whole {
		all = append(all, law{"geometric", noise.Law{Family: noise.Geometric, Scale: scale}, false})
		all = append(all, law{"laplace, rounded", noise.Law{Family: noise.Laplace, Scale: scale}, true})
	}
	if delta > 0 {
		all = append(all, law{"gaussian", noise.Law{Family: noise.Gaussian, Scale: scale * math.Sqrt(2*math.Log(1.25/delta))}, false})
	}
	return all
}

// fit compares residuals with the laws and returns the best fit, nil if there is no law.
func fit(kind Kind, d data, epsilon, delta float64, residuals []float64) (best *Fit, err error) {
	whole := true
	for _, x := range residuals {
		whole = whole && x == math.Trunc(x)
	}
	rank := map[noise.Reading]int{noise.Correct: 0, noise.MinorError: 1, noise.Wrong: 2}
	for _, l := range laws(kind, d, epsilon, delta, whole) {
		xs := residuals
		if l.rounded {
			xs = unrounded(residuals, l.Scale)
		}
		f, err := noise.Test(xs, l.Law, fitConfidence)
		if err != nil {
			return nil, err
		}
		if best == nil || rank[f.Reading] < rank[best.Reading] || f.Reading == best.Reading && analysis.Float(f.PValue) > best.PValue {
			best = &Fit{Reading: f.Reading, Law: l.name, Scale: analysis.Float(f.ScaleRatio), Mean: analysis.Float(f.Mean), PValue: analysis.Float(f.PValue), Trials: f.N}
		}
	}
	return best, nil
}

// unrounded replaces each whole number by a draw from the Laplace law between its halves. If the numbers are rounded
// Laplace noise, the draws have the law itself.
func unrounded(whole []float64, scale float64) []float64 {
	l := noise.Law{Family: noise.Laplace, Scale: scale}
	r := rand.New(rand.NewPCG(1, uint64(len(whole)))) // #nosec G404 -- a randomised test; the seed makes it repeatable
	out := make([]float64, len(whole))
	for i, k := range whole {
		k, sign := math.Abs(k), math.Copysign(1, k)
		p, q := l.CDF(-k-.5), l.CDF(-k+.5) // in the lower tail, where differences are exact
		out[i] = -sign * quantile(p+(q-p)*r.Float64(), scale)
	}
	return out
}

// quantile is the inverse of the Laplace law.
func quantile(p, scale float64) float64 {
	if p > .5 {
		return -scale * math.Log(2*(1-p))
	}
	return scale * math.Log(2*max(p, math.SmallestNonzeroFloat64))
}
