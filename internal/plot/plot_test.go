package plot_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/plot"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "new")
	if files, err := plot.Write(dir, a.Figures(), analysis.Report{}); err != nil || len(files) != 0 {
		t.Fatalf("without trials: %v, %v", files, err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	one := func(x float64) analysis.Outcome {
		return analysis.Outcome{Rows: [][]analysis.Value{{{Kind: analysis.Number, Num: x}}}}
	}
	for range 200 {
		a.Add(one(r.ExpFloat64()-r.ExpFloat64()), one(3+r.ExpFloat64()-r.ExpFloat64()))
	}
	f := a.Figures()
	if f.Profile[0].Delta < .5 || f.Histogram == nil || len(f.Histogram.Event.Reveal()) == 0 {
		t.Errorf("profile %v, histogram %+v", f.Profile, f.Histogram)
	}
	files, err := plot.Write(dir, f, analysis.Report{})
	if err != nil || len(files) != 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".svg") || !bytes.HasPrefix(data, []byte("<svg xmlns")) {
			t.Errorf("%s is no SVG", path)
		}
	}
	if _, err := plot.Write(files[0], f, analysis.Report{}); err == nil {
		t.Error("a file is no directory")
	}
}

// TestExtremeRanges draws histograms of values at the edges of what a float64 holds: in a few last places, subnormal,
// and all there is.
func TestExtremeRanges(t *testing.T) {
	t.Parallel()
	for _, ends := range [][2]float64{
		{-math.MaxFloat64, math.MaxFloat64},
		{-math.MaxFloat64 / 2, math.MaxFloat64 / 2},
		{0, math.MaxFloat64},
		{math.MaxFloat64 * (1 - 0x1p-50), math.MaxFloat64},
		{1, 1 + 0x1p-50},
		{1e300, 1e300 * (1 + 0x1p-51)},
		{0, 5e-324},
		{-1e-320, 1e-320},
		{0x1p-1022, 0x1p-1021},
		{0x1p63, 0x1p64},
		{math.MaxFloat64, math.MaxFloat64},
	} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			t.Parallel()
			a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 1))
			one := func() analysis.Outcome {
				part := r.Float64()
				return analysis.Outcome{Rows: [][]analysis.Value{{{Kind: analysis.Number, Num: ends[0]*(1-part) + ends[1]*part}}}}
			}
			for range 100 {
				a.Add(one(), one())
			}
			for _, c := range plot.Draw(a.Figures(), analysis.Report{}, true) {
				if text := string(c.SVG()); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
					t.Errorf("%s: %s", c.Name, text)
				}
			}
		})
	}
}
