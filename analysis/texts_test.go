package analysis_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// amongTexts answers with one text with the probability p, and else with one of so many others; the first answers of a
// world are never that text, so that it comes when the dictionary is full.
func amongTexts(others, first int, p0, p1 float64) draw {
	n := 0
	one := func(r *rand.Rand, p float64) analysis.Outcome {
		if r.Float64() < p && n > first {
			return word("telling")
		}
		return word("text " + strconv.Itoa(r.IntN(others)))
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		n++
		return one(r, p0), one(r, p1)
	}
}

// TestManyTexts: one text among thousands convicts, though it comes when more texts were seen than a column's
// dictionary holds, and it is named. The seeds are fixed.
func TestManyTexts(t *testing.T) {
	t.Parallel()
	r := run(t, analysis.Claim{Epsilon: 1}, 4000, 7, amongTexts(3000, 200, .05, 0))
	if r.Verdict != analysis.Violation || !contains(r.Event, "telling") || r.Event.Kind != analysis.TextEvent {
		t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
	}
	if got := r.Event.Description.String(); bytes.Contains([]byte(got), []byte("telling")) {
		t.Errorf("%q names a text that is withheld", got)
	}
	r = run(t, analysis.Claim{Epsilon: 1}, 2000, 8, amongTexts(3000, 200, .05, .05*2.7182818))
	if r.Verdict == analysis.Violation {
		t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
	}
}

// TestManyTextsState: an audit of many texts is restored bit for bit.
func TestManyTextsState(t *testing.T) {
	t.Parallel()
	sameAfterRestore(t, amongTexts(600, 100, .2, .1), 500)
}

// sameAfterRestore audits so many pairs twice, once with a restored state in between, and compares both states.
func sameAfterRestore(t *testing.T, d draw, pairs int) {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 10 * pairs})
	if err != nil {
		t.Fatal(err)
	}
	b := &analysis.Audit{}
	r := rand.New(rand.NewPCG(3, 3))
	for i := range pairs {
		x, y := d(r)
		a.Add(x, y)
		switch {
		case i == pairs/2:
			if err := b.UnmarshalBinary(saved(t, a)); err != nil {
				t.Fatal(err)
			}
		case i > pairs/2:
			b.Add(x, y)
		}
	}
	if !bytes.Equal(saved(t, a), saved(t, b)) {
		t.Error("the restored audit went on differently")
	}
}
