package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// writings are numbers as texts.
var writings = []struct {
	name  string
	say   string // in the event's description
	write func(x float64) analysis.Outcome
}{
	{"money", "", func(x float64) analysis.Outcome {
		if x < 0 {
			return word(fmt.Sprintf("-$%.2f", -x/100))
		}
		return word(fmt.Sprintf("$%.2f", x/100))
	}},
	{"date", "days since 2000-01-01", func(x float64) analysis.Outcome {
		return word(time.Date(2024, 1, 1+int(x), 0, 0, 0, 0, time.UTC).Format("2006-01-02"))
	}},
	{"interval", "seconds", func(x float64) analysis.Outcome {
		s := int(x) + 90_000
		return word(fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60))
	}},
	{"bare", "", func(x float64) analysis.Outcome { return word(fmt.Sprint(x)) }},
	{"JSON", "", func(x float64) analysis.Outcome { return word(fmt.Sprintf(`{"n": %v}`, x)) }},
	{"array", "number 2 of 2", func(x float64) analysis.Outcome { return word(fmt.Sprintf("{%v,%v}", 7*int(x*x)%1000, x)) }},
}

// TestNumbersAsTexts: numbers convict as texts as they do as numbers, and honest ones do not. The seeds are fixed.
func TestNumbersAsTexts(t *testing.T) {
	t.Parallel()
	for _, c := range writings {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			shifted := func(by float64) draw {
				return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
					return c.write(math.Round(100 * lap(r, 1))), c.write(math.Round(100 * (by + lap(r, 1))))
				}
			}
			r := run(t, analysis.Claim{Epsilon: 1}, 150, 5, shifted(4))
			if r.Verdict != analysis.Violation || r.Event == nil {
				t.Fatalf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
			}
			long := run(t, analysis.Claim{Epsilon: 2}, 300, 5, shifted(1))
			if long.Verdict == analysis.Violation {
				t.Errorf("%s (%s), event %+v", long.Verdict, long.Reason, long.Event)
			}
			for _, r := range []analysis.Report{r, long} {
				if r.Event.Score == "value" && !contains(r.Event, c.say) {
					t.Errorf("event %+v does not say %q", r.Event, c.say)
				}
			}
			sameAfterRestore(t, shifted(1), 60)
		})
	}
}

// TestTextsOfNoForm: a text that is not of its column's form is an outcome of its own, and few different texts stay
// categories.
func TestTextsOfNoForm(t *testing.T) {
	t.Parallel()
	refused := func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		if r.IntN(4) == 0 && r.IntN(2) == 0 {
			d1 = word("refused")
		} else {
			d1 = word(fmt.Sprintf("$%.2f", 10+math.Abs(lap(r, 1))))
		}
		return word(fmt.Sprintf("$%.2f", 10+math.Abs(lap(r, 1)))), d1
	}
	// The first results are money alone, so that the column has a form.
	n := 0
	later := func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		for {
			if d0, d1 = refused(r); n >= 40 || d1.Rows[0][0].Text != "refused" {
				n++
				return d0, d1
			}
		}
	}
	if r := run(t, analysis.Claim{Epsilon: 1}, 800, 5, later); r.Verdict != analysis.Violation || !contains(r.Event, `"refused"`) {
		t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
	} else if strings.Contains(r.Event.Description.String(), "refused") {
		t.Errorf("%q names a text that is withheld", r.Event.Description)
	}
	r := run(t, analysis.Claim{Epsilon: 1}, 300, 5, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		return word(fmt.Sprint(r.IntN(3))), word(fmt.Sprint(2 + r.IntN(3)))
	})
	if r.Verdict != analysis.Violation || r.Event.Kind != analysis.TextEvent {
		t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
	}
}
