package analysis

import (
	"hash/fnv"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Drift tests whether the law of one world's results changes while an audit runs. It is not safe for concurrent use.
//
// The first half of the results is compared with the second by four figures of a result: how it failed, its number of
// rows, the sum of its numbers, and the texts of its first row. The test is Kolmogorov's and Smirnov's with the bound e
// exp(-m D^2) for two samples of m each (Wei and Dudley 2012, theorem 1: it holds for every m). Its error rate is spent
// over all looks, the one after n results getting 1/(n(n+1)) of it, so that the times of the looks may depend on the
// results.
type Drift struct {
	n      int // results seen
	stride int // of those that are kept
	kept   [driftFigures][]float64
}

// DriftErrorRate bounds the probability that Drift ever reports a change in results of one unchanging law.
const DriftErrorRate = 0.005

const (
	driftFailure = iota
	driftRows
	driftSum
	driftTexts
	driftFigures
)

var driftNames = [driftFigures]string{"how it fails", "its number of rows", "the sum of its numbers", "the texts of its first row"}

// maxDriftKept bounds the memory of one Drift: 32 bytes a result.
const maxDriftKept = 2048

// Add takes one result.
func (d *Drift) Add(o Outcome) {
	if d.stride == 0 {
		d.stride = 1
	}
	d.n++
	if d.n%d.stride != 0 {
		return
	}
	figures := driftOf(&o)
	for i, f := range figures {
		d.kept[i] = append(d.kept[i], f)
	}
	if len(d.kept[0]) < maxDriftKept {
		return
	}
	d.stride *= 2
	for i, all := range d.kept {
		for j := range len(all) / 2 {
			all[j] = all[2*j+1] // result (2j+2) times the old stride
		}
		d.kept[i] = all[:len(all)/2]
	}
}

// MarshalBinary returns what Drift has seen. It holds figures of results and needs the protection of the raw data.
func (d *Drift) MarshalBinary() ([]byte, error) {
	c := &state.Codec{}
	d.state(c)
	return c.Buf, c.Err
}

// UnmarshalBinary restores what MarshalBinary returned. For anything else it returns an error and leaves d unchanged.
func (d *Drift) UnmarshalBinary(data []byte) error {
	c, saved := &state.Codec{Reading: true, Buf: data}, Drift{}
	saved.state(c)
	if c.Err == nil && len(c.Buf) > 0 {
		c.Fail()
	}
	if c.Err == nil {
		*d = saved
	}
	return c.Err
}

func (d *Drift) state(c *state.Codec) {
	c.All(&d.n, &d.stride)
	for i := range d.kept {
		c.Floats(&d.kept[i])
		c.Check(len(d.kept[i]) == len(d.kept[0]) && len(d.kept[i]) < maxDriftKept)
	}
	c.Check(d.n >= 0 && d.stride >= 0)
}

// driftOf returns the figures of one result; what has no number is a value that no sum has.
func driftOf(o *Outcome) [driftFigures]float64 {
	if o.Failed() {
		h := fnv.New32a()
		_, _ = h.Write([]byte(o.SQLState))
		return [driftFigures]float64{1 + float64(h.Sum32()), -1, math.Inf(-1), -1}
	}
	sum := 0.0
	for _, row := range o.Rows {
		for i, v := range row {
			if v.Kind == Number && !(i < len(o.Columns) && o.Columns[i].Discrete && len(row) > 1) {
				sum += v.Num
			}
		}
	}
	if math.IsNaN(sum) {
		sum = math.Inf(1)
	}
	texts := uint32(0)
	if len(o.Rows) > 0 {
		for _, v := range o.Rows[0] {
			if v.Kind == Text || v.Kind == Bool {
				texts = 31*texts + uint32(code.Hash(v.Text)) + uint32(code.Bit(v.Num != 0))
			}
		}
	}
	return [driftFigures]float64{0, float64(len(o.Rows)), sum, float64(texts)}
}

// Changed reports whether the law of the results has certainly changed, and in which figure.
func (d *Drift) Changed() (what string, changed bool) {
	m := len(d.kept[0]) / 2
	if m == 0 {
		return "", false
	}
	n := float64(d.n)
	limit := math.Log(math.E * driftFigures * n * (n + 1) / DriftErrorRate)
	for i, all := range d.kept {
		first, last := slices.Sorted(slices.Values(all[:m])), slices.Sorted(slices.Values(all[len(all)-m:]))
		if distance := stat.KolmogorovSmirnov(first, nil, last, nil); float64(m)*distance*distance > limit {
			return driftNames[i], true
		}
	}
	return "", false
}

// Temper returns the report of an audit during which a world may have changed. Where one world changed and the other
// did not, a violation is inconclusive: it may be a difference between two moments and not between two datasets. So it
// is where both changed, but not by the same figure. A change that is alike in both worlds needs no correction (every
// pair has its trials at the same time, and the laws need not stay the same), but it is not certain that both changed
// at the same moment: a violation is then inconclusive too, and any other verdict holds. Verdicts other than a
// violation get a warning. The measurement of a violation that was found before the change is dropped, with a warning;
// the violation stays.
func Temper(r Report, d0, d1 *Drift) Report {
	what0, changed0 := d0.Changed()
	what1, changed1 := d1.Changed()
	var text string
	switch {
	case !changed0 && !changed1:
		return r
	case changed0 && changed1 && what0 == what1:
		text = "the results on D0 and D1 changed alike during the audit, in " + what0
		if r.Verdict != Violation {
			text += ": verdict and bound hold if both changed at the same moment, as when the data grow or the engine is upgraded"
		}
	case changed0 && changed1:
		text = "the engine or the copies changed during the audit: on D0 the result changed in " + what0 + ", on D1 the result changed in " + what1
	case changed0:
		text = "the engine or the copies changed during the audit: on D0 the result changed in " + what0 + ", on D1 it did not"
	default:
		text = "the engine or the copies changed during the audit: on D1 the result changed in " + what1 + ", on D0 it did not"
	}
	if r.Measurement != nil { // the violation was found before
		r.Measurement = &Measurement{MeasurementUnsound, r.Measurement.Pairs, r.Measurement.MaxPairs, r.Measurement.ReportedLower}
		r.EpsilonLower = r.Measurement.ReportedLower
		r.Attacker = r.Attacker.at(float64(r.EpsilonLower))
		if r.Finding != nil {
			f := *r.Finding
			f.HowBad = howBad(&r)
			f.write(&r)
			r.Finding = &f
		}
	}
	if r.Verdict != Violation || r.Measurement != nil {
		r.Warnings = append(slices.Clone(r.Warnings), withheld.Public(text))
		return r
	}
	return r.inconclusive(text + "; audit it again when nothing changes")
}

// inconclusive returns the report with the verdict Inconclusive for a reason that has nothing to do with the evidence.
func (r Report) inconclusive(reason string) Report {
	if r.Confirmation != nil {
		c := *r.Confirmation
		c.State = NotConfirmed
		r.Confirmation = &c
	}
	r.Verdict, r.Reason, r.DetectedAt, r.EpsilonLower = Inconclusive, reason, nil, 0
	r.Attacker = r.Attacker.at(0)
	r.Finding, r.ClopperPearson = nil, nil
	return r
}
