package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestForms: what answers show beside their values is found, and the same form with noise in each value is no violation.
// Honest audits are at the confidence 0.999999: each fails this test at most once in a million seeds.
func TestForms(t *testing.T) {
	t.Parallel()
	decimals := func(x float64, places int) analysis.Outcome {
		o := value(math.Round(x*100) / 100)
		v := &o.Rows[0][0]
		v.Places, v.Text = uint16(places+1), strconv.FormatFloat(v.Num, 'f', places, 64)
		return o
	}
	besides := func(r *rand.Rand, places int, rows int) (o analysis.Outcome) { // a sum beside three with digits by chance
		for range rows {
			var row []analysis.Value
			for range 3 {
				row = append(row, decimals(lap(r, 2), r.IntN(12)).Rows[0][0])
			}
			o.Rows = append(o.Rows, append(row, decimals(lap(r, 2), places).Rows[0][0]))
		}
		return o
	}
	failing := func(r *rand.Rand, message string) analysis.Outcome {
		if r.IntN(2) == 0 {
			return analysis.Outcome{SQLState: "P0001", Message: message}
		}
		return value(lap(r, 2))
	}
	array := func(xs ...float64) analysis.Outcome {
		texts := make([]string, len(xs))
		for i, x := range xs {
			texts[i] = fmt.Sprint(x)
		}
		return word("{" + strings.Join(texts, ",") + "}")
	}
	noises := func(r *rand.Rand, n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = lap(r, 1)
		}
		return xs
	}
	hash := func(r *rand.Rand, eleventh string) string { // 32 digits, the eleventh of which is one of some
		b := fmt.Appendf(nil, "%016x%016x", r.Uint64(), r.Uint64())
		b[10] = eleventh[r.IntN(len(eleventh))]
		return string(b)
	}
	for name, c := range map[string]struct {
		leak bool
		d    draw
	}{
		"digits of a sum":               {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return decimals(lap(r, 2), 2+int(w)) })},
		"fixed digits":                  {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return decimals(w+lap(r, 1), 2) })},
		"digits by chance":              {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return decimals(w+lap(r, 1), 2+r.IntN(9)) })},
		"digits of one of four sums":    {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return besides(r, 2+int(w), 1) })},
		"digits of one of four columns": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return besides(r, 2+int(w), 5) })},
		"digits of four sums by chance": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return besides(r, r.IntN(12), 1) })},
		"number in a message": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return failing(r, fmt.Sprint("cannot add noise to ", 200+w))
		})},
		"message with noise": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return failing(r, fmt.Sprint("cannot add noise, ", r.Float64()))
		})},
		"number in a notice": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := value(200 + w + lap(r, 1))
			o.Message = fmt.Sprint("clipped ", 200+w, " rows")
			return o
		})},
		"digits beside a notice that varies": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := decimals(lap(r, 2), 2+int(w))
			o.Message = fmt.Sprint("took ", r.Float64(), " ms")
			return o
		})},
		"the same notice": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := value(200 + w + lap(r, 1))
			o.Message = "clipped some rows"
			return o
		})},
		"names in another order": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := groups(lap(r, 1), lap(r, 1), lap(r, 1))
			for i := range o.Rows {
				o.Rows[i][0] = analysis.Value{Kind: analysis.Text, Text: []string{"north", "south", "west"}[(i+2*int(w))%3]}
			}
			return o
		})},
		"words in another order": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := groups(lap(r, 1), lap(r, 1), lap(r, 1))
			for i := range o.Rows {
				k := (i + int(w)) % 3
				o.Rows[i] = append(o.Rows[i], analysis.Value{Kind: analysis.Text, Text: []string{"few", "some", "many"}[k]})
				o.Rows[i][0].Num = float64(k)
			}
			return o
		})},
		"optional key": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf(`{"n": %v%s}`, lap(r, 2), strings.Repeat(`, "vip": true`, int(w))))
		})},
		"document with noise": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf(`{"n": %v, "k": 1}`, w+lap(r, 1)))
		})},
		"length of an array":     {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return array(noises(r, 1+int(w)+2*r.IntN(3))...) })},
		"array of random length": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return array(noises(r, 1+r.IntN(4))...) })},
		"value in a message": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return failing(r, fmt.Sprint("cannot release ", w+lap(r, .05), ": too small"))
		})},
		"value in every message": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return analysis.Outcome{SQLState: "P0001", Message: fmt.Sprint("cannot release ", w+lap(r, .05), ": too small")}
		})},
		"value with noise in a message": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return failing(r, fmt.Sprint("cannot release ", w+lap(r, 1), ": too small"))
		})},
		"value in a notice beside noise": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := value(lap(r, 1))
			o.Message = fmt.Sprintf("took %.3f ms, sum before clipping %v", r.Float64(), 1000+w+lap(r, .05))
			return o
		})},
		"largest element of an array": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			xs := noises(r, 2+r.IntN(5))
			xs[r.IntN(len(xs))] = 100 + w + lap(r, .05)
			return array(xs...)
		})},
		"last element of an array": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return array(append(noises(r, 2+r.IntN(5)), w+lap(r, .05))...)
		})},
		"noise in the last element": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return array(append(noises(r, 2+r.IntN(5)), w+lap(r, 1))...)
		})},
		"a key after optional ones": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			some := strings.Repeat(`, "some": 3.5`, r.IntN(2))
			return word(fmt.Sprintf(`{"n": %v%s, "m": %v%s}`, lap(r, 1), some, w+lap(r, .05), some))
		})},
		"numbers after a thousand words": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("%c%c%c %v", 'a'+r.IntN(10), 'a'+r.IntN(10), 'a'+r.IntN(10), w+lap(r, 1)))
		})},
		"noise in a key after optional ones": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			some := strings.Repeat(`, "some": 3.5`, r.IntN(2))
			return word(fmt.Sprintf(`{"n": %v%s, "m": %v%s}`, lap(r, 1), some, w+lap(r, 1), some))
		})},
		"numbers in a wrapper": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("np.float64(%.2f)", 1000*w+lap(r, 1)))
		})},
		"numbers with noise in a wrapper": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("Decimal('%.2f')", w+math.Round(lap(r, 1)*100)/100))
		})},
		"a character of a hash": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(hash(r, "0123456789abcdef"[8*int(w):][:8]))
		})},
		"a character of a hash by binary response": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			one := w == 1 != (r.Float64() < 1/(1+math.E))
			return word(hash(r, map[bool]string{true: "01234567", false: "89abcdef"}[one]))
		})},
		"last letter": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("%s%c", hash(r, "0"), 'a'+int(w)))
		})},
		"letter case": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word([]func(string) string{strings.ToUpper, strings.ToLower}[int(w)](hash(r, "a")))
		})},
		"length": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return word(hash(r, "a")[int(w):]) })},
		"third letter": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("xy%c%s", 'a'+int(w), hash(r, "0")))
		})},
		"first letter": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			return word(fmt.Sprintf("%c%032x", 'a'+int(w), r.Uint64()))
		})},
		"name of a column": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := value(lap(r, 1))
			o.Columns = []analysis.Column{{Name: fmt.Sprint("over_", 100+w)}}
			return o
		})},
		"type of a column": {true, worlds(func(r *rand.Rand, w float64) analysis.Outcome {
			o := value(math.Round(lap(r, 10)))
			o.Columns = []analysis.Column{{Name: "n", Type: 20 + uint16(w)}}
			return o
		})},
		"text of one form": {false, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return word(fmt.Sprintf("a%032x", r.Uint64())) })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt, want := analysis.Options{MaxTrials: 1500, Suspicion: true, Unordered: true}, analysis.Violation
			if !c.leak {
				opt.Confidence, want = .999999, analysis.NoEvidence
			}
			switch name { // little is compared
			case "text of one form", "a character of a hash by binary response", "numbers after a thousand words":
				want = analysis.Inconclusive
			}
			r := expect(t, want, 1, opt, 5, c.d)
			if c.leak && !strings.HasSuffix(name, "in a message") { // which half of the trials have
				expect(t, want, 4, opt, 5, c.d)
			}
			if want == analysis.Inconclusive && !strings.Contains(r.Reason, "column answer") {
				t.Error(r.Reason)
			}
		})
	}
}

// expect audits, with an audit that is restored after 40 pairs, and checks the verdict. A violation takes 500 pairs at
// most.
func expect(t *testing.T, want analysis.Verdict, epsilon float64, opt analysis.Options, seed uint64, d draw) analysis.Report {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: epsilon}, opt)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, seed))
	for n := 0; !a.Decided(); n++ {
		if a.Add(d(r)); n == 40 {
			a = restored(t, a)
		}
	}
	report := a.Report()
	t.Logf("%s after %d pairs: %v", report.Verdict, report.Trials.D0, report.Event)
	if report.Verdict != want || want == analysis.Violation && report.Trials.D0 > 500 {
		t.Errorf("%s after %d pairs (%s), want %s", report.Verdict, report.Trials.D0, report.Reason, want)
	}
	return report
}
