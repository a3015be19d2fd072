package analysis_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// One finding has a line, a paragraph and JSON, which say the same.
func TestFindingForms(t *testing.T) {
	t.Parallel()
	r := caused(t, analysis.Claim{Epsilon: 1}, 4000, 1, laplaceShift(2))
	f := r.Finding
	if f == nil {
		t.Fatal(r.Reason)
	}
	for _, part := range []string{"epsilon is at least 1.", "(claim 1)", "column x", "of the answers on D0", "likely cause: too little noise"} {
		if !strings.Contains(f.Line.String(), part) {
			t.Errorf("%q is not in the line: %s", part, f.Line)
		}
	}
	for _, part := range []string{"Certified (confidence 0.95)", "a probability of 50 %", "after one answer", "after ten", "Likely: ", "Likely cause: ", "docs/causes.md#noise_scale", "would need a delta above"} {
		if !strings.Contains(f.Paragraph.String(), part) {
			t.Errorf("%q is not in the paragraph: %s", part, f.Paragraph)
		}
	}
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var back analysis.Finding
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(back); err != nil || string(again) != string(raw) {
		t.Errorf("%v\n%s\n%s", err, raw, again)
	}
}

// The odds follow from the certified bound, and the profile falls with epsilon. A true epsilon of 2 has delta 0 there.
func TestHowBad(t *testing.T) {
	t.Parallel()
	r := caused(t, analysis.Claim{Epsilon: 1}, 4000, 2, laplaceShift(2))
	h := r.Finding.HowBad
	if h.Basis != analysis.Certified || h.EpsilonLower != r.EpsilonLower || len(h.Answers) != 2 {
		t.Fatalf("%+v", h)
	}
	for _, x := range h.Answers {
		odds := math.Exp(float64(x.Answers) * float64(r.EpsilonLower))
		if math.Abs(float64(x.Odds)/odds-1) > 1e-9 || math.Abs(float64(x.Probability)-odds/(1+odds)) > 1e-9 {
			t.Errorf("%+v at epsilon %v, want odds of %v", x, r.EpsilonLower, odds)
		}
	}
	if e := h.Event; e == nil || !(e.Low > 1 && e.Low < e.Epsilon && e.Epsilon < e.High && e.Low < 2 && e.High > 1.5) {
		t.Errorf("the event shows %+v; the true epsilon is 2", e)
	} else if text := e.Text(); !strings.Contains(text, "this query alone: from 1.") {
		t.Error(text)
	}
	unseen := analysis.EventLoss{Epsilon: analysis.Float(math.NaN()), Low: 1.239, High: analysis.Float(math.Inf(1)), Confidence: .95}
	if text := unseen.Text(); !strings.HasSuffix(text, "from 1.23 on)") {
		t.Error(text)
	}
	last := 1.0
	for _, p := range h.Profile {
		// The delta of Laplace noise with a shift of 2 scales (Balle et al. 2018): 1 - e^((e-2)/2) below epsilon 2.
		if truth := max(0, 1-math.Exp((p.Epsilon-2)/2)); p.Delta > last || p.Delta > truth {
			t.Errorf("delta %v at epsilon %v after %v; the true one is %.3f", p.Delta, p.Epsilon, last, truth)
		}
		last = p.Delta
		if p.Epsilon == 1 && (p.Delta < .1 || float64(h.ClaimNeedsDelta) != p.Delta) {
			t.Errorf("delta %v at the claim, %v in the report; the true one is .39", p.Delta, h.ClaimNeedsDelta)
		}
	}
	if len(h.Profile) < 4 {
		t.Errorf("%+v", h.Profile)
	}
}

// breached agrees with the odds beside it, and the certified odds with their own flag.
func TestBreachedAgrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		a := run(t, analysis.Claim{Epsilon: 1}, 2000, seed, laplaceShift(.5+float64(seed)/4)).Attacker
		if a.Breached != (a.PosteriorOdds > 2) || a.BreachCertified != (a.PosteriorOddsLower > 2) || a.PosteriorOdds != analysis.Float(a.PriorOdds)*a.LikelihoodRatio {
			t.Errorf("%+v", a)
		}
	}
}

// Of a joint score, the groups that leak are named, with most of the evidence.
func TestPartsOfAJointScore(t *testing.T) {
	t.Parallel()
	leak := many(20, func(i int) float64 {
		if i == 4 || i == 11 {
			return 1.25
		}
		return 0
	})
	for seed := range uint64(40) {
		f := caused(t, analysis.Claim{Epsilon: 1}, 0, seed, leak).Finding.Reveal()
		if len(f.What.Parts) < 2 {
			continue
		}
		together := 0.0
		for _, p := range f.What.Parts {
			if w := p.Where.Reveal(); strings.HasSuffix(w, "store_id=4") || strings.HasSuffix(w, "store_id=11") {
				together += float64(p.Share)
			}
		}
		if together < .6 {
			t.Errorf("seed %d: %s", seed, f.Line)
		}
		return
	}
	t.Error("no seed has a joint score as its event")
}

// No printed form of a finding holds a group key, a value or a threshold; the revealed one does.
func TestFindingWithholdsValues(t *testing.T) {
	t.Parallel()
	const key = 9182736
	d := perWorld(func(r *rand.Rand, w int) analysis.Outcome {
		n := 0
		return stores([]float64{key, 1}, func() float64 {
			if n++; n == 1 {
				return 73194628 + 48211*float64(1-w) + lap(r, 1000)
			}
			return lap(r, 1000)
		})
	})
	r := caused(t, analysis.Claim{Epsilon: 1}, 500, 1, d)
	text := printed(t, r.Finding)
	for _, value := range []string{"9182736", "73194", "7319", "4821", "4822"} {
		if strings.Contains(text, value) {
			t.Errorf("%s is printed: %s", value, text)
		}
	}
	shown := r.Reveal().Finding
	if !strings.Contains(shown.Line.String(), "9182736") || !strings.Contains(shown.Causes[0].Text.String(), "a shift of 4.8") {
		t.Errorf("not revealed: %s\n%s", shown.Line, shown.Causes[0].Text)
	}
}

// Certified lower bounds are never rounded up.
func TestFormatLower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		x := math.Exp(40*r.Float64() - 10)
		text := analysis.FormatLower(x)
		if y, err := strconv.ParseFloat(text, 64); err != nil || y > x || y < x*(1-.0101) {
			t.Fatalf("%s for %v", text, x)
		}
	}
	for x, want := range map[float64]string{0: "0", 1.2352: "1.23", 2.999: "2.99", 1000: "1e+03", 4.6: "4.6"} {
		if got := analysis.FormatLower(x); got != want {
			t.Errorf("%s for %g, want %s", got, x, want)
		}
	}
}
