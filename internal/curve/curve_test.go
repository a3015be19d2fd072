package curve

import (
	"math"
	"strings"
	"testing"
)

func parsed(t *testing.T, text string) Curve {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestCanonicalForm(t *testing.T) {
	for text, want := range map[string]Curve{
		"mu=0.268":                            "mu=0.268",
		" rho = 5e-1 ":                        "rho=0.5",
		"(1,1e-5),(0.5, 0.004)":               "(0.5,0.004) (1,1e-05)",
		"(0,0.1066) (0.2,0.039); (1,0.00001)": "(0,0.1066) (0.2,0.039) (1,1e-05)",
	} {
		got := parsed(t, text)
		if got != want {
			t.Errorf("%q is %q, not %q", text, got, want)
		}
		if again := parsed(t, string(got)); again != got {
			t.Errorf("%q changes to %q when it is read again", got, again)
		}
	}
}

func TestRefusedCurves(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "is no curve",
		"1":                         "is no curve",
		"nu=1":                      "unknown unit",
		"mu=one":                    "not a number",
		"mu=NaN":                    "not a number",
		"mu=0":                      "mu must be a number from 1e-06 to 30",
		"mu=-1":                     "mu must be",
		"mu=31":                     "mu must be",
		"rho=451":                   "rho must be",
		"(1,1e-5":                   "parentheses",
		"(1,1e-5) 2":                "parentheses",
		"(1)":                       "(epsilon,delta)",
		"(x,1)":                     "not a number",
		"(1,1)":                     "delta",
		"(-1,0.1)":                  "epsilon",
		"(1,0.1) (2,0.2)":           "implies",
		"(1,0.1) (1,0.1)":           "implies",
		strings.Repeat("(1,0)", 33): "at most 32",
	} {
		if c, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want an error with %q", text, c, err, want)
		}
	}
}

// TestMuIsTheGaussian compares with figures of the Gaussian mechanism for (1, 1e-5), computed elsewhere.
func TestMuIsTheGaussian(t *testing.T) {
	c := Curve("mu=0.268")
	for epsilon, want := range map[float64]float64{0: .1066, .2: .0390, .5: .0041, 1: 1.0e-5} {
		if got := c.Delta(epsilon); math.Abs(got/want-1) > .03 {
			t.Errorf("delta(%g) = %g, want about %g", epsilon, got, want)
		}
	}
}

// TestRhoAllowsBinaryResponse: binary response of epsilon e is e^2/2-zCDP, and its curve is above that of a Gaussian
// mechanism with the same rho at epsilon 0.
func TestRhoAllowsBinaryResponse(t *testing.T) {
	for _, e := range []float64{.05, .2, 1, 2, 4, 8} {
		rho, err := New(Rho, e*e/2)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0.0; at <= e; at += e / 50 {
			if is, claimed := Of(e, 0).Delta(at), rho.Delta(at); is > claimed {
				t.Errorf("binary response of epsilon %g has delta(%g) = %g, and %s claims %g", e, at, is, rho, claimed)
			}
		}
	}
	if is, gaussian := Of(1, 0).Delta(0), Curve("mu=1").Delta(0); !(math.Abs(is-.462) < 1e-3 && math.Abs(gaussian-.383) < 1e-3) {
		t.Errorf("delta(0) = %g and %g, want .462 and .383", is, gaussian)
	}
}

func TestRhoAllowsTheGaussian(t *testing.T) {
	for _, mu := range []float64{1e-3, .05, .268, 1, 3, 10} {
		gauss, rho := Curve("mu="+text(mu)), Curve("rho="+text(mu*mu/2))
		for z := -2.0; z < 6; z += .1 {
			at := max(0, mu*mu/2+z*mu)
			if is, claimed := gauss.Delta(at), rho.Delta(at); is > claimed {
				t.Errorf("%s has delta(%g) = %g, and %s claims %g", gauss, at, is, rho, claimed)
			}
		}
	}
}

// TestRhoIsTight compares with the conversion at orders around the one that is found.
func TestRhoIsTight(t *testing.T) {
	for _, rho := range []float64{1e-6, .036, .5, 8} {
		for z := .6; z < 6; z += .3 {
			epsilon := rho + z*math.Sqrt(2*rho)
			least := 1.0
			for a := 1.001; a < 1e6; a *= 1.003 {
				least = min(least, math.Exp((a-1)*(a*rho-epsilon)+a*math.Log1p(-1/a))/(a-1))
			}
			if got := deltaOfRho(rho, epsilon); got > least*(1+1e-4) {
				t.Errorf("rho %g, epsilon %g: %g, and an order gives %g", rho, epsilon, got, least)
			}
		}
	}
}

func TestPoints(t *testing.T) {
	for _, c := range []Curve{"mu=1e-06", "mu=0.01", "mu=0.268", "mu=1", "mu=5", "mu=30", "rho=1e-10", "rho=0.036", "rho=0.5", "rho=450", "(0,0.1) (0.1,0.05) (0.2,0.04) (0.5,0.004) (1,1e-05)", "(1,0)"} {
		points := c.Points()
		if len(points) == 0 || len(points) > 4 {
			t.Errorf("%s has %d points", c, len(points))
		}
		for i, p := range points {
			if !(p.Epsilon >= 0 && p.Epsilon <= 1000 && p.Delta >= 0 && p.Delta < 1) || i > 0 && !(p.Epsilon > points[i-1].Epsilon && p.Delta < points[i-1].Delta) {
				t.Errorf("%s: points %v", c, points)
			}
			if p.Delta < c.Delta(p.Epsilon) {
				t.Errorf("%s: point %v claims less than the curve's %g", c, p, c.Delta(p.Epsilon))
			}
		}
	}
	if got := Curve("mu=0.268").Points(); got[0].Epsilon != 0 {
		t.Errorf("points %v: epsilon 0 is missing", got)
	}
}

func TestTogether(t *testing.T) {
	add := func(a, b, want Curve) {
		if got, ok := a.Add(b); got != want || ok != (want != "") {
			t.Errorf("%s and %s together: %q, want %q", a, b, got, want)
		}
	}
	add("mu=3", "mu=4", "mu=5")
	add("rho=0.25", "rho=0.5", "rho=0.75")
	add("mu=1", "rho=0.5", "rho=1")
	add("mu=1", "(1,0.1)", "")
	add("mu=30", "mu=30", "")
	if c, ok := Curve("mu=1").Max("mu=2"); c != "mu=2" || !ok {
		t.Errorf("max of mu 1 and 2: %q", c)
	}
	if c, ok := Curve("rho=0.5").Max("mu=1"); c != "rho=0.5" || !ok {
		t.Errorf("max of rho 0.5 and mu 1: %q", c)
	}
	if !Of(1, 0).Tighter("rho=0.5") || Of(1, 0).Tighter("mu=1") || Of(1, 1e-5).Tighter("mu=0.2") || !Curve("mu=0.2").Tighter(Of(1, 1e-5)) {
		t.Error("the order of claims is wrong")
	}
}

// TestLower: a parameter is refuted exactly if its curve is.
func TestLower(t *testing.T) {
	for _, c := range []Curve{"mu=0.3", "rho=0.5"} {
		p := c.Points()[1]
		lower := c.Lower(Point{p.Epsilon, c.Delta(p.Epsilon)})
		if x := lower.Parameter(); !(x <= c.Parameter() && x > .985*c.Parameter()) {
			t.Errorf("the lower bound at a point of %s is %s", c, lower)
		}
	}
	if got := Curve("(1,0.1)").Lower(Point{1, .1}); got != "" {
		t.Errorf("a list has the lower bound %q", got)
	}
}
